"""``frtspec lock``: writes each spec root's ``spec.lock``, or says what moved."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from frtspec import tomltext
from frtspec.cli.common import (
    FINDINGS,
    OK,
    Run,
    begin,
    counted,
    exit_code,
    progress,
    refused,
    report,
)
from frtspec.diag.diagnostic import Diagnostic, has_errors, in_order
from frtspec.diag.source import NOWHERE, SourceFile
from frtspec.diff import retired
from frtspec.files import write_atomically
from frtspec.lock import (
    LOCK_NAME,
    Declared,
    LockChange,
    Row,
    compare,
    declared,
    ops_of,
    read_lock,
    render_lock,
)
from frtspec.project import Loaded, load, select, shown


def run(options: argparse.Namespace) -> int:
    """Writes the locks; with ``--check`` prints what moved and exits 1. Specs with errors
    and changes to a released version are reported, and nothing is written."""
    setup = begin()
    roots = setup.config.specs
    if not setup.ok or not roots:
        problems = setup.diagnostics if not setup.ok else (_nothing_here(),)
        report(problems, setup.sources)
        return exit_code(problems)
    with progress() as say:
        loaded = load(select((), setup.config, setup.here), say)
    if not loaded.ok:
        report(in_order([*loaded.diagnostics, *_missed(roots, loaded, setup)]), loaded.sources)
        return FINDINGS
    sources = dict(loaded.sources)
    changes = {root: _change(root, loaded, setup, sources) for root in roots}
    found = [d for change in changes.values() for d in change.refused]
    if options.check:
        found += [d for change in changes.values() for d in change.moved]
    report(in_order(found), sources)
    if has_errors(found):
        return FINDINGS
    for root, change in changes.items():
        path = root / LOCK_NAME
        try:
            wrote = not options.check and write_atomically(path, _text(change, loaded).encode())
        except OSError as error:
            report([refused(shown(path, setup.here), error)], sources)
            return FINDINGS
        state = f"{len(change.moved)} of them new or moved" if wrote else "up to date"
        number = counted(len(change.rows), "declaration")
        print(f"{shown(path, setup.here)}: {number}, {state}")
    return OK


def _change(root: Path, loaded: Loaded, setup: Run, sources: dict[str, SourceFile]) -> LockChange:
    path = root / LOCK_NAME
    name = shown(path, setup.here)
    mine = {f.path for f in loaded.selection.files if f.root == root}
    now = [item for item in declared(loaded.program) if item.span.path in mine]
    if not path.exists():
        return compare(now, (), name)
    try:
        source = tomltext.decode(name, path.read_bytes())
    except OSError as error:
        return LockChange((), (), (refused(name, error),))
    sources[name] = source
    rows, problems = read_lock(source)
    if problems:
        return LockChange((), (), problems)

    def told(before: Row, item: Declared) -> str:
        from frtspec.diff.frozen import told  # loads the rules; only for what is released

        file = item.span.path
        beside = {path: text for path, text in loaded.sources.items() if path != file}
        return told(before, loaded.sources[file], beside, setup.config.specs, setup.here)

    change = compare(now, rows, name, told)
    wrong = (*retired.notes(rows, name), *retired.pinned(rows, loaded.program, mine))
    return replace(change, refused=(*change.refused, *wrong))


def _text(change: LockChange, loaded: Loaded) -> str:
    mine = {(row.name, row.version) for row in change.rows if row.kind == "structure"}
    found = loaded.program.structures
    own = replace(loaded.program, structures={k: s for k, s in found.items() if k in mine})
    return render_lock(change.rows, ops_of(own))


def _missed(roots: Sequence[Path], loaded: Loaded, setup: Run) -> list[Diagnostic]:
    """Names of versions that went, which the errors may be about."""
    out: list[Diagnostic] = []
    there = frozenset(item.row.key for item in declared(loaded.program))
    for root in roots:
        path = root / LOCK_NAME
        if path.is_file():
            rows, _ = read_lock(tomltext.decode(shown(path, setup.here), path.read_bytes()))
            mine = {f.path for f in loaded.selection.files if f.root == root}
            sources = {path: s for path, s in loaded.sources.items() if path in mine}
            out += retired.missed(rows, sources, there)
    return out


def _nothing_here() -> Diagnostic:
    return Diagnostic(
        "FRT0859",
        "there is no spec root here to lock; the installed catalog is not written",
        NOWHERE,
        help='name your spec roots in pyproject.toml: [tool.frtspec] specs = ["specs"]',
    )

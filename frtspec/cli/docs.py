"""``frtspec docs``: the pages of the specs, with formulas, drawings and costs."""

from __future__ import annotations

import argparse
from pathlib import Path

from frtspec import resources
from frtspec.cli.common import FINDINGS, OK, begin, counted, exit_code, progress, refused, report
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import Span
from frtspec.docgen.costs import read_sizes
from frtspec.docgen.pages import FOLDER, Catalog, pages
from frtspec.files import write_atomically
from frtspec.project import load, select, shown

SIZES = "sizes.toml"


def run(options: argparse.Namespace) -> int:
    """Writes ``catalog.md`` and ``catalog/`` into the docs folder; with ``--check`` names
    what differs and exits 1. Specs with errors are reported, and nothing is written."""
    setup = begin()
    if not setup.ok:
        report(setup.diagnostics, setup.sources)
        return exit_code(setup.diagnostics)
    out = setup.here / options.out
    roots = setup.config.specs or (resources.specs_dir(),)
    with progress() as say:
        loaded = load(select((), setup.config, setup.here), say)
        found = (*setup.diagnostics, *loaded.diagnostics)
        if exit_code(found) != OK:
            report(found, {**setup.sources, **loaded.sources})
            return exit_code(found)
        say("drawing")
        try:
            sizes = [size for root in roots for size in read_sizes(root / SIZES)]
            made = pages(Catalog(loaded.program, loaded.sources, sizes, loaded.selection.asked))
        except ValueError as error:
            problem = Diagnostic("FRT0871", str(error), Span(SIZES, 0, 0), help="mend the table")
            report([problem], {})
            return FINDINGS
    return _check(out, made, setup.here) if options.check else _write(out, made, setup.here)


def _check(out: Path, made: dict[str, str], here: Path) -> int:
    stale = [path for path, text in made.items() if _text(out / path) != text]
    stale += [path for path in _old(out, made)]
    for path in stale:
        print(f"{shown(out / path, here)}: not what the specs give now; run `frtspec docs`")
    if not stale:
        print(f"{shown(out, here)}: {counted(len(made), 'page')} up to date")
    return FINDINGS if stale else OK


def _write(out: Path, made: dict[str, str], here: Path) -> int:
    written = 0
    for path, text in made.items():
        try:
            written += write_atomically(out / path, text.encode())
        except OSError as error:
            report([refused(shown(out / path, here), error)], {})
            return FINDINGS
    for path in _old(out, made):
        print(f"{shown(out / path, here)}: no spec gives this page any more; remove it")
    print(f"{shown(out, here)}: {written} written, {len(made) - written} unchanged")
    return OK


def _old(out: Path, made: dict[str, str]) -> list[str]:
    """Pages in the catalog's folder that no spec gives."""
    there = sorted((out / FOLDER).glob("*")) if (out / FOLDER).is_dir() else []
    return [f"{FOLDER}/{p.name}" for p in there if f"{FOLDER}/{p.name}" not in made]


def _text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None

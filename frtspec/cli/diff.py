"""``frtspec diff``: what an edit means, for whoever pins what it touches."""

from __future__ import annotations

import argparse
import datetime
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frtspec import tomltext
from frtspec.cli.common import FINDINGS, OK, USAGE, Run, begin, exit_code, progress, report
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile, Span
from frtspec.project import shown

if TYPE_CHECKING:
    from frtspec.diff.compare import Comparison
    from frtspec.diff.sides import Texts


def run(options: argparse.Namespace) -> int:
    """Exits 1 where something is breaking that nobody accepted, or an acceptance is stale;
    2 where a side means nothing."""
    from frtspec.diff.compare import Comparison, compare
    from frtspec.diff.sources import NoSide, side

    setup = begin()
    if not setup.ok:
        report(setup.diagnostics, setup.sources)
        return exit_code(setup.diagnostics)
    try:
        old = side(options.old, setup.config, setup.here, older=True)
        new = side(options.new, setup.config, setup.here, older=False)
    except NoSide as fault:
        report(fault.diagnostics, {})
        return USAGE
    with progress() as say:
        say(f"comparing {old.label} with {new.label}")
        found = compare(old, new, drafts=options.drafts)
    if not isinstance(found, Comparison):
        sources = {**found[0].sources, **found[1].sources}
        report([d for s in found for d in s.diagnostics], sources)
        return FINDINGS
    return _tell(found, options, setup)


def _tell(found: Comparison, options: argparse.Namespace, setup: Run) -> int:
    from frtspec.diff.accept import apply
    from frtspec.diff.consequences import consequences, rungs_lost
    from frtspec.diff.report import Report, rendered

    receipts = _receipts(options.receipts)
    if receipts is None:
        return USAGE
    rows, problems, sources = _acceptances(options.accept, found.new.texts, setup)
    events = (*found.events, *rungs_lost(found, receipts))
    events, wrong = apply(events, rows, datetime.datetime.now(datetime.UTC).date())
    found = replace(found, events=events)
    told = Report(found, consequences(found, receipts), (*problems, *wrong), sources)
    colours = sys.stdout.isatty() and options.format == "text"
    sys.stdout.write(rendered(told, options.format, color=colours))
    return FINDINGS if told.fails else OK


def _receipts(folder: str | None) -> list[dict[str, Any]] | None:
    """What the folder holds, verified; None where there is no such folder."""
    if folder is None:
        return []
    path = Path(folder)
    if not path.exists():
        print(f"frtspec: there is no {folder}", file=sys.stderr)
        return None
    from frtspec.live.receipts import read_all

    entries = read_all(path)
    return [{"file": e.file, "receipt": e.receipt, "problems": e.problems} for e in entries]


def _acceptances(
    given: str | None, new: Texts, setup: Run
) -> tuple[tuple[Any, ...], tuple[Diagnostic, ...], dict[str, SourceFile]]:
    """The rows of the file given, or of each spec root's ``accept.toml``. The newer side
    decides, always."""
    from frtspec.diff.accept import FILE, UNREADABLE, read_accept

    paths = [Path(given)] if given else [root / FILE for root in setup.config.specs]
    folder = setup.here / new.label
    if not given and folder.is_dir():
        paths = [folder / FILE]
    rows: list[Any] = []
    found: list[Diagnostic] = []
    sources: dict[str, SourceFile] = {}
    for path in paths:
        name = shown(path, setup.here)
        if not given and not path.exists():
            continue
        try:
            source = tomltext.decode(name, path.read_bytes())
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            found.append(Diagnostic(UNREADABLE, f"it can't be read: {reason}", Span(name, 0, 0)))
            continue
        sources[name] = source
        more, wrong = read_accept(source)
        rows += more
        found += wrong
    return tuple(rows), tuple(found), sources

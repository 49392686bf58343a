"""Retirement: a version goes when nothing names it any more, and says where to go from it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile, Span
from frtspec.diff.consequences import pins
from frtspec.ir.decl import Program
from frtspec.lock import Row

PINNED, NOTE = "FRT0925", "FRT0926"
_BLOCK_COMMENT = re.compile(r'"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|#[^\n]*')


def notes(rows: Iterable[Row], lock_path: str) -> Iterator[Diagnostic]:
    """Migration notes that are missing, or stand at a row that is not retired."""
    place = Span(lock_path, 0, 0)
    for row in rows:
        if row.status == "retired" and not (row.migration or "").strip():
            help = 'write into its row where to go: migration = "…"'
            yield Diagnostic(NOTE, f"{row} is retired and has no migration note", place, help=help)
        elif row.status != "retired" and row.migration is not None:
            told = f"{row} is {row.status} and has a migration note"
            yield Diagnostic(NOTE, told, place, help="take it out, or set status to retired")


def pinned(rows: Iterable[Row], program: Program, files: Collection[str]) -> Iterator[Diagnostic]:
    """Every declaration of the files that names a retired version."""
    retired = {row.key: row for row in rows if row.status == "retired"}
    seen = set()
    for pin in pins(program):
        row = retired.get(pin.to)
        ours = pin.span.path in files
        if row is not None and ours and (pin.by, row.key) not in seen:
            seen.add((pin.by, row.key))
            yield _pinned(row, str(pin.by), pin.span)


def missed(
    rows: Iterable[Row], sources: Mapping[str, SourceFile], there: frozenset[tuple[str, str, int]]
) -> Iterator[Diagnostic]:
    """Names of retired versions that are declared no more, told from the text alone, because
    what names them has errors for that reason."""
    for row in rows:
        if row.status != "retired" or row.key in there or row.version is None:
            continue
        if row.kind not in ("structure", "pipeline"):
            continue
        word = re.compile(rf"\b{re.escape(row.name)}(?:\.\w+)?\s+version\s+{row.version}\b")
        for path, source in sorted(sources.items()):
            code = _BLOCK_COMMENT.sub(lambda m: " " * len(m[0]), source.text)
            found = word.search(code)
            if found is not None:
                yield _pinned(row, f"`{path}`", Span(path, found.start(), found.end()))


def _pinned(row: Row, by: str, span: Span) -> Diagnostic:
    note = ((None, f"its migration note: {row.migration}"),) if row.migration else ()
    return Diagnostic(
        PINNED,
        f"{row} is retired, and {by} names it",
        span,
        notes=note,
        help="move it to a version that is not retired, and qualify it there",
    )

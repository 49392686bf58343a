"""The one layout for some lines of a file only.

The whole file is laid out, and of what changes that part is taken which the lines lie in: the
text between the nearest two line ends at which both layouts have written the same, so no token
and no comment is lost or doubled.
"""

from __future__ import annotations

import re

from frtspec.diag.source import SourceFile
from frtspec.syntax.fmt import FormatResult, format_source

_UNSEEN = re.compile(r"[\s,]+")
"""What the layout may add or leave out: blanks, line ends, trailing commas."""


def format_lines(source: SourceFile, first: int, last: int) -> FormatResult:
    """The file with lines ``first`` to ``last`` (from 1, both included) in the one layout.

    Refused like the whole where it has syntax errors. Lines behind the end are none.
    """
    whole = format_source(source)
    if whole.text is None:
        return whole
    old, new = source.text.splitlines(keepends=True), whole.text.splitlines(keepends=True)
    made: list[str] = []
    before = (0, 0)
    for at in _shared_ends(old, new):
        (i, j), (k, m) = before, at
        asked = i < last and k >= first
        made += new[j:m] if asked else old[i:k]
        before = at
    text = "".join(made)
    if format_source(SourceFile.from_text(source.path, text)).text != whole.text:
        return whole  # the two layouts could not be told apart by lines
    return FormatResult(text, whole.diagnostics)


def _shared_ends(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Line counts (in the old, in the new text) behind which both have written the same, in
    order; the last are all lines. Blank lines belong to what follows."""
    there = _written(new)
    found = [(count, there[key]) for key, count in _written(old).items() if key in there]
    return [*(pair for pair in found if pair < (len(old), len(new))), (len(old), len(new))]


def _written(lines: list[str]) -> dict[tuple[int, int, int], int]:
    """What stands in the first 1, 2, … lines -> how many lines these are at least. A comment
    may move before its member: characters count in any order."""
    found: dict[tuple[int, int, int], int] = {}
    size = third = fifth = 0
    for count, line in enumerate(lines, start=1):
        seen = _UNSEEN.sub("", line)
        size += len(seen)
        third += sum(ord(ch) ** 3 for ch in seen)
        fifth += sum(ord(ch) ** 5 for ch in seen)
        if seen:
            found.setdefault((size, third, fifth), count)
    return found

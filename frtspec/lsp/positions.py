"""Offsets and the positions of the protocol: lines from 0, columns in UTF-16 units."""

from __future__ import annotations

from lsprotocol import types

from frtspec.diag.source import SourceFile, Span


def position(source: SourceFile, offset: int) -> types.Position:
    """The position of an offset; one behind the end means the end."""
    line, column = source.position(min(max(offset, 0), len(source.text)))
    start = source.line_starts[line - 1]
    before = source.text[start : start + column - 1]
    return types.Position(line - 1, column - 1 + sum(ch > "\uffff" for ch in before))


def span_range(source: SourceFile, span: Span) -> types.Range:
    return types.Range(position(source, span.start), position(source, span.end))


def offset(source: SourceFile, at: types.Position) -> int:
    """The offset of a position; lines and columns that are not there mean the nearest."""
    if at.line >= len(source.line_starts):
        return len(source.text)
    start = source.line_starts[at.line]
    text = source.line(at.line + 1)
    units = 0
    for column, ch in enumerate(text):
        if units >= at.character:
            return start + column
        units += 2 if ch > "\uffff" else 1
    return start + len(text)


def whole(source: SourceFile) -> types.Range:
    return span_range(source, Span(source.path, 0, len(source.text)))

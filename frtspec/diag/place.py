"""Spans resolved to lines and columns, and source lines made safe to print."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from frtspec.diag.source import SourceFile, Span

TAB = "    "


@dataclass(frozen=True)
class Place:
    """A span as 1-based lines and columns; columns count code points.

    ``end_column`` is exclusive, as in SARIF: an empty span has equal columns.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


def place(span: Span, sources: Mapping[str, SourceFile]) -> Place | None:
    """Where the span lies, or None when its file has no text to point into."""
    source = sources.get(span.path)
    if source is None:
        return None
    size = len(source.text)
    start = min(max(span.start, 0), size)
    end = min(max(span.end, start), size)
    line, column = source.position(start)
    end_line, end_column = source.position(end)
    if end_line > line and end_column == 1:  # the line end belongs to the line it ends
        end_line -= 1
        end_column = len(source.line(end_line)) + 1
    return Place(span.path, line, column, end_line, max(end_column, 1))


def visible(text: str) -> str:
    """The text with tabs as four spaces and every unprintable character escaped, so
    that no byte of a spec can move the cursor or turn the reading order around."""
    if text.isprintable():
        return text
    return "".join(map(_visible_char, text))


def width(text: str) -> int:
    """Columns that ``visible`` text takes on a terminal: wide characters two, marks none."""
    if text.isascii():
        return len(text)
    return sum(_char_width(ch) for ch in text)


def _visible_char(ch: str) -> str:
    if ch == "\t":
        return TAB
    if ch.isprintable():
        return ch
    code = ord(ch)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _char_width(ch: str) -> int:
    if unicodedata.category(ch) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(ch) in ("W", "F") else 1

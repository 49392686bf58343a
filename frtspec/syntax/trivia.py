"""Comments: what the parser skips and the formatter keeps."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.source import Span


@dataclass(frozen=True, slots=True)
class Comment:
    """``# …`` to the end of its line. ``own_line``: nothing but blanks before it."""

    text: str
    own_line: bool
    span: Span

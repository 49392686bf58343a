"""Source text and positions in it.

Offsets count code points of the decoded text, as Lark does; lines and columns
are 1-based and derived on demand, so that nodes store two integers only.
"""

from __future__ import annotations

import bisect
import hashlib
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range ``[start, end)`` of code points in one source file.

    ``path`` is the path as the user gave it (never made absolute), so that
    messages and generated artefacts do not depend on the working folder.
    """

    path: str
    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The smallest span that covers both (same file)."""
        return Span(self.path, min(self.start, other.start), max(self.end, other.end))


NOWHERE = Span("", 0, 0)


@dataclass(frozen=True)
class SourceFile:
    """One decoded ``.frt`` file.

    ``digest`` is the sha256 of the *bytes* (the ``source_digest`` of the
    language): two files that differ only in line ends differ here.
    """

    path: str
    text: str
    digest: str = field(default="")

    @staticmethod
    def from_text(path: str, text: str) -> SourceFile:
        return SourceFile(path, text, hashlib.sha256(text.encode()).hexdigest())

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        starts = [0]
        starts.extend(i + 1 for i, ch in enumerate(self.text) if ch == "\n")
        return tuple(starts)

    def position(self, offset: int) -> tuple[int, int]:
        """1-based (line, column) of a code-point offset."""
        line = bisect.bisect_right(self.line_starts, offset) - 1
        return line + 1, offset - self.line_starts[line] + 1

    def line(self, number: int) -> str:
        """Text of the 1-based line, without its line end."""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

"""Braces that do not fit the indentation.

Where a brace is missing or one too many, a parser notices late and blames the wrong place.
People see it from the indentation, and so does this: it suggests the braces that would
make the two agree. The suggestions are used only where the text then reads better.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from frtspec.syntax.scanner import indent_at, lexemes, line_indent, skip_trivia

MOST = 10
"""More suggestions mean that the text is not indented in any usual way."""


@dataclass(frozen=True)
class Suggestion:
    """``{`` or ``}`` to be put at ``at``; with ``drop``, the brace there to be left out.

    ``opener``: the brace that a suggested ``}`` closes.
    """

    mark: str
    at: int
    drop: bool = False
    opener: int | None = None


@dataclass
class _Open:
    indent: int
    at: int
    long: bool  # the block begins on the next line


def suggestions(text: str) -> list[Suggestion]:
    """The braces that are missing or too many by the indentation, in order."""
    found: list[Suggestion] = []
    stack: list[_Open] = []
    heads: list[tuple[int, int]] = []  # (indent, end) of each line's last lexeme
    rounds = rounds_indent = 0  # open parentheses, and the indentation where they began
    end = 0
    for lexeme in lexemes(text):
        indent = indent_at(text, lexeme.start)
        if indent is not None:
            if indent <= rounds_indent and lexeme.text not in (")", "]"):
                rounds = 0  # one of them was not closed
            while (
                stack and stack[-1].long and rounds == 0 and _over(stack[-1], indent, lexeme.text)
            ):
                found.append(Suggestion("}", end, opener=stack.pop().at))
            heads.append((indent, lexeme.end))
        if heads:
            heads[-1] = (heads[-1][0], lexeme.end)
        if lexeme.text == "{":
            following = skip_trivia(text, lexeme.end)
            is_long = "\n" in text[lexeme.end : following]
            stack.append(_Open(line_indent(text, lexeme.start), lexeme.start, is_long))
        elif lexeme.text == "}":
            if indent is not None and not (stack and stack[-1].indent >= indent):
                found.append(_unopened(heads[:-1], indent, lexeme.start))
            elif stack:
                stack.pop()
            else:
                found.append(Suggestion("}", lexeme.start, drop=True))
        if lexeme.text in ("(", "["):
            rounds_indent = rounds_indent if rounds else line_indent(text, lexeme.start)
            rounds += 1
        elif lexeme.text in (")", "]"):
            rounds = max(0, rounds - 1)
        end = lexeme.end
    found += [Suggestion("}", end, opener=left.at) for left in reversed(stack)]
    return sorted(found, key=lambda s: s.at)


def _over(block: _Open, indent: int, text: str) -> bool:
    """Whether a line of this indentation can't be in the block any more."""
    return indent < block.indent or (indent == block.indent and text != "}")


def _unopened(heads: Sequence[tuple[int, int]], indent: int, at: int) -> Suggestion:
    """For a ``}`` whose block was not opened: the head that lacks its brace, when there is
    one with something in it; else the brace is one too many."""
    for number in range(len(heads) - 1, -1, -1):
        if heads[number][0] <= indent:
            if heads[number][0] == indent and number < len(heads) - 1:
                return Suggestion("{", heads[number][1])
            break
    return Suggestion("}", at, drop=True)


class Patch:
    """A text with suggestions carried out, and the way back to its offsets."""

    def __init__(self, text: str, made: Sequence[Suggestion]) -> None:
        parts: list[str] = []
        self.starts: list[int] = []  # where in the patched text each put brace stands
        last = width = 0
        for one in made:
            part = text[last : one.at]
            parts.append(part)
            width += len(part)
            last = one.at
            if one.drop:
                parts.append(" ")
                width += 1
                last += 1
            else:
                self.starts.append(width)
                parts.append(one.mark)
                width += 1
        parts.append(text[last:])
        self.text = "".join(parts)

    def origin(self, at: int) -> int:
        """The offset in the text as it was."""
        return at - bisect.bisect_left(self.starts, at)

"""Text cut into lexemes without regard to grammar: for messages, recovery and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from frtspec.diag.source import SourceFile, Span
from frtspec.syntax.trivia import Comment

_TRIVIA = re.compile(r"(?:[ \t\r\n\f]+|#[^\n]*)*")
_COMMENT = re.compile(r'"""[\s\S]*?(?:"""|\Z)|"(?:[^"\\\n]|\\.)*"?|(#[^\n]*)')
_LEXEME = re.compile(
    r"""
      (?P<docstring>\"{3}[\s\S]*?\"{3})
    | (?P<open_docstring>\"{3}[\s\S]*)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<open_string>"[^\n]*)
    | (?P<quoted>'[^'\n]*'?)
    | (?P<word>[^\W\d]\w*)
    | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    | (?P<mark>\.\.=|\.\.\.|\.\.|=>|->|\*\*|//|/\*|\?\?|<=|>=|==|!=|&&|\|\||:=|[{}()\[\],:;=.?!+*/%@<>|&-])
    | (?P<other>[\s\S])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Lexeme:
    """``kind``: word, number, string, docstring, mark, other, end, or one of the unclosed
    ``open_string``, ``open_docstring``, and ``quoted`` for ``'…'``."""

    kind: str
    text: str
    start: int
    end: int


def skip_trivia(text: str, at: int) -> int:
    """The offset of the next thing that is neither blank nor comment."""
    found = _TRIVIA.match(text, at)
    return found.end() if found else at


def lexeme_at(text: str, at: int) -> Lexeme:
    """The lexeme that starts at ``at``, which must not lie in blanks."""
    found = _LEXEME.match(text, at)
    if found is None or found.lastgroup is None:
        return Lexeme("end", "", len(text), len(text))
    return Lexeme(found.lastgroup, found[0], at, found.end())


def lexemes(text: str, at: int = 0) -> Iterator[Lexeme]:
    """Every lexeme from ``at`` on, without the end."""
    at = skip_trivia(text, at)
    while at < len(text):
        lexeme = lexeme_at(text, at)
        yield lexeme
        at = skip_trivia(text, lexeme.end)


def indent_at(text: str, at: int) -> int | None:
    """The width of the blanks before ``at`` when it is first on its line, else None."""
    start = text.rfind("\n", 0, at) + 1
    before = text[start:at]
    return None if before.strip(" \t\f") else len(before.expandtabs(8))


def line_indent(text: str, at: int) -> int:
    """The indentation of the line that ``at`` lies in."""
    start = text.rfind("\n", 0, at) + 1
    end = start
    while end < len(text) and text[end] in " \t":
        end += 1
    return len(text[start:end].expandtabs(8))


def comments(source: SourceFile) -> tuple[Comment, ...]:
    """Every comment in order; a ``#`` in a text or a docstring is none."""
    found = []
    for hit in _COMMENT.finditer(source.text):
        if hit[1] is None:
            continue
        text = hit[1].rstrip("\r")
        span = Span(source.path, hit.start(), hit.start() + len(text))
        own_line = indent_at(source.text, hit.start()) is not None
        found.append(Comment(text.rstrip(), own_line, span))
    return tuple(found)

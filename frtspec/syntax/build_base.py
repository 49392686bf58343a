"""What every part of the tree builder shares: spans, names, numbers, texts, findings."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile, Span
from frtspec.syntax import ast
from frtspec.syntax.grammar import RESERVED
from frtspec.syntax.nodes import Node, Token

ONE = Decimal(1)
MAX_DIGITS = 60
MAX_EXPONENT = 300
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}


def docstring_text(raw: str) -> str:
    """What a docstring says: dedented as Python does it, without blanks at line ends,
    with ``\\n`` between lines."""
    lines = inspect.cleandoc(raw[3:-3].replace("\r\n", "\n")).split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n")


class BaseBuilder:
    """Turns the concrete tree into syntax nodes; findings gather in ``diagnostics``."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.path = source.path
        self.diagnostics: list[Diagnostic] = []

    def build(self, node: Node | Token) -> Any:
        """The syntax node for one node or token, by the name of its rule or terminal."""
        if isinstance(node, Token):
            return getattr(self, f"token_{node.kind}")(node)
        return getattr(self, node.rule)(node)

    def many(self, nodes: Iterable[Node | Token]) -> tuple[Any, ...]:
        return tuple(self.build(node) for node in nodes)

    def maybe(self, node: Node | Token | None) -> Any:
        return None if node is None else self.build(node)

    def report(self, code: str, message: str, span: Span, help: str | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, message, span, help=help))

    # ------------------------------------------------------------ positions

    def span(self, node: Node | Token) -> Span:
        return Span(self.path, node.start, node.end)

    # ------------------------------------------------------------ leaves

    def name(self, token: Token) -> ast.Name:
        """A name; the reserved words are reported, whatever the place."""
        text = token.text
        span = self.span(token)
        if text in RESERVED:
            self.report(
                "FRT0106",
                f"`{text}` is a word of the language and can't be a name",
                span,
                help=f"call it `{text}_` or another name",
            )
        return ast.Name(text, span)

    def maybe_name(self, token: Token | None) -> ast.Name | None:
        return None if token is None else self.name(token)

    token_NAME = name

    def number(self, token: Token) -> ast.Number:
        """An exact number. Sizes beyond any use are refused here, so that no later
        phase has to guard its arithmetic."""
        text = token.text
        digits, _, exponent = text.lower().partition("e")
        power = exponent.lstrip("+-").lstrip("0") or "0"
        if len(digits) > MAX_DIGITS or len(power) > 3 or int(power) > MAX_EXPONENT:
            shown = text if len(text) <= 24 else f"{text[:12]}… ({len(text)} characters)"
            self.report(
                "FRT0111",
                f"the number {shown} is out of range",
                self.span(token),
                help=f"at most {MAX_DIGITS} digits and an exponent of at most {MAX_EXPONENT}",
            )
            text = "1"
        return ast.Number(Decimal(text), text, self.span(token))

    token_NUMBER = number

    def whole(self, token: Token, what: str) -> ast.Number:
        """A number that must be a whole one, such as a version."""
        number = self.number(token)
        if number.value != number.value.to_integral_value() or not number.text.isdigit():
            self.report(
                "FRT0111",
                f"the {what} must be a whole number, not {number.text}",
                number.span,
                help="write digits only",
            )
            return ast.Number(ONE, "1", number.span)
        return number

    def string(self, token: Token) -> ast.String:
        text = token.text[1:-1]
        if "\\" in text:
            text = "".join(self._unescaped(text, token.start + 1))
        return ast.String(text, self.span(token))

    token_STRING = string

    def maybe_string(self, token: Token | None) -> ast.String | None:
        return None if token is None else self.string(token)

    def _unescaped(self, text: str, start: int) -> Iterator[str]:
        at = 0
        while at < len(text):
            if text[at] != "\\":
                yield text[at]
                at += 1
                continue
            letter = text[at + 1]
            if letter not in _ESCAPES:
                self.report(
                    "FRT0114",
                    f"`\\{letter}` is no escape",
                    Span(self.path, start + at, start + at + 2),
                    help='the escapes are \\" \\\\ \\n \\t',
                )
            yield _ESCAPES.get(letter, letter)
            at += 2

    def docstring(self, token: Token) -> ast.Docstring:
        return ast.Docstring(docstring_text(token.text), token.text, self.span(token))

    def maybe_docstring(self, token: Token | None) -> ast.Docstring | None:
        return None if token is None else self.docstring(token)

    def names(self, tree: Node) -> tuple[ast.Name, ...]:
        return tuple(self.name(token) for token in tree.children)

    def error(self, tree: Node) -> ast.ErrorNode:
        return ast.ErrorNode(self.span(tree))

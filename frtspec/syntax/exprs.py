"""Expressions: the grammar's flat runs of operands and operators, folded by precedence.

From loosest to tightest: ``or``, ``and``, ``not``, comparisons and ``is``, ``??``,
``+ -``, ``* / // % @``, unary ``-``, ``**`` (which groups to the right).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from frtspec.diag.source import Span
from frtspec.syntax import ast
from frtspec.syntax.build_base import BaseBuilder
from frtspec.syntax.nodes import Node, Token

NOT, COMPARE, SUM, NEGATION, POWER = 3, 4, 6, 8, 9
LEVELS = {
    "or": 1,
    "and": 2,
    "is": COMPARE,
    "in": COMPARE,
    "??": 5,
    "**": POWER,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), COMPARE),
    **dict.fromkeys("+-", SUM),
    **dict.fromkeys(("*", "/", "//", "%", "@"), 7),
}
_INTERPOLATION = re.compile(r"\{([^{}]*)\}")


class ExprBuilder(BaseBuilder):
    def expr(self, tree: Node) -> ast.Expr:
        return _Fold(self, tree.children).whole()

    def paren(self, tree: Node) -> ast.Expr:
        inner: ast.Expr = self.build(tree.children[0])
        return inner

    def tuple_(self, tree: Node) -> ast.Tuple_:
        return ast.Tuple_(self.many(c for c in tree.children if c is not None), self.span(tree))

    def field(self, tree: Node) -> ast.Field:
        base, name = tree.children
        return ast.Field(self.build(base), ast.Name(name.text, self.span(name)), self.span(tree))

    def subscript(self, tree: Node) -> ast.Index:
        base, *items = tree.children
        return ast.Index(self.build(base), self.many(items), self.span(tree))

    def slice(self, tree: Node) -> ast.Slice:
        low, high = tree.children
        return ast.Slice(self.maybe(low), self.maybe(high), self.span(tree))

    def ellipsis(self, tree: Node) -> ast.EllipsisItem:
        return ast.EllipsisItem(self.span(tree))

    def present(self, tree: Node) -> ast.Present:
        return ast.Present(self.name(tree.children[1]), self.span(tree))

    # ------------------------------------------------------------ calls

    def call(self, tree: Node) -> ast.Call:
        func, args = tree.children
        return ast.Call(self.name(func), self.args(args), self.span(tree))

    def args(self, tree: Node) -> tuple[ast.Arg, ...]:
        return tuple(self._arg(child) for child in tree.children if child is not None)

    def maybe_args(self, tree: Node | None) -> tuple[ast.Arg, ...]:
        return () if tree is None else self.args(tree)

    def _arg(self, node: Node | Token) -> ast.Arg:
        if isinstance(node, Node) and node.rule == "named_arg":
            name, value = node.children
            return ast.Arg(self.build(value), self.name(name), self.span(node))
        return ast.Arg(self.build(node), None, self.span(node))

    def granularity(self, tree: Node) -> ast.Granularity:
        _, kind, size = tree.children
        number = None if size is None else self.whole(size, "size")
        return ast.Granularity(
            self.name(kind).id, None if number is None else int(number.value), self.span(tree)
        )

    def over_dim(self, tree: Node) -> ast.OverDim:
        return ast.OverDim(self.name(tree.children[1]), self.span(tree))

    def each_arg(self, tree: Node) -> ast.EachExpr:
        _, index, value = tree.children
        return ast.EachExpr(self.name(index), self.build(value), self.span(tree))

    # ------------------------------------------------------------ match

    def match(self, tree: Node) -> ast.Match:
        _, subject, arms = tree.children
        return ast.Match(self.build(subject), self.many(arms.children), self.span(tree))

    def arm(self, tree: Node) -> ast.MatchArm:
        pattern, value = tree.children
        return ast.MatchArm(self._pattern(pattern), self.build(value), self.span(tree))

    def _pattern(self, token: Token) -> ast.Name | ast.String | ast.Number | ast.Else:
        if token.text == "else":
            return ast.Else(self.span(token))
        built: ast.Name | ast.String | ast.Number = self.build(token)
        return built

    # ------------------------------------------------------------ ranges, dims, paths

    def range(self, tree: Node) -> ast.Range:
        low, dots, high = tree.children
        return ast.Range(self.build(low), self.build(high), dots.text == "..=", self.span(tree))

    def open_range(self, tree: Node) -> ast.Range:
        low, dots = tree.children
        if dots.text == "..=":
            self.report(
                "FRT0115",
                "an inclusive range needs an upper end",
                self.span(dots),
                help="write `..` for a range without an upper end, or add the end",
            )
        return ast.Range(self.build(low), None, False, self.span(tree))

    def dim_item(self, tree: Node) -> ast.DimItem:
        rows, *alternatives = tree.children
        return ast.DimItem(self.many(alternatives), rows is not None, self.span(tree))

    def dim_any(self, tree: Node) -> ast.DimItem:
        return ast.DimItem((), False, self.span(tree))

    def path_literal(self, token: Token) -> ast.HostPath:
        """``model.layers.{i}.mlp``, with a span for each part."""
        text = token.text
        start = token.start
        parts: list[ast.PathPart] = []
        at = 0
        for hit in _INTERPOLATION.finditer(text):
            if hit.start() > at:
                span = Span(self.path, start + at, start + hit.start())
                parts.append(ast.PathPart(text[at : hit.start()], None, span))
            span = Span(self.path, start + hit.start(), start + hit.end())
            parts.append(ast.PathPart(None, self._interpolated(hit, start), span))
            at = hit.end()
        if at < len(text):
            span = Span(self.path, start + at, start + len(text))
            parts.append(ast.PathPart(text[at:], None, span))
        return ast.HostPath(text, tuple(parts), self.span(token))

    def maybe_path(self, token: Token | None) -> ast.HostPath | None:
        return None if token is None else self.path_literal(token)

    def _interpolated(self, hit: re.Match[str], start: int) -> ast.Expr:
        """The expression in ``{…}``: names, whole numbers and ``+ - * // %``."""
        items: list[Any] = []
        want_operand = True
        for part in re.finditer(r"\s*([A-Za-z_]\w*|\d+|//|[-+*%]|\S)", hit[1]):
            text, at = part[1], start + hit.start(1) + part.start(1)
            kind = "NAME" if text[0].isalpha() or text[0] == "_" else "OP"
            kind = "NUMBER" if text.isdigit() else "MINUS" if text == "-" else kind
            if (kind in ("NAME", "NUMBER")) != want_operand or (
                kind == "OP" and text not in LEVELS
            ):
                break
            items.append(Token(kind, text, at, at + len(text)))
            want_operand = not want_operand
        else:
            if items and not want_operand:
                return _Fold(self, items).whole()
        span = Span(self.path, start + hit.start(), start + hit.end())
        self.report(
            "FRT0117",
            f"`{hit[0]}` in a host path is no index expression",
            span,
            help="write an index such as `{i}` or `{2 * i + 1}`",
        )
        return ast.ErrorNode(span)


Folded = tuple[Any, int, int]
"""A node with the range it covers, parentheses included."""


class _Fold:
    """Precedence climbing over one flat run."""

    def __init__(self, builder: ExprBuilder, items: Sequence[Any]) -> None:
        self.builder = builder
        self.items = items
        self.at = 0

    def whole(self) -> ast.Expr:
        node: ast.Expr = self._level(0)[0]
        return node

    def _span(self, start: int, end: int) -> Span:
        return Span(self.builder.path, start, end)

    def _operator(self) -> str | None:
        return self.items[self.at].text if self.at < len(self.items) else None

    def _level(self, level: int) -> Folded:
        left = self._prefix(level)
        while (op := self._operator()) is not None and LEVELS[op] >= level:
            self.at += 1
            if op == "is":
                left = self._is(left)
            elif op == "in":
                left = self._in(left)
            elif LEVELS[op] == COMPARE:
                left = self._chain(op, left)
            else:
                right = self._level(NEGATION if op == "**" else LEVELS[op] + 1)
                span = self._span(left[1], right[2])
                left = (ast.Binary(op, left[0], right[0], span), left[1], right[2])
        return left

    def _prefix(self, level: int) -> Folded:
        item = self.items[self.at]
        self.at += 1
        kind = getattr(item, "kind", None)
        if kind == "NOT":
            if level > NOT:
                self.builder.report(
                    "FRT0118",
                    "`not` needs parentheses here",
                    self.builder.span(item),
                    help="write `(not …)`",
                )
            inner = self._level(NOT)
        elif kind == "MINUS":
            inner = self._level(NEGATION)
        else:
            span = self.builder.span(item)
            return self.builder.build(item), span.start, span.end
        start = item.start
        op = "not" if kind == "NOT" else "-"
        return ast.Unary(op, inner[0], self._span(start, inner[2])), start, inner[2]

    def _chain(self, op: str, first: Folded) -> Folded:
        links: list[tuple[str, ast.Expr]] = []
        end = first[2]
        while True:
            right = self._level(COMPARE + 1)
            links.append((op, right[0]))
            end = right[2]
            following = self._operator()
            if following is None or following in ("is", "in") or LEVELS[following] != COMPARE:
                break
            op = following
            self.at += 1
        node = ast.Compare(first[0], tuple(links), self._span(first[1], end))
        return node, first[1], end

    def _is(self, left: Folded) -> Folded:
        negated = getattr(self.items[self.at], "kind", None) == "NOT"
        self.at += negated
        right = self._level(COMPARE + 1)
        span = self._span(left[1], right[2])
        values = right[0].items if isinstance(right[0], ast.Tuple_) else (right[0],)
        if isinstance(left[0], ast.ErrorNode) or any(isinstance(v, ast.ErrorNode) for v in values):
            return ast.ErrorNode(span), left[1], right[2]
        named = tuple(v for v in values if isinstance(v, ast.Name))
        if not isinstance(left[0], ast.Name | ast.Call) or len(named) != len(values):
            self.builder.report(
                "FRT0118",
                "`is` tests a variant axis by name",
                span,
                help="write `axis is value` or `axis is (a, b)`; compare other things with `==`",
            )
            return ast.ErrorNode(span), left[1], right[2]
        subject = left[0]
        node: ast.Expr = (
            ast.FactIs(subject, named, span)
            if isinstance(subject, ast.Call)
            else ast.Is(subject, named, span)
        )
        if negated:
            node = ast.Unary("not", node, span)
        return node, left[1], right[2]

    def _in(self, left: Folded) -> Folded:
        right = self._level(COMPARE + 1)
        values = right[0].items if isinstance(right[0], ast.Tuple_) else (right[0],)
        node = ast.OneOf(left[0], values, self._span(left[1], right[2]))
        return node, left[1], right[2]

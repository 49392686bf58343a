"""Dims in the syntax tree -> polynomials, axes and rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from frtspec.diag.source import Span
from frtspec.dims import (
    Axis,
    Constraint,
    DimError,
    Poly,
    Shape,
    at_least,
    at_most,
    axis,
    between,
    divides,
    equal,
    one_of,
)
from frtspec.sema.context import Context
from frtspec.syntax import ast

LARGEST = 2**53
"""Numbers in dims beyond this are mistakes, and slow ones."""

MOST_TERMS = 64
MOST_POWER = 16
DEEPEST = 100

INVALID, INVALID_RULE, TOO_LARGE = "FRT0301", "FRT0302", "FRT0317"


def whole(value: Decimal) -> int | None:
    """A number as an int when it is whole and of sane size."""
    if not value.is_finite() or value.adjusted() > 18:
        return None
    number = int(value)
    return number if number == value and abs(number) <= LARGEST else None


@dataclass
class Sizes:
    """Reads sizes against the dims in scope.

    ``indexed``: repeated dim -> its index; ``index``: the index whose ``each`` (or
    declaration) we are in, which alone may stand in ``N[i]``.
    """

    context: Context
    dims: tuple[str, ...]
    indexed: Mapping[str, str] = field(default_factory=dict)
    index: str | None = None

    # ------------------------------------------------------------ polynomials

    def poly(self, expr: object, depth: int = 0) -> Poly | None:
        """The polynomial, or None when it was reported."""
        if depth > DEEPEST:
            span = expr.span  # type: ignore[attr-defined]
            return self._bad(TOO_LARGE, "this size is nested too deeply", span)
        match expr:
            case ast.Name(id=name):
                return self._symbol(expr)
            case ast.Number(value=value):
                number = whole(value)
                if number is None:
                    problem = f"a size is a whole number up to 2**53, not {short(expr.text)}"
                    return self._bad(INVALID, problem, expr.span)
                return Poly.const(number)
            case ast.Unary(op="-", operand=operand):
                inner = self.poly(operand, depth + 1)
                return None if inner is None else -inner
            case ast.Binary():
                return self._binary(expr, depth)
            case ast.Index(base=ast.Name() as base, items=(ast.Name() as item,)):
                return self._indexed(base, item)
            case ast.Call(func=ast.Name(id="sum"), args=(ast.Arg(value=ast.Name() as name),)):
                return self._sum(name)
            case ast.ErrorNode():
                return None
            case _:
                return self._bad(
                    INVALID,
                    "this is no size",
                    expr.span,  # type: ignore[attr-defined]
                    "a size is made of dims, whole numbers, + - * /, N[i] and sum(N)",
                )

    def _bad(self, code: str, message: str, span: Span, help: str | None = None) -> Poly | None:
        """Report; always None, so that the caller can return it."""
        self.context.error(code, message, span, help=help)
        return None

    def _bad_rule(self, message: str, span: Span, help: str | None = None) -> Constraint | None:
        self.context.error(INVALID_RULE, message, span, help=help)
        return None

    def _symbol(self, name: ast.Name) -> Poly | None:
        if name.id in self.dims:
            self.context.use("dim", name.id)
            return Poly.symbol(name.id)
        if name.id in self.indexed:
            self.context.use("dim", name.id)
            index = self.indexed[name.id]
            return self._bad(
                "FRT0312",
                f"dim `{name.id}` is repeated",
                name.span,
                f"write `{name.id}[{index}]`, or sum({name.id})",
            )
        self.context.unknown("dim", name, [*self.dims, *self.indexed])
        return None

    def _indexed(self, base: ast.Name, item: ast.Name) -> Poly | None:
        if base.id not in self.indexed:
            if base.id in self.dims:
                self.context.use("dim", base.id)
                return self._bad("FRT0312", f"dim `{base.id}` is not repeated", base.span)
            self.context.unknown("dim", base, [*self.indexed, *self.dims])
            return None
        self.context.use("dim", base.id)
        if item.id != self.index or self.indexed[base.id] != item.id:
            wanted = self.indexed[base.id]
            return self._bad(
                "FRT0312",
                f"`{base.id}[{item.id}]` needs the index `{wanted}` here",
                item.span,
                f"it is known inside `each {wanted}` and in what is declared with `[{wanted}]`",
            )
        self.context.use("index", item.id)
        return Poly.symbol(f"{base.id}[{item.id}]")

    def _sum(self, name: ast.Name) -> Poly | None:
        if name.id in self.indexed:
            self.context.use("dim", name.id)
            return Poly.symbol(f"sum({name.id})")
        if name.id in self.dims:
            self.context.use("dim", name.id)
            return self._bad("FRT0312", f"dim `{name.id}` is not repeated", name.span)
        self.context.unknown("dim", name, self.indexed)
        return None

    def _binary(self, expr: ast.Binary, depth: int) -> Poly | None:
        if expr.op not in ("+", "-", "*", "/", "//", "**"):
            return self._bad(INVALID, f"`{expr.op}` has no place in a size", expr.span)
        left, right = self.poly(expr.left, depth + 1), self.poly(expr.right, depth + 1)
        if left is None or right is None:
            return None
        try:
            result = _apply(expr.op, left, right)
        except DimError as error:
            return self._bad(INVALID, str(error), expr.span)
        if result is None or not _sane(result):
            return self._bad(TOO_LARGE, "this size is too large to work with", expr.span)
        return result

    # ------------------------------------------------------------ shapes

    def shape(self, items: tuple[ast.DimItem, ...]) -> Shape | None:
        """A shape, or None when an axis was reported."""
        out: list[Axis | None] = []
        for position, item in enumerate(items):
            options = [self.poly(option) for option in item.alternatives]
            if item.rows and position:
                self._bad(INVALID, "`rows` stands first: it folds the leading axes", item.span)
                out.append(None)
            elif item.rows and len(options) != 1:
                self._bad(INVALID, "`rows` folds to one size", item.span)
                out.append(None)
            elif any(option is None for option in options):
                out.append(None)
            else:
                out.append(axis([o for o in options if o is not None], rows=item.rows))
        return None if None in out else tuple(a for a in out if a is not None)

    # ------------------------------------------------------------ rules

    def rules(self, exprs: tuple[ast.Expr, ...]) -> tuple[Constraint, ...]:
        """Every rule that could be read; ``a and b`` are two."""
        out: list[Constraint] = []
        for expr in exprs:
            if isinstance(expr, ast.Binary) and expr.op == "and":
                out += self.rules((expr.left, expr.right))
            else:
                rule = self._rule(expr)
                out += [] if rule is None else [rule]
        return tuple(out)

    def _rule(self, expr: ast.Expr) -> Constraint | None:
        match expr:
            case ast.Binary(op="==" | "!=" as op, left=left, right=right):
                first, links = left, ((op, right),)
            case ast.Compare(first=first, links=links):
                pass
            case ast.OneOf(subject=subject, values=values):
                return self._membership(subject, values)
            case ast.ErrorNode():
                return None
            case _:
                return self._bad_rule(
                    "this is no rule",
                    expr.span,
                    "a rule compares sizes: D >= 512, 512 <= D <= 16384, D % 16 == 0, H == 2*G, "
                    "D in (64, 128)",
                )
        rule = self._compare(first, links, expr.span)
        if rule is not None and not rule.symbols():
            return self._bad_rule("this rule names no dim: it is always the same", expr.span)
        return rule

    def _compare(
        self, first: ast.Expr, links: tuple[tuple[str, ast.Expr], ...], span: Span
    ) -> Constraint | None:
        if len(links) == 1 and links[0][0] == "==":
            return self._equation(first, links[0][1], span)
        sides = [self.poly(side) for side in (first, *(right for _, right in links))]
        if any(side is None for side in sides):
            return None
        sizes = [side for side in sides if side is not None]
        ops = [op for op, _ in links]
        if all(op in (">", ">=") for op in ops):
            sizes, ops = sizes[::-1], [op.replace(">", "<") for op in ops[::-1]]
        if not all(op in ("<", "<=") for op in ops) or len(sizes) > 3:
            return self._bad_rule(
                "a rule is one comparison, or a range read one way",
                span,
                "512 <= D <= 16384",
            )
        if len(sizes) == 2:
            return _ordered(sizes[0], sizes[1], strict=ops[0] == "<")
        low, middle, high = sizes
        low = low + 1 if ops[0] == "<" else low
        high = high - 1 if ops[1] == "<" else high
        ends = (low.as_int(), high.as_int())
        if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
            return self._bad_rule(f"nothing lies between {ends[0]} and {ends[1]}", span)
        return between(low, middle, high)

    def _membership(self, subject: ast.Expr, values: tuple[ast.Expr, ...]) -> Constraint | None:
        size = self.poly(subject)
        options = [self.poly(value) for value in values]
        if size is None or any(option is None for option in options):
            return None
        return one_of(size, *(option for option in options if option is not None))

    def _equation(self, left: ast.Expr, right: ast.Expr, span: Span) -> Constraint | None:
        if isinstance(left, ast.Binary) and left.op == "%":
            size, divisor, rest = self.poly(left.left), self.poly(left.right), self.poly(right)
            if size is None or divisor is None or rest is None:
                return None
            if divisor.as_int() == 0:
                return self._bad_rule("nothing can be divided by 0", span)
            return divides(divisor, size - rest)
        a, b = self.poly(left), self.poly(right)
        return None if a is None or b is None else equal(a, b)


def _ordered(low: Poly, high: Poly, strict: bool) -> Constraint:
    """``low <= high``, said about the side that is no plain number."""
    if low.as_int() is not None:
        return at_least(high, low + 1 if strict else low)
    return at_most(low, high - 1 if strict else high)


def _apply(op: str, left: Poly, right: Poly) -> Poly | None:
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            small = len(left.terms) * len(right.terms) <= MOST_TERMS**2
            return left * right if small else None
        case "**":
            power = right.as_int()
            if power is None or power < 0:
                raise DimError("the exponent of a size is a whole number")
            if power > MOST_POWER or len(left.terms) ** power > MOST_TERMS**2:
                return None
            return left**power
        case _:
            return left / right


def _sane(poly: Poly) -> bool:
    return (
        len(poly.terms) <= MOST_TERMS
        and poly.den <= LARGEST
        and all(abs(c) <= LARGEST for _, c in poly.terms)
        and all(abs(p) <= MOST_POWER for m, _ in poly.terms for _, p in m)
    )


def short(text: str) -> str:
    """A number's text, cut where it is longer than a line."""
    return text if len(text) <= 24 else f"a number of {len(text)} digits"

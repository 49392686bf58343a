"""``keep when``: conditions over what calibration measures, checked and made plain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from frtspec.diag.source import Span
from frtspec.ir import decl as ir
from frtspec.ir import words
from frtspec.sema.common import one_of
from frtspec.sema.context import Context, listing
from frtspec.sema.target import Target
from frtspec.syntax import ast

DECISION, NEEDS = "FRT0507", "FRT0505"

_ORDER = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}
"""Comparison -> what holds where it does not."""

HOW = "write for instance: keep when amax > 20 * median(amax)"


@dataclass
class Decisions:
    """Builds the condition of one route. ``stats``: what the route measures; ``used``: those
    that the condition asks about."""

    context: Context
    target: Target
    stats: Sequence[ir.Stat]
    used: set[ir.Stat] = field(default_factory=set)

    def condition(self, node: ast.Expr, negated: bool = False) -> ir.Condition | None:
        """The condition, ``not`` carried down to the comparisons; None when reported."""
        match node:
            case ast.Unary(op="not", operand=inner):
                return self.condition(inner, not negated)
            case ast.Binary(op="and" | "or" as word):
                parts = [self.condition(side, negated) for side in (node.left, node.right)]
                known = [part for part in parts if part is not None]
                other = {"and": "or", "or": "and"}[word] if negated else word
                return None if len(known) < 2 else ir.Together(other, _flat(other, known))
            case ast.Compare(first=first, links=links):
                return self.comparison(node, first, links, negated)
            case ast.ErrorNode():
                return None
            case _:
                self.bad("a decision compares two amounts", node.span)
                return None

    def comparison(
        self,
        node: ast.Compare,
        first: ast.Expr,
        links: Sequence[tuple[str, ast.Expr]],
        negated: bool,
    ) -> ir.Condition | None:
        found: list[ir.Condition] = []
        left = self.amount(first)
        for op, side in links:
            right = self.amount(side)
            if op not in _ORDER:
                self.bad(
                    f"`{op}` decides nothing here: measured numbers are never equal", node.span
                )
                return None
            if left is None or right is None:
                return None
            if not _depends(left) and not _depends(right):
                self.bad("this compares two numbers: it decides nothing", node.span)
                return None
            found.append(ir.Comparison(left, _ORDER[op] if negated else op, right))
            left = right
        if len(found) == 1:
            return found[0]
        return ir.Together("or" if negated else "and", tuple(found))

    # ------------------------------------------------------------ amounts

    def amount(self, node: ast.Expr) -> ir.Amount | None:
        match node:
            case ast.Number(value=value):
                return ir.Amount("number", value=value)
            case ast.Unary(op="-", operand=ast.Number(value=value)):
                return ir.Amount("number", value=-value)
            case ast.Binary(op="+" | "-" | "*" | "/" as op, left=left, right=right):
                parts = [self.amount(left), self.amount(right)]
                known = tuple(part for part in parts if part is not None)
                return None if len(known) < 2 else ir.Amount(op, parts=known)
            case ast.Name(id="capability"):
                return ir.Amount("capability")
            case ast.Name(id="amax"):
                self.needs(node.span, "amax", None, "tensor")
                return ir.Amount("amax")
            case ast.Name() as name:
                return self.dim(name, "dim")
            case ast.Call(func=ast.Name() as func, args=args):
                return self.call(node, func, args)
            case ast.ErrorNode():
                return None
            case _:
                self.bad("this is no amount", node.span)
                return None

    def call(self, node: ast.Call, func: ast.Name, args: Sequence[ast.Arg]) -> ir.Amount | None:
        name = one_of(self.context, "amount", func, words.AMOUNTS)
        if name is None:
            return None
        values = [arg.value for arg in args]
        shape = words.AMOUNTS[name][0]
        named = any(arg.name is not None for arg in args)
        if named or len(values) != len(shape) or not isinstance(values[0], ast.Name):
            message = f"`{name}` is written {name}({', '.join(shape)})"
            self.context.error(DECISION, message, node.span)
            return None
        if shape[0] == "amax":
            return self.median(values[0])
        if shape[0] == "rows":
            return self.dim(values[0], name, rows=True)
        share: Decimal | None = None
        if len(shape) > 1:
            given = values[1]
            if not isinstance(given, ast.Number) or not 0 < given.value < 1:
                self.bad("a share lies between 0 and 1", given.span)
                return None
            share = given.value
        return self.at_point(name, values[0], share)

    def median(self, name: ast.Name) -> ir.Amount | None:
        if name.id != "amax":
            self.bad("`median` is that of amax, over every point of every seat", name.span)
            return None
        return ir.Amount("median")

    def at_point(self, kind: str, point: ast.Name, share: Decimal | None) -> ir.Amount | None:
        known = [p.name for p in self.target.points]
        if point.id not in known:
            self.context.unknown("point", point, known)
            return None
        stat, grains = words.AMOUNT_NEEDS[kind]
        self.needs(point.span, stat, point.id, *grains)
        return ir.Amount(kind, point.id, share)

    def needs(self, span: Span, stat: str, point: str | None, *grains: str) -> None:
        """The route has to measure what an amount is made of; any amax gives the tensor's."""
        fitting = [
            s
            for s in self.stats
            if s.stat == stat
            and (point is None or s.point == point)
            and (grains == ("tensor",) or s.granularity is None or s.granularity[0] in grains)
        ]
        self.used |= set(fitting[:1] if point is not None else fitting)
        if not fitting:
            where = f"{point}: " if point is not None else ""
            wanted = " or ".join(f"{where}{stat} per {grain}" for grain in grains)
            message = "this asks about what is not measured here"
            self.context.error(NEEDS, message, span, help=f"add {wanted}")

    def dim(self, name: ast.Name, kind: str, rows: bool = False) -> ir.Amount | None:
        structure = self.target.structure
        counted = [
            s
            for port in structure.inputs
            for axis in port.shape
            if axis.rows
            for s in axis.symbols()
        ]
        if rows:
            if name.id not in counted:
                message = f"`{name.id}` does not count rows"
                help = f"{listing(counted)} does" if counted else None
                self.context.error(DECISION, message, name.span, help=help)
                return None
        elif name.id in counted:
            message = f"row counts differ from call to call: max({name.id}) or min({name.id})?"
            self.context.error(DECISION, message, name.span)
            return None
        elif name.id not in structure.dims:
            free = [dim for dim in structure.dims if dim not in counted]
            self.context.unknown("amount", name, [*words.AMOUNTS, "capability", *free])
            return None
        return ir.Amount(kind, name.id)

    def bad(self, message: str, span: Span) -> None:
        self.context.error(DECISION, message, span, help=HOW)


def _flat(word: str, parts: Sequence[ir.Condition]) -> tuple[ir.Condition, ...]:
    """``a and (b and c)`` as one list."""
    out: list[ir.Condition] = []
    for part in parts:
        out += part.parts if isinstance(part, ir.Together) and part.word == word else [part]
    return tuple(out)


def _depends(amount: ir.Amount) -> bool:
    return any(kind != "number" for kind in _kinds(amount))


def _kinds(amount: ir.Amount) -> Iterator[str]:
    if not amount.parts:
        yield amount.kind
    for part in amount.parts:
        yield from _kinds(part)

"""A dataflow cut down to the variants that an impl serves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from frtspec.codegen.exprsrc import transformed
from frtspec.ir.decl import Port, Slot, Structure
from frtspec.ir.expr import (
    AllOf,
    AnyOf,
    AxisIs,
    Cond,
    Each,
    Expr,
    IsPresent,
    Let,
    Not,
    Scan,
    Select,
    Stmt,
)


@dataclass(frozen=True)
class Specialised:
    """``axes``: the values left of each variant axis; ``absent``: values that never exist."""

    axes: Mapping[str, tuple[str, ...]]
    absent: frozenset[str]

    @staticmethod
    def of(structure: Structure, only: Mapping[str, tuple[str, ...]]) -> Specialised:
        axes = {
            v.name: tuple(x for x in v.values if x in only.get(v.name, v.values))
            for v in structure.variants
        }
        first = Specialised(axes, frozenset())
        values: list[Port | Slot] = [*structure.inputs, *structure.slots]
        gone = [v.name for v in values if v.when is not None and first.known(v.when) is False]
        return Specialised(axes, frozenset(gone))

    def known(self, cond: Cond) -> bool | None:
        """Whether the condition always or never holds; None where it depends."""
        left = self.condition(cond)
        return left if isinstance(left, bool) else None

    def condition(self, cond: Cond) -> Cond | bool:
        """What is left to ask of a condition."""
        match cond:
            case AxisIs(axis=axis, values=values):
                kept = tuple(value for value in values if value in self.axes[axis])
                return AxisIs(axis, kept) if 0 < len(kept) < len(self.axes[axis]) else bool(kept)
            case IsPresent(name=name):
                return False if name in self.absent else cond
            case Not(cond=inner):
                left = self.condition(inner)
                return not left if isinstance(left, bool) else Not(left)
            case AllOf(conds=conds):
                return self._joined(conds, AllOf, stop=False)
            case AnyOf(conds=conds):
                return self._joined(conds, AnyOf, stop=True)

    def _joined(self, conds: Iterable[Cond], kind: type[AllOf | AnyOf], stop: bool) -> Cond | bool:
        left = [self.condition(cond) for cond in conds]
        if stop in left:
            return stop
        open_ones = tuple(cond for cond in left if not isinstance(cond, bool))
        if not open_ones:
            return not stop
        return open_ones[0] if len(open_ones) == 1 else kind(open_ones)

    def statements(self, stmts: Iterable[Stmt]) -> list[Stmt]:
        """The statements that can run, with the choices left in them."""
        out: list[Stmt] = []
        for stmt in stmts:
            match stmt:
                case Let():
                    out += self._let(stmt)
                case Each(body=body):
                    out.append(replace(stmt, body=tuple(self.statements(body))))
                case Scan(body=body, carries=carries):
                    starts = tuple((name, self.expression(start)) for name, start in carries)
                    inner = tuple(self.statements(body))
                    out.append(replace(stmt, carries=starts, body=inner))
        return out

    def _let(self, let: Let) -> list[Stmt]:
        left = True if let.when is None else self.condition(let.when)
        if left is False and let.otherwise is None:
            return []
        value = let.otherwise if left is False and let.otherwise is not None else let.value
        keeps_both = not isinstance(left, bool) and let.otherwise is not None
        return [
            replace(
                let,
                value=self.expression(value),
                when=None if isinstance(left, bool) else left,
                otherwise=self.expression(let.otherwise) if keeps_both and let.otherwise else None,
            )
        ]

    def expression(self, expr: Expr) -> Expr:
        """The expression with arms of unserved variants dropped."""
        return transformed(expr, self._choice)

    def _choice(self, expr: Expr) -> Expr:
        if not isinstance(expr, Select):
            return expr
        served = self.axes[expr.axis]
        arms = [(tuple(v for v in values if v in served), arm) for values, arm in expr.arms]
        arms = [(values, arm) for values, arm in arms if values]
        return arms[0][1] if len(arms) == 1 else replace(expr, arms=tuple(arms))

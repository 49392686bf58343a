"""Types of a structure's values, and its statements by place.

The axes that ops work on are settled in the IR already; what generated code still
needs are the shapes of values that are no ports: the ends of seams.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from frtspec.codegen.exprsrc import transformed
from frtspec.ir.decl import Structure
from frtspec.ir.expr import Each, Expr, Let, Op, Scan, Stmt
from frtspec.ir.types import UNKNOWN, ValueType
from frtspec.sema.combos import combos
from frtspec.sema.typing import infer


def value_types(structure: Structure) -> Mapping[str, ValueType]:
    """The type of every value, as its last definition gives it."""
    return _value_types(_Same(structure))


class _Same:
    """A structure as a key by identity: its impls ask for the types of the same one."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure

    def __hash__(self) -> int:
        return id(self.structure)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.structure is self.structure


@lru_cache(maxsize=64)
def _value_types(same: _Same) -> Mapping[str, ValueType]:
    structure = same.structure
    types: dict[str, ValueType] = {}
    open_axes = replace(structure, reference=tuple(map(_unsettled, structure.reference)))
    for combo in combos(structure):
        known = infer(open_axes, combo).values
        types.update({name: value for name, value in known.items() if value != UNKNOWN})
    return types


def _unsettled(stmt: Stmt) -> Stmt:
    """A statement whose ops name their axes only the way the spec did."""
    match stmt:
        case Let(value=value, otherwise=otherwise):
            other = None if otherwise is None else transformed(otherwise, _open)
            return replace(stmt, value=transformed(value, _open), otherwise=other)
        case Each(body=body):
            return replace(stmt, body=tuple(map(_unsettled, body)))
        case Scan(carries=carries, body=body):
            starts = tuple((name, transformed(start, _open)) for name, start in carries)
            return replace(stmt, carries=starts, body=tuple(map(_unsettled, body)))


def _open(expr: Expr) -> Expr:
    if isinstance(expr, Op) and expr.attr("over"):
        kept = tuple((name, value) for name, value in expr.attrs if name != "axis")
        return Op(expr.op, expr.args, kept, expr.span)
    return expr

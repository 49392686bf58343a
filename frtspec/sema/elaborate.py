"""Settling ops: what typing found out about axes becomes part of the IR.

``softmax(s, over Skv)`` gets ``axis = -1``, ``contract`` its equation: the same in
every combination, or the op is ambiguous.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from frtspec.ir import expr as ir
from frtspec.ir.decl import Structure
from frtspec.sema.typing import Typing


def elaborate(
    structure: Structure, typings: Sequence[Typing]
) -> tuple[Structure, tuple[ir.Op, ...]]:
    """The structure with every op's axes settled, and the ops whose axes differ between
    combinations. Ops that no combination runs stay as they are."""
    found: dict[int, Mapping[str, ir.Attr]] = {}
    differing: dict[int, ir.Op] = {}
    for typing in typings:
        for op, call, _, _ in typing.trace:
            if found.setdefault(id(op), call.found) != call.found:
                differing[id(op)] = op
    body = tuple(_stmt(s, found) for s in structure.reference)
    return replace(structure, reference=body), tuple(differing.values())


def _stmt(stmt: ir.Stmt, found: Mapping[int, Mapping[str, ir.Attr]]) -> ir.Stmt:
    match stmt:
        case ir.Let(value=value, otherwise=otherwise):
            other = None if otherwise is None else _expr(otherwise, found)
            return replace(stmt, value=_expr(value, found), otherwise=other)
        case ir.Each(body=body):
            return replace(stmt, body=tuple(_stmt(s, found) for s in body))
        case ir.Scan(body=body, carries=carries):
            return replace(
                stmt,
                carries=tuple((name, _expr(start, found)) for name, start in carries),
                body=tuple(_stmt(s, found) for s in body),
            )


def _expr(expr: ir.Expr, found: Mapping[int, Mapping[str, ir.Attr]]) -> ir.Expr:
    match expr:
        case ir.Op(args=args, attrs=attrs):
            merged = dict(attrs) | dict(found.get(id(expr), {}))
            return replace(
                expr,
                args=tuple(_expr(arg, found) for arg in args),
                attrs=tuple(sorted(merged.items())),
            )
        case ir.Select(arms=arms):
            return replace(expr, arms=tuple((v, _expr(arm, found)) for v, arm in arms))
        case ir.EachOf(value=value):
            return replace(expr, value=_expr(value, found))
        case _:
            return expr

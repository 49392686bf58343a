"""Resolve a dataflow: put what shape rules found out about axes into every op.

An op says ``over Dk``; its Python needs ``dim=-2``. Typing finds that out for each
combination of variants; here the answers are written into the ops' attributes. They
have to be the same in every combination, because the generated function is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from frtspec.codegen.exprsrc import children, rebuilt
from frtspec.codegen.unsupported import Unsupported
from frtspec.ir.decl import Structure
from frtspec.ir.expr import Attr, Each, Expr, Let, Op, Scan, Stmt
from frtspec.ir.types import ValueType
from frtspec.sema.combos import combos
from frtspec.sema.typing import infer

Found = Mapping[int, Mapping[str, Attr]]


@dataclass(frozen=True)
class Resolved:
    """``body``: the reference with every op resolved. ``types``: the type of every value,
    as its last definition gives it."""

    body: tuple[Stmt, ...]
    types: Mapping[str, ValueType]

    def of(self, stmts: Iterable[Stmt]) -> tuple[Stmt, ...]:
        """The resolved form of some of the reference's statements."""
        known = {stmt.span: stmt for stmt in self.body}
        return tuple(known[stmt.span] for stmt in stmts)


def resolve(structure: Structure) -> Resolved:
    """Resolve the reference of a structure that type-checks."""
    found: dict[int, dict[str, Attr]] = {}
    types: dict[str, ValueType] = {}
    for combo in combos(structure):
        typing = infer(structure, combo)
        types.update(typing.values)
        for op, attrs in typing.found.items():
            if found.setdefault(op, dict(attrs)) != attrs:
                raise Unsupported(
                    f"in {structure.name}, an op on axes that differ between variants",
                    structure.origin.span,
                )
    body = tuple(_statement(stmt, found) for stmt in structure.reference)
    return Resolved(body, types)


def _statement(stmt: Stmt, found: Found) -> Stmt:
    match stmt:
        case Let(value=value, otherwise=otherwise):
            other = None if otherwise is None else _expression(otherwise, found)
            return replace(stmt, value=_expression(value, found), otherwise=other)
        case Each(body=body):
            return replace(stmt, body=tuple(_statement(s, found) for s in body))
        case Scan(carries=carries, body=body):
            starts = tuple((name, _expression(start, found)) for name, start in carries)
            return replace(stmt, carries=starts, body=tuple(_statement(s, found) for s in body))


def _expression(expr: Expr, found: Found) -> Expr:
    out = rebuilt(expr, [_expression(child, found) for child in children(expr)])
    if isinstance(out, Op) and id(expr) in found:
        attrs = {**dict(out.attrs), **found[id(expr)]}
        return Op(out.op, out.args, tuple(attrs.items()), out.span)
    return out

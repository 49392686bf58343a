"""Definitions that nothing reads."""

from __future__ import annotations

from collections.abc import Iterable

from frtspec.ir import expr as ir
from frtspec.ir.walk import defines, reads


def unread(body: Iterable[ir.Stmt], kept: frozenset[str]) -> list[ir.Let]:
    """``let``s whose value no later statement reads; names in ``kept`` are read at the end.

    A ``let … when`` that rebinds reads the value before it.
    """
    out: list[ir.Let] = []
    open_: dict[str, list[ir.Let]] = {}
    for stmt in body:
        for name in reads(stmt):
            open_.pop(name, None)
        if isinstance(stmt, ir.Each | ir.Scan):
            out += unread(stmt.body, frozenset())
        for name in defines(stmt):
            out += open_.pop(name, [])
            if isinstance(stmt, ir.Let) and stmt.kind == "let":
                open_[name] = [stmt]
    return out + [let for name, lets in open_.items() if name not in kept for let in lets]

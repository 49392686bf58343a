"""What an operand of a product is: its casts and transposes taken off, or put around it."""

from __future__ import annotations

from frtspec.codegen.exprsrc import children, rebuilt
from frtspec.ir.expr import Expr, Op, Ref

CASTS = frozenset({"f32", "bf16", "fp16", "cast"})


def root_of(expr: Expr) -> Expr:
    """What an expression is without its casts."""
    while isinstance(expr, Op) and expr.op in CASTS:
        expr = expr.args[0]
    return expr


def weight_of(expr: Expr) -> Ref | None:
    """The slot that an operand is, transposed or not."""
    root = root_of(expr)
    if isinstance(root, Op) and root.op == "transpose":
        root = root_of(root.args[0])
    return root if isinstance(root, Ref) and root.kind == "slot" else None


def cast(dtype: str, value: Expr) -> Expr:
    """``value`` in a dtype of the language."""
    if dtype == "f32" and isinstance(value, Op) and value.op == "f32":
        return value
    return Op(dtype, (value,), (("dtype", dtype),), value.span)


def transposed(value: Expr) -> Expr:
    """The last two axes swapped; twice is not at all."""
    if isinstance(value, Op) and value.op == "transpose" and isinstance(value.args[0], Ref):
        return value.args[0]
    return Op("transpose", (value,), (("pair", (-2, -1)),), value.span)


def plain(expr: Expr) -> Expr:
    """A product with its double transposes undone."""
    args = []
    for arg in children(expr):
        inner = arg.args[0] if isinstance(arg, Op) and arg.op == "transpose" else None
        twice = isinstance(inner, Op) and inner.op == "transpose"
        args.append(inner.args[0] if twice and isinstance(inner, Op) else arg)
    return rebuilt(expr, args)

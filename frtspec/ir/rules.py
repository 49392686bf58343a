"""Shape and dtype rules of the ops.

A rule takes one ``OpCall`` and gives the type of its result; what it finds out
about axes (``over Dk`` is axis -2) it leaves in ``OpCall.found`` for the lowering.
Rules raise ``OpError``; operands of unknown type never reach them.
"""

from __future__ import annotations

from collections.abc import Callable
from string import ascii_lowercase
from typing import cast

from frtspec.dims import Axis, Poly, Shape, shape_text
from frtspec.ir.opcall import OpCall
from frtspec.ir.types import (
    FLOATS,
    SCALAR,
    OpError,
    Scalar,
    Tensor,
    ValueType,
    broadcast,
    need_float,
    promote,
    size_of,
)

Rule = Callable[[OpCall], ValueType]


# ---------------------------------------------------------------- elementwise


def unary(call: OpCall) -> ValueType:
    x = call.tensor(0)
    need_float(x.dtype)
    return x


def negate(call: OpCall) -> ValueType:
    return SCALAR if isinstance(call.args[0], Scalar) else unary(call)


def arithmetic(call: OpCall) -> ValueType:
    left, right = call.args
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return Tensor(broadcast(left.shape, right.shape), promote(left.dtype, right.dtype))
    tensor = left if isinstance(left, Tensor) else right
    if isinstance(tensor, Tensor):
        need_float(tensor.dtype)
    return tensor


def power(call: OpCall) -> ValueType:
    call.scalar(1)
    return arithmetic(call)


def where(call: OpCall) -> ValueType:
    condition = call.tensor(0)
    if condition.dtype != "bool":
        raise OpError("dtype", f"`where` chooses by a bool tensor, not by {condition}")
    value = arithmetic(OpCall(call.op, call.args[1:], {}))
    if not isinstance(value, Tensor):
        raise OpError("argument", "`where` needs a tensor among what it chooses from")
    return Tensor(broadcast(condition.shape, value.shape), value.dtype)


def convert(call: OpCall) -> ValueType:
    x = call.tensor(0)
    if call.attrs["dtype"] in FLOATS and x.dtype in FLOATS + ("bool", "int32", "int64"):
        return Tensor(x.shape, cast(str, call.attrs["dtype"]))
    if x.dtype in ("fp8_e4m3", "fp8_e5m2", "int8"):  # exact in f32; the scale is multiplied on
        return Tensor(x.shape, cast(str, call.attrs["dtype"]))
    raise OpError("dtype", f"{x.dtype} cannot be cast to {call.attrs['dtype']}")


def convert_like(call: OpCall) -> ValueType:
    like = call.tensor(1)
    return convert(OpCall(call.op, call.args[:1], {"dtype": like.dtype}))


def quantize(call: OpCall) -> ValueType:
    x = call.tensor(0)
    need_float(x.dtype)
    return Tensor(x.shape, cast(str, call.attrs["format"]))


def opaque(call: OpCall) -> ValueType:
    """A part of the host: its result has the type of one of its arguments."""
    return call.tensor(1 + call.whole("like"))


# ---------------------------------------------------------------- norms and reductions


def norm(call: OpCall) -> ValueType:
    """``rms_norm``, ``layer_norm``, ``l2norm``: over the last axis, or over those named."""
    x = call.tensor(0)
    need_float(x.dtype)
    call.scalar(1)
    positions = call.axes(x.shape, -1)
    for k in range(2, len(call.args)):
        affine = call.tensor(k)
        wanted = tuple(x.shape[p] for p in positions)
        if affine.shape != wanted:
            raise OpError(
                "shape",
                f"`{call.op}` normalises over {shape_text(wanted)}, "
                f"but argument {k + 1} is {shape_text(affine.shape)}",
            )
        _same_dtype(call.op, x, affine)
    return x


def softmax(call: OpCall) -> ValueType:
    x = call.tensor(0)
    need_float(x.dtype)
    call.axis(x.shape, -1)
    return x


def reduce_axes(call: OpCall) -> ValueType:
    x = call.tensor(0)
    need_float(x.dtype)
    gone = {p + len(x.shape) for p in call.axes(x.shape, -1)}
    return Tensor(tuple(item for k, item in enumerate(x.shape) if k not in gone), x.dtype)


def mask(call: OpCall) -> ValueType:
    x = call.tensor(0)
    need_float(x.dtype)
    if len(x.shape) < 2 or any(item.rows for item in x.shape[-2:]):
        raise OpError("shape", f"`{call.op}` needs scores [..., queries, keys], not {x}")
    return x


# ---------------------------------------------------------------- products


def _same_dtype(op: str, a: Tensor, b: Tensor) -> None:
    need_float(a.dtype)
    need_float(b.dtype)
    if a.dtype != b.dtype:
        raise OpError(
            "dtype",
            f"`{op}` takes equal dtypes, not {a.dtype} and {b.dtype}",
            "cast one of them: f32(…), or cast(…, x)",
        )


def matmul(call: OpCall) -> ValueType:
    a, b = call.tensor(0), call.tensor(1)
    if len(a.shape) < 2 and not (a.shape and not a.shape[0].rows) or len(b.shape) < 2:
        raise OpError(
            "shape",
            f"`@` needs [..., K] and [K, N], not {shape_text(a.shape)} and {shape_text(b.shape)}",
        )
    if a.shape[-1] != b.shape[-2]:
        swapped = len(b.shape) == 2 and a.shape[-1] == b.shape[-1]
        raise OpError(
            "shape",
            f"`@` contracts {a.shape[-1]} of {shape_text(a.shape)} with {b.shape[-2]} "
            f"of {shape_text(b.shape)}",
            (
                "the right side is laid out out_in: declare it "
                f"[{b.shape[1]}, {b.shape[0]}], or write linear(x, w)"
                if swapped
                else None
            ),
        )
    _same_dtype("@", a, b)
    lead = broadcast(a.shape[:-2], b.shape[:-2]) if len(b.shape) > 2 else a.shape[:-2]
    return Tensor(lead + a.shape[-2:-1] + b.shape[-1:], a.dtype)


def linear(call: OpCall) -> ValueType:
    x, w = call.tensor(0), call.tensor(1)
    if len(w.shape) != 2:
        raise OpError("shape", f"`linear` needs a weight [N, K], not {shape_text(w.shape)}")
    out, inner = w.shape
    if not x.shape or x.shape[-1] != inner:
        swapped = bool(x.shape) and x.shape[-1] == out
        raise OpError(
            "shape",
            f"`linear` contracts the last axis of {shape_text(x.shape)} with {inner} "
            f"of {shape_text(w.shape)}",
            "the weight is laid out in_out: write x @ w" if swapped else None,
        )
    _same_dtype(call.op, x, w)
    if len(call.args) > 2:
        bias = call.tensor(2)
        if bias.shape != (out,):
            raise OpError("shape", f"`linear` needs a bias [{out}], not {shape_text(bias.shape)}")
        _same_dtype(call.op, x, bias)
    return Tensor(x.shape[:-1] + (out,), x.dtype)


def contract(call: OpCall) -> ValueType:
    """Einsum by named axes: equal axes align, those of ``over`` are summed away.

    The result has the axes of the first operand, then the others of the second.
    """
    a, b = call.tensor(0), call.tensor(1)
    _same_dtype(call.op, a, b)
    over = [Poly.symbol(name) for name in call.over()]
    for operand in (a, b):
        for item in operand.shape:
            if operand.shape.count(item) > 1:
                raise OpError(
                    "shape",
                    f"`contract` aligns axes by name, but {shape_text(operand.shape)} has "
                    f"{item} twice",
                    "give the two axes dims of their own",
                )
    for name in over:
        if name not in a.shape or name not in b.shape:
            short = a if name not in a.shape else b
            raise OpError(
                "shape",
                f"`contract` runs over {name}, but {shape_text(short.shape)} has no axis {name}",
            )
    kept = [item for item in a.shape if item not in over]
    kept += [item for item in b.shape if item not in over and item not in a.shape]
    call.found["equation"] = _equation(a.shape, b.shape, tuple(kept))
    return Tensor(tuple(kept), a.dtype)


def _equation(a: Shape, b: Shape, out: Shape) -> str:
    """Letters after the dims where they are free: ``[B, H, Dk]`` is ``bhd``."""
    letters: dict[Axis, str] = {}
    for item in a + b:
        if item.rows:
            letters[item] = "..."
        elif item not in letters:
            wanted = [c for c in str(item).lower() if c in ascii_lowercase] + list(ascii_lowercase)
            letters[item] = next(c for c in wanted if c not in letters.values())
    sides = ("".join(letters[item] for item in shape) for shape in (a, b, out))
    return "{},{}->{}".format(*sides)


# ---------------------------------------------------------------- rotary embedding


def rope(call: OpCall) -> ValueType:
    """``rope_*(x, cos, sin[, rotary])``: tables as wide as the rotary extent or half of it.

    Axes of ``x`` that the tables lack (the heads) are broadcast; recorded as ``heads``,
    counted from the end, 0 for none.
    """
    x, cos, sin = call.tensor(0), call.tensor(1), call.tensor(2)
    if cos.shape != sin.shape:
        raise OpError(
            "shape",
            f"`{call.op}` needs tables of one shape, not {shape_text(cos.shape)} "
            f"and {shape_text(sin.shape)}",
        )
    if not x.shape or not cos.shape:
        raise OpError("shape", f"`{call.op}` needs axes to rotate, not {x} by {cos}")
    extent = call.attrs.get("rotary", size_of(x.shape[-1]))
    call.found["rotary"] = extent
    allowed = (cast(Poly, extent), cast(Poly, extent) / 2)
    if not cos.shape[-1].alternatives or any(
        size not in allowed for size in cos.shape[-1].alternatives
    ):
        raise OpError(
            "shape",
            f"`{call.op}` rotates {extent} channels, so its tables are {allowed[1]} or "
            f"{allowed[0]} wide, not {cos.shape[-1]}",
            "name the rotary extent as the fourth argument",
        )
    call.found["heads"] = _missing_axis(call.op, x.shape[:-1], cos.shape[:-1])
    return Tensor(x.shape, promote(x.dtype, promote(cos.dtype, sin.dtype)))


def _missing_axis(op: str, lead: Shape, table: Shape) -> int:
    """Which axis of ``lead`` the table lacks, counted from the end of ``x``; 0 for none."""
    if len(table) >= len(lead):
        broadcast(lead, table)
        return 0
    for k in range(len(lead)):
        if len(table) == len(lead) - 1 and lead[:k] + lead[k + 1 :] == table:
            return k - len(lead) - 1
    if all(a == b for a, b in zip(lead[-len(table) :], table, strict=False)):
        return 0
    raise OpError(
        "shape",
        f"`{op}` cannot align tables over {shape_text(table)} with {shape_text(lead)}",
    )

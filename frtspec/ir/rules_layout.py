"""Rules of the ops that move elements: parts, joins, axes, indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from frtspec.dims import Axis, Poly, axis, shape_text
from frtspec.ir.expr import SliceArg
from frtspec.ir.opcall import OpCall, from_end, named_axis, replace_axis
from frtspec.ir.types import OpError, Tensor, ValueType, need_float, numel, size_of


def chunk(call: OpCall) -> ValueType:
    x = call.tensor(0)
    position = call.axis(x.shape, -1)
    parts, part = call.whole("parts"), call.whole("part")
    if parts < 1 or not 0 <= part < parts:
        raise OpError("argument", f"`chunk` has no part {part} of {parts}: they count from 0")
    return Tensor(replace_axis(x.shape, position, size_of(x.shape[position]) / parts), x.dtype)


def split(call: OpCall) -> ValueType:
    x = call.tensor(0)
    position = call.axis(x.shape, -1)
    sizes, part = call.polys("sizes"), call.whole("part")
    if not 0 <= part < len(sizes):
        raise OpError("argument", f"`split` has no part {part} of {len(sizes)}: they count from 0")
    total = sum(sizes, Poly.const(0))
    if total != x.shape[position]:
        raise OpError("shape", f"`split` sizes add up to {total}, the axis is {x.shape[position]}")
    return Tensor(replace_axis(x.shape, position, sizes[part]), x.dtype)


def cat(call: OpCall) -> ValueType:
    parts = [call.tensor(k) for k in range(len(call.args))]
    first = parts[0]
    position = call.axis(first.shape, 0)
    total: Poly = Poly.const(0)
    for part in parts:
        if part.dtype != first.dtype:
            raise OpError("dtype", f"`cat` takes equal dtypes, not {first.dtype} and {part.dtype}")
        if len(part.shape) != len(first.shape) or replace_axis(
            part.shape, position
        ) != replace_axis(first.shape, position):
            raise OpError(
                "shape",
                f"`cat` joins axis {position + len(first.shape)}: the others must be equal, not "
                f"{shape_text(first.shape)} and {shape_text(part.shape)}",
            )
        total = total + size_of(part.shape[position])
    return Tensor(replace_axis(first.shape, position, total), first.dtype)


def _no_rows(call: OpCall, x: Tensor) -> None:
    if any(item.rows for item in x.shape):
        raise OpError(
            "shape",
            f"`{call.op}` cannot reach through the rows of {shape_text(x.shape)}",
            "unflatten and flatten work on the last axes",
        )


def reshape(call: OpCall) -> ValueType:
    x = call.tensor(0)
    _no_rows(call, x)
    sizes = call.polys("sizes")
    if numel(sizes) != numel(x.shape):
        raise OpError(
            "shape",
            f"`reshape` keeps the number of elements: {shape_text(x.shape)} has "
            f"{numel(x.shape)}, {shape_text(sizes)} has {numel(sizes)}",
        )
    return Tensor(sizes, x.dtype)


def unflatten(call: OpCall) -> ValueType:
    x = call.tensor(0)
    position = call.axis(x.shape, -1)
    sizes = call.polys("sizes")
    if numel(sizes) != x.shape[position]:
        raise OpError(
            "shape", f"`unflatten` splits {x.shape[position]}, not {numel(sizes)} = {sizes}"
        )
    return Tensor(replace_axis(x.shape, position, *sizes), x.dtype)


def flatten(call: OpCall) -> ValueType:
    x = call.tensor(0)
    count = call.whole("count")
    if not 2 <= count <= len(x.shape) or any(item.rows for item in x.shape[-count:]):
        raise OpError(
            "shape", f"`flatten` cannot merge the last {count} axes of {shape_text(x.shape)}"
        )
    return Tensor(x.shape[:-count] + (numel(x.shape[-count:]),), x.dtype)


def transpose(call: OpCall) -> ValueType:
    x = call.tensor(0)
    if len(call.over()) == 2:
        a, b = (named_axis(call.op, x.shape, name) for name in call.over())
    elif "first" in call.attrs and "second" in call.attrs:
        a, b = (from_end(call.op, x.shape, call.whole(k)) for k in ("first", "second"))
    elif len(x.shape) == 2 and not call.over():
        a, b = -2, -1
    else:
        raise OpError(
            "shape",
            f"`transpose` of {shape_text(x.shape)} has to name two axes",
            "transpose(x, 1, 2) or transpose(x, over S, over H)",
        )
    if x.shape[a].rows or x.shape[b].rows:
        raise OpError("shape", f"`transpose` cannot move the rows of {shape_text(x.shape)}")
    call.found["pair"] = (a, b)
    items = list(x.shape)
    items[a], items[b] = items[b], items[a]
    return Tensor(tuple(items), x.dtype)


def repeat(call: OpCall) -> ValueType:
    x = call.tensor(0)
    position = call.axis(x.shape, -1)
    size = size_of(x.shape[position]) * call.poly("times")
    return Tensor(replace_axis(x.shape, position, size), x.dtype)


def unsqueeze(call: OpCall) -> ValueType:
    x = call.tensor(0)
    rank, position = len(x.shape) + 1, call.whole("position")
    if not -rank <= position < rank:
        raise OpError("shape", f"`unsqueeze` has no place {position} in {shape_text(x.shape)}")
    k = position % rank
    if k and x.shape and x.shape[0].rows and position >= 0:
        raise OpError(
            "shape",
            f"place {position} of {shape_text(x.shape)} depends on how many axes the rows fold",
            f"count from the end: {position - rank}",
        )
    if k == 0 and x.shape and x.shape[0].rows:
        raise OpError("shape", "an axis in front of rows would be folded with them")
    return Tensor(x.shape[:k] + (Poly.const(1),) + x.shape[k:], x.dtype)


def index(call: OpCall) -> ValueType:
    x = call.tensor(0)
    items = cast(tuple[SliceArg, ...], call.attrs["items"])
    dots = [k for k, item in enumerate(items) if item.kind == "ellipsis"]
    named = len(items) - len(dots)
    if named > len(x.shape) or len(dots) > 1:
        raise OpError("shape", f"too many places in an index of {shape_text(x.shape)}")
    if x.shape and x.shape[0].rows and (not dots or dots[0] != 0):
        raise OpError(
            "shape",
            f"an index cannot reach through the rows of {shape_text(x.shape)}",
            "start it with `...`",
        )
    at = dots[0] if dots else len(items)
    whole = [SliceArg("slice", None, None, None)] * (len(x.shape) - named)
    full: Sequence[SliceArg] = [*items[:at], *whole, *items[at + len(dots) :]]
    kept = (_sliced(a, item) for a, item in zip(x.shape, full, strict=True))
    return Tensor(tuple(item for item in kept if item is not None), x.dtype)


def top_k(call: OpCall) -> ValueType:
    x = call.tensor(0)
    need_float(x.dtype)
    part = call.whole("part")
    if part not in (0, 1):
        raise OpError("argument", f"`top_k` has values (0) and places (1), no part {part}")
    position = call.axis(x.shape, -1)
    shape = replace_axis(x.shape, position, call.poly("k"))
    return Tensor(shape, "int64" if part else x.dtype)


def spread(call: OpCall) -> ValueType:
    x, places = call.tensor(0), call.tensor(1)
    if places.dtype not in ("int32", "int64"):
        raise OpError("dtype", f"`spread` takes whole numbers as places, not {places}")
    if x.shape != places.shape:
        raise OpError(
            "shape",
            f"`spread` takes one place an entry, not {shape_text(x.shape)} "
            f"and {shape_text(places.shape)}",
        )
    return Tensor(replace_axis(x.shape, -1, call.poly("size")), x.dtype)


def _sliced(whole: Axis, item: SliceArg) -> Axis | None:
    """The axis that is left of ``whole``; None where a position was picked."""
    if item.kind in ("step", "at"):
        if whole.rows:
            raise OpError("shape", f"an index cannot pick from `{whole}`")
        return None
    if item.lo is None and item.hi is None:
        return whole
    if whole.rows:
        raise OpError("shape", f"an index cannot slice `{whole}`")
    size = size_of(whole)
    lo, hi = item.lo or Poly.const(0), size if item.hi is None else item.hi
    ends = [size + end if (end.as_int() or 0) < 0 else end for end in (lo, hi)]
    width = ends[1] - ends[0]
    if (width.as_int() or 0) < 0:
        raise OpError("shape", f"the slice of `{whole}` is empty: it ends before it starts")
    return axis((width,))

"""Ops that only an impl's arithmetic has, as calls of the runtime's numerics and of torch."""

from __future__ import annotations

from frtspec.codegen import fused
from frtspec.codegen.arithmetic import Emulation
from frtspec.codegen.exprsrc import Lowering
from frtspec.codegen.formats import format_of, quantize_call
from frtspec.codegen.lowered import Lowered, product_text
from frtspec.codegen.pysrc import PRIMARY, Py, call
from frtspec.codegen.unsupported import Unsupported
from frtspec.ir.expr import Attr, Op, Ref

_HELD = ("unpacked", "kept", "held", "codes_of")
"""Kinds of references to weights: what has two axes unless its slot says otherwise."""


def lowerings(flow: Emulation) -> dict[str, Lowering]:
    """Ops that only an impl's arithmetic has, as calls of the runtime's numerics."""

    scales = {scale.name: scale for scale in flow.impl.scales}
    deep = {s.name for s in flow.structure.slots if s.shape is not None and len(s.shape) > 2}

    def codes(op: Op, args: list[Py]) -> Py:
        scale = scales[str(op.attr("scale"))]
        form = format_of(scale)
        if scale.kind == "static":
            return call(f"numerics.{form.codes}", *args)
        return quantize_call(form, args[0], scale.granularity, at_call=True)

    def round_trip(op: Op, args: list[Py]) -> Py:
        scale = scales[str(op.attr("scale"))]
        form = format_of(scale)
        if scale.kind == "static":
            return call(f"numerics.{form.round_trip}", *args)
        return call(f"numerics.{form.dequantize}", f"*{codes(op, args)}")

    def codes_mm(op: Op, args: list[Py]) -> Py:
        keys = ("function", "codes", "scale", "pack", "dtype")
        function, left, scale, pack, dtype = (str(op.attr(key)) for key in keys)
        return Py(product_text(function, left, args[1].text, scale, pack, dtype), PRIMARY)

    def transpose(op: Op, args: list[Py]) -> Py:
        pair = [int(str(axis)) for axis in _items(op.attr("pair", (-2, -1)))]
        weight = op.args[0]
        if {*pair} == {-1, -2}:
            flat = isinstance(weight, Ref) and weight.kind in _HELD and weight.name not in deep
            return args[0].attr("T" if flat else "mT")
        return args[0].method("transpose", *map(str, pair))

    extra: dict[str, Lowering] = {
        "round_trip": round_trip,
        "codes": codes,
        "codes_mm": codes_mm,
        "transpose": transpose,
    }
    if isinstance(flow, Lowered):
        native = [op for op, target in flow.lower.items() if target == f"native_{op}"]
        extra.update({op: _native_norm for op in native})
        extra.update(fused.lowerings())
    return extra


def library(flow: Emulation) -> frozenset[str]:
    """Ops that a rung lowers to what the runtime's numerics offer under their own name."""
    lower = flow.lower.items() if isinstance(flow, Lowered) else ()
    return frozenset(op for op, target in lower if target == "addcmul_rope")


def _native_norm(op: Op, args: list[Py]) -> Py:
    """torch's own norm, which takes the sizes of the trailing axes that it runs over."""
    axes = sorted(int(str(axis)) for axis in _items(op.attr("axes", (-1,))))
    if axes != list(range(-len(axes), 0)):
        raise Unsupported(f"`native_{op.op}` over other axes than the last", op.span)
    x, eps, *affine = args
    named = dict(zip(("weight", "bias"), affine, strict=False))
    size = Py(x.text.removesuffix(".float()"), x.level).attr("shape").item(f"-{len(axes)}:")
    return call(f"nnf.{op.op}", x, size, **named, eps=eps)


def _items(attr: Attr | None) -> tuple[object, ...]:
    return attr if isinstance(attr, tuple) else ()

"""Number formats that packs and activations can take, and the runtime functions for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from frtspec.codegen.pysrc import Py, call, pyrepr
from frtspec.codegen.unsupported import Unsupported
from frtspec.ir.decl import Granularity, Pack, Scale


@dataclass(frozen=True)
class Format:
    """Names in ``frtspec.runtime.numerics``.

    quantize    codes and scales of a tensor by its own largest magnitudes
    dequantize  the inverse, float32
    at_call     quantises an activation at each call, where that differs from ``quantize``
    codes       codes of a tensor under a given scale, or None
    round_trip  what is left of a tensor after its codes under a given scale, or None
    per         whether ``quantize`` is told its granularity; a format with one kind is told
                at most the size
    levels      a second-level scale is kept beside the others
    products    the target of a ``lower`` line -> the library product of two tensors of codes
    """

    quantize: str
    dequantize: str = "dequantize"
    at_call: str | None = None
    codes: str | None = None
    round_trip: str | None = None
    per: bool = True
    levels: bool = False
    products: Mapping[str, str] = field(default_factory=dict)


QUANTISED = {
    "fp8_e4m3": Format(
        "quantize_fp8",
        codes="to_fp8",
        round_trip="fp8_round_trip",
        products={"scaled_mm": "scaled_mm"},
    ),
    "int8": Format("quantize_int8", codes="to_int8", products={"int8_mm": "int8_mm"}),
    "int4": Format("quantize_int4", "dequantize_int4", per=False),
    "nvfp4": Format(
        "quantize_nvfp4",
        "dequantize_nvfp4",
        at_call="quantize_nvfp4_one_level",
        round_trip="nvfp4_round_trip",
        per=False,
        levels=True,
    ),
}

CASTS = {"f32": "float", "bf16": "bfloat16", "fp16": "half"}
"""Plain formats -> the method that brings a tensor into them."""


def quantised(pack: Pack) -> Format | None:
    """The format of a pack; None for a pack of plain numbers. Raises ``Unsupported``."""
    if pack.format is None or pack.format in CASTS:
        return None
    if pack.format not in QUANTISED:
        raise Unsupported(f"a pack in {pack.format}", pack.span)
    return QUANTISED[pack.format]


def format_of(scale: Scale) -> Format:
    """The format of a scaled point. Raises ``Unsupported``."""
    if scale.format not in QUANTISED:
        raise Unsupported(f"`scale {scale.name}` in {scale.format}", scale.span)
    return QUANTISED[scale.format]


def quantize_call(form: Format, value: Py, grain: Granularity | None, *, at_call: bool) -> Py:
    """``numerics.quantize_int4(w.T, size=64)``: by the tensor's own largest magnitudes.

    ``at_call``: of an activation, at each call.
    """
    kind, size = grain or ("tensor", None)
    named = {"per": pyrepr(kind)} if form.per else {}
    if size is not None and not form.levels:
        named["size"] = str(size)
    function = form.at_call if at_call and form.at_call else form.quantize
    return call(f"numerics.{function}", value, **named)


def dequantize_text(pack: Pack, form: Format) -> str:
    """``numerics.dequantize(self.down, self.down_scale)``: a pack's weights in float32."""
    held = f"self.{pack.name}"
    level = f", {held}_tensor_scale" if form.levels else ""
    return f"numerics.{form.dequantize}({held}, {held}_scale{level})"


def per(pack: Pack) -> str:
    """How many scales a pack has: one ``tensor``-wide, or one a ``channel``…"""
    return "tensor" if pack.granularity is None else pack.granularity[0]


def scales_text(grain: Granularity | None) -> str:
    """``one scale a row``, as summaries say it."""
    kind, size = grain or ("tensor", None)
    return {
        "tensor": "one scale",
        "channel": "one scale a row",
        "row": "one scale a row",
        "group": f"one scale for each {size} of a row",
        "block": f"one scale a block of {size}",
    }[kind]

"""Number formats that packs and activations can take, and the runtime functions for them."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.codegen.unsupported import Unsupported
from frtspec.ir.decl import Pack


@dataclass(frozen=True)
class Format:
    """Names in ``frtspec.runtime.numerics``.

    quantize    packs a weight by its own largest magnitude
    codes       a tensor's codes under a given scale
    round_trip  what is left of a tensor after its codes, in float32
    scaled_mm   the product of two tensors of codes, or None where torch has none
    """

    quantize: str
    codes: str
    round_trip: str
    scaled_mm: str | None


QUANTISED = {
    "fp8_e4m3": Format("quantize_fp8", "to_fp8", "fp8_round_trip", "scaled_mm"),
    "int8": Format("quantize_int8", "to_int8", "int8_round_trip", None),
}

CASTS = {"f32": "float", "bf16": "bfloat16", "fp16": "half"}
"""Plain formats -> the method that brings a tensor into them."""

PER = ("tensor", "channel")
"""Granularities that the runtime packs with."""


def quantised(pack: Pack) -> Format | None:
    """The format of a pack; None for a pack of plain numbers. Raises ``Unsupported``."""
    if pack.format is None or pack.format in CASTS:
        return None
    if pack.format not in QUANTISED:
        raise Unsupported(f"a pack in {pack.format}", pack.span)
    if per(pack) not in PER:
        raise Unsupported(f"a pack per {per(pack)}", pack.span)
    return QUANTISED[pack.format]


def per(pack: Pack) -> str:
    """How many scales a pack has: one ``tensor``-wide, or one a ``channel``…"""
    return "tensor" if pack.granularity is None else pack.granularity[0]

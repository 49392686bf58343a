"""Every quantisation scheme by name, and which one ``scheme="auto"`` stands for."""

from __future__ import annotations

from flashrt_gen.schemes import (
    bf16_structural,
    fp8_dynamic,
    fp8_static,
    fp8_static_keep_outliers,
    int8_dynamic,
    none,
    nvfp4_awq,
    nvfp4_balance,
    nvfp4_balance_wire,
    nvfp4_dynamic,
    w4a4_decode,
    w4a16_decode,
    w4a16_int4_decode,
    w8a16_decode,
)
from frtspec.runtime import SchemeSpec

ALL: dict[str, SchemeSpec] = {
    "bf16_structural": bf16_structural.SCHEME,
    "fp8_dynamic": fp8_dynamic.SCHEME,
    "fp8_static": fp8_static.SCHEME,
    "fp8_static_keep_outliers": fp8_static_keep_outliers.SCHEME,
    "int8_dynamic": int8_dynamic.SCHEME,
    "none": none.SCHEME,
    "nvfp4_awq": nvfp4_awq.SCHEME,
    "nvfp4_balance": nvfp4_balance.SCHEME,
    "nvfp4_balance_wire": nvfp4_balance_wire.SCHEME,
    "nvfp4_dynamic": nvfp4_dynamic.SCHEME,
    "w4a16_decode": w4a16_decode.SCHEME,
    "w4a16_int4_decode": w4a16_int4_decode.SCHEME,
    "w4a4_decode": w4a4_decode.SCHEME,
    "w8a16_decode": w8a16_decode.SCHEME,
}

AUTO: tuple[tuple[float | None, str], ...] = ((8.9, "fp8_static"), (None, "none"))
"""(least compute capability, scheme): the first row that holds; None stands for all others."""

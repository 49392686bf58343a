"""Every quantisation scheme by name, and which one ``scheme="auto"`` stands for."""

from __future__ import annotations

from flashrt_gen.schemes import fp8_static, none
from frtspec.runtime import SchemeSpec

ALL: dict[str, SchemeSpec] = {
    "fp8_static": fp8_static.SCHEME,
    "none": none.SCHEME,
}

AUTO: tuple[tuple[float | None, str], ...] = ((8.9, "fp8_static"), (None, "none"))
"""(least compute capability, scheme): the first row that holds; None stands for all others."""

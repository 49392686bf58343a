"""Every quantisation scheme by name, and which one ``scheme="auto"`` stands for."""

from __future__ import annotations

from frtspec.runtime import SchemeSpec
from golden.schemes import off

ALL: dict[str, SchemeSpec] = {
    "off": off.SCHEME,
}

AUTO: tuple[tuple[float | None, str], ...] = ((None, "off"),)
"""(least compute capability, scheme): the first row that holds; None stands for all others."""

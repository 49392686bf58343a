"""Every quantisation scheme by name, and which one ``scheme="auto"`` stands for."""

from __future__ import annotations

from frtspec.runtime import SchemeSpec
from golden.schemes import plain

ALL: dict[str, SchemeSpec] = {
    "plain": plain.SCHEME,
}

AUTO: tuple[tuple[float | None, str], ...] = ((None, "plain"),)
"""(least compute capability, scheme): the first row that holds; None stands for all others."""

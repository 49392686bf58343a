"""Every quantisation scheme by name, and which one ``scheme="auto"`` stands for."""

from __future__ import annotations

from golden.schemes import plain

from frtspec.runtime import SchemeSpec

ALL: dict[str, SchemeSpec] = {
    "plain": plain.SCHEME,
}

AUTO: tuple[tuple[float | None, str], ...] = ((None, "plain"),)
"""(least compute capability, scheme): the first row that holds; None stands for all others."""

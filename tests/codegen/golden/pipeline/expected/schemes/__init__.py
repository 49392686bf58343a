"""Every quantisation scheme by name, and which one ``scheme="auto"`` stands for."""

from __future__ import annotations

from frtspec.runtime import SchemeSpec

ALL: dict[str, SchemeSpec] = {}

AUTO: tuple[tuple[float | None, str], ...] = ()
"""(least compute capability, scheme): the first row that holds; None stands for all others."""

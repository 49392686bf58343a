"""Amounts as people read them."""

from __future__ import annotations


def size_text(count: float) -> str:
    """``1.5 MiB``."""
    size, units = float(count), ["B", "KiB", "MiB", "GiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.3g} {units[0]}"

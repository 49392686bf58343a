"""Ops that only a rung's own steps have: what stands between a kernel's entries.

They say where bytes lie and who owns them, which a reference has no word for.
"""

from __future__ import annotations

STEP_OPS: dict[str, tuple[str, str]] = {
    "contiguous": ("contiguous(x)", "x without gaps, copied where it has some"),
    "clone": ("clone(x)", "a copy of x, which an entry may write into"),
    "empty_like": ("empty_like(x)", "room for a tensor like x"),
    "int32": ("int32(x)", "whole numbers as 32-bit ones"),
    "expand": ("expand(x, sizes)", "x repeated along axes of size 1, as a view"),
    "zeros": ("zeros(sizes, dtype)", "zeros, on the device of the seat"),
    "ones": ("ones(sizes, dtype)", "ones, on the device of the seat"),
    "quantize": ("quantize(x, format, scale)", "the codes of x under a static scale"),
    "swizzled": ("swizzled(pack.scale)", "scales of NVFP4 in tiles of 128 rows and 4 blocks"),
    "values": ("values(pack)", "what the codes of a pack stand for, in float32"),
    "number": ("number(x)", "the one value of x, on the host; in `prepare` only"),
    "split": ("split(y, pack.rows)", "the outputs of a joint pack, each with its own rows"),
    "updates": ("entry(updates(r))", "r, which the entry writes into"),
}
"""Op -> (how it is written, what it gives)."""

LITERALS = {"true": "True", "false": "False", "none": "None"}
"""Word of a call -> the Python value that the entry gets."""

OWNERS = ("clone", "empty_like", "zeros", "ones", "entry")
"""Ops whose result belongs to the call: an entry may write into it."""

"""Where the two catalogs spell one thing differently, and the names of imported bindings."""

from __future__ import annotations

import keyword
import re

PREFIX = "flashrt_"
"""Stands before the name of every imported binding: flash-rt's `pi05` is `flashrt_pi05`,
which leaves `pi05` to the binding of that host family."""

TARGET = "flash_rt"
"""The name of an ``export`` block that is for flash-rt."""

DTYPES = {
    "bf16": "bf16",
    "bfloat16": "bf16",
    "f32": "f32",
    "fp32": "f32",
    "float32": "f32",
    "fp16": "fp16",
    "f16": "fp16",
    "float16": "fp16",
    "half": "fp16",
}
"""flash-rt's spellings -> ours. ``@binding`` stands for what the binding says."""

LAYOUTS = {"out_in": "out_in", "out_in_native": "out_in", "in_out": "in_out"}
"""How a host stores a matrix. ``out_in_native`` says no more than ``out_in``: that the
slot itself is laid out so is the structure's business."""

OUT_IN_SLOTS = frozenset({"vision_ffn", "modnorm_qkv_chain", "patch_projection"})
"""Structures of flash-rt whose slots are [out, in]; all others, and all of ours, are [in, out]."""

PATH = re.compile(r"[A-Za-z_]\w*(\.(\w+|\{i\}))*", re.ASCII)
"""A module or parameter path with ``{i}`` where the layer's number goes."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")


def imported_name(name: str) -> str:
    """The name of the binding here: the prefix, and ``_`` for what a name can't hold."""
    return PREFIX + re.sub(r"[^a-z0-9_]", "_", name)


def exported_name(name: str) -> str | None:
    """flash-rt's name of an imported binding; None where it is not one."""
    return name.removeprefix(PREFIX) if name.startswith(PREFIX) else None


def is_name(text: str) -> bool:
    """Whether a word of the source can stand as a name in a spec."""
    return _NAME.fullmatch(text) is not None and not keyword.iskeyword(text)


def quoted(text: str) -> str:
    """A string literal of the language, on one line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t").replace("\r", " ") + '"'


CAPTURE_WORDS = {
    (False, True, False): "eager",
    (True, False, False): "graph",
    (True, True, False): "graph_or_eager",
    (True, False, True): "bucketed",
    (True, True, True): "bucketed_or_eager",
}
"""(a graph, eager, bucketed) as a text of flash-rt names them -> our word."""

POLICIES = {
    "greedy": "greedy",
    "sampling": "sampling",
    "greedy_or_verified_draft": "verified_draft",
}
"""flash-rt's words for how a token is chosen -> ours."""

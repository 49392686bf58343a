"""Names of things in generated code: modules, classes, functions, and how they stay apart."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Collection

from frtspec.ir.decl import Pipeline, Structure

DTYPES = {
    "f32": "torch.float32",
    "f64": "torch.float64",
    "bf16": "torch.bfloat16",
    "fp16": "torch.float16",
    "f16": "torch.float16",
    "fp8_e4m3": "torch.float8_e4m3fn",
    "fp8_e5m2": "torch.float8_e5m2",
    "int8": "torch.int8",
    "int32": "torch.int32",
    "int64": "torch.int64",
    "bool": "torch.bool",
}
"""The torch dtype of each dtype name of the language."""

AMBIGUOUS = frozenset({"l", "O", "I"})
"""Letters that read like digits; linters refuse them as names of functions and variables."""

RESERVED = frozenset({"torch", "nnf", "ops", "numerics", "math", "record", "Tensor", "Sequence"})
"""What generated functions refer to by these names; nothing of a spec may hide them."""

_BUILTINS = frozenset(dir(builtins))


def taken(name: str) -> bool:
    """Whether generated code cannot use ``name`` for a thing of the spec's."""
    return keyword.iskeyword(name) or name in RESERVED or name in _BUILTINS


def free(name: str, used: Collection[str] = (), suffix: str = "_") -> str:
    """``name``, or ``name`` with a suffix (repeated) where it is taken or used."""
    while taken(name) or name in used or name in AMBIGUOUS:
        name += suffix
    return name


def camel(*parts: str) -> str:
    """``decoder_ffn``, ``fp8_static`` as one class name."""
    words = [word for part in parts for word in part.split("_") if word]
    return "".join(word[:1].upper() + word[1:] for word in words)


def structure_module(structure: Structure) -> str:
    """``decoder_ffn_v1``."""
    return f"{structure.name}_v{structure.version}"


def pipeline_module(pipeline: Pipeline) -> str:
    """``vla_tick_pipeline_v2``."""
    return f"{pipeline.name}_v{pipeline.version}"

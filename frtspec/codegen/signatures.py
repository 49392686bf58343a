"""A generated function: its parameters, what it returns, how its shapes are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frtspec.codegen.pysrc import pyrepr
from frtspec.dims import Shape
from frtspec.ir.decl import Part


@dataclass(frozen=True)
class Function:
    """A generated function: everything between ``def`` and its last line."""

    name: str
    parameters: tuple[str, ...]
    returns: str
    doc: tuple[str, ...]
    body: tuple[str, ...]


def part_parameter(part: Part) -> str:
    """``attn: ops.Part``."""
    optional = " | None = None" if part.when is not None else ""
    kind = "Part" if len(part.results) == 1 else "Parts"
    return f"{part.name}: ops.{kind}{optional}"


def hook_parameter(name: str) -> str:
    """``mlp_with: ops.SeamCall | None = None``."""
    return f"{name}_with: ops.SeamCall | None = None"


def variant_parameter(name: str, default: str | None) -> str:
    """``activation: str``, with the axis' default value if it has one."""
    return f"{name}: str" if default is None else f"{name}: str = {pyrepr(default)}"


def param_parameter(name: str, default: object) -> str:
    """``eps: float = 1e-6``."""
    return f"{name}: float" if default is None else f"{name}: float = {pyrepr(default)}"


def return_type(types: Sequence[str]) -> str:
    """``Tensor``, ``tuple[Tensor, Tensor]``."""
    return types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]"


def shaped(
    name: str, index: str | None, shape: Shape, optional: bool = False, dtype: str | None = None
) -> str:
    """``x [M, D]``, ``y[i] [M, N[i]]``, ``b? [N]``, ``state [B, D] f32``: a tensor as
    docstrings show it; the host's dtype is not said."""
    axes = ", ".join(str(axis).removeprefix("rows ") for axis in shape)
    head = f"{name}[{index}]" if index else name
    own = f" {dtype}" if dtype not in (None, "host") else ""
    return f"{head}{'?' if optional else ''} [{axes}]{own}"


def returned(lines: list[str], names: Sequence[str]) -> list[str]:
    """The lines and their ``return``; a last plain definition of the result is returned itself."""
    head = f"{names[0]} = "
    if len(names) == 1 and lines and lines[-1].startswith(head):
        return [*lines[:-1], f"return {lines[-1].removeprefix(head)}"]
    return [*lines, f"return {', '.join(names)}"]

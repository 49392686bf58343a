"""What generated references call: norms without weights, and how points are seen.

Plain torch in the dtype of the argument. References upcast before they call a
norm; nothing here changes a dtype by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from frtspec.runtime.errors import Refusal

Record = Callable[[str, Tensor], None]
"""``record(point, tensor)``: called by a reference at each of its points."""

SeamCall = Callable[..., Any]
"""``fn(*sources)``: what runs in place of a seam of a reference."""


def ignore(point: str, value: Tensor) -> None:
    """The ``Record`` that keeps nothing."""


def rms_norm(x: Tensor, eps: float) -> Tensor:
    """``x`` over the root of its mean square along the last axis; [..., D] -> [..., D]."""
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


def layer_norm(x: Tensor, eps: float) -> Tensor:
    """``x`` with mean 0 and variance 1 along the last axis (variance over D, not D - 1)."""
    variance = x.var(-1, keepdim=True, correction=0)
    return (x - x.mean(-1, keepdim=True)) * torch.rsqrt(variance + eps)


def l2_norm(x: Tensor, eps: float) -> Tensor:
    """``x`` over the root of its sum of squares along the last axis."""
    return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + eps)


def unknown_variant(
    structure: str, axis: str, value: object, known: Mapping[str, Sequence[str]]
) -> Refusal:
    """The error for a variant value that a structure does not have."""
    return Refusal(
        "structure.variant",
        f"{structure} has no variant {axis} = {value}; known: {', '.join(known[axis])}",
        fix=f"pass one of the known values for {axis}",
    )

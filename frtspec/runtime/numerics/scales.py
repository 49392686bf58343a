"""What every number format shares: scales, how far each reaches, the vector of balance.

A scale is float32 and stands for one step: ``value = code * scale``. A tensor of codes
[N, K] (rows of K) has one scale ([1]), one a row ([N, 1]), one for each group of a row's
neighbours ([N, K / G]), or one a tile ([N / B, K / B]). In a stack [E, N, K] every matrix
has its own, so what is [1] there is [E, 1, 1].

Data that is all zero has the scale 1 and codes of zero, so nothing divides by zero. A NaN
makes the scale that it is under NaN, and with it every value of that scale.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

Per = Literal["tensor", "channel", "row", "group", "block"]

LEAST_AMAX = 1e-6
"""What ``balance`` takes a channel for that calibration saw as zero."""


class Quantized(NamedTuple):
    """``data`` holds codes (two a byte in the four-bit formats), ``scale`` their scales.
    ``tensor_scale``: NVFP4's second level, float32; None in the other formats."""

    data: Tensor
    scale: Tensor
    tensor_scale: Tensor | None = None


def scale_of(amax: Tensor | float, largest: float) -> Tensor:
    """``amax / largest``, float32, at least 1-D; 1 where that is zero."""
    scale = torch.as_tensor(amax, dtype=torch.float32) / largest
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    return scale if scale.dim() else scale.reshape(1)


def row_amax(x: Tensor) -> Tensor:
    """The largest magnitude of each row: [..., K] -> float32 [..., 1]."""
    return x.float().abs().amax(-1, keepdim=True)


def tensor_amax(x: Tensor) -> Tensor:
    """The largest magnitude of a matrix: float32 [1]; of each one of a stack: [E, 1, 1]."""
    if x.dim() < 3:
        return x.float().abs().amax().reshape(1)
    return x.float().abs().amax((-2, -1), keepdim=True)


def group_amax(x: Tensor, size: int) -> Tensor:
    """The largest magnitude of each ``size`` neighbours in a row: [..., K] -> [..., K / size].

    Raises ValueError where K is not a multiple of ``size``: nothing is padded.
    """
    groups = (*x.shape[:-1], whole(x.shape[-1], size), size)
    return x.float().abs().reshape(groups).amax(-1)


def tile_amax(x: Tensor, size: int) -> Tensor:
    """The largest magnitude of each tile of ``size`` rows and columns: [..., N / size,
    K / size]. Raises ValueError where a side is not a multiple of ``size``."""
    down, along = whole(x.shape[-2], size), whole(x.shape[-1], size)
    tiles = x.float().abs().reshape(*x.shape[:-2], down, size, along, size)
    return tiles.amax((-3, -1))


def amax_per(x: Tensor, per: Per, size: int | None = None) -> Tensor:
    """The largest magnitudes that a granularity asks for."""
    if per == "tensor":
        return tensor_amax(x)
    if per in ("channel", "row"):
        return row_amax(x)
    if size is None:
        raise ValueError(f"per {per} needs a size")
    return group_amax(x, size) if per == "group" else tile_amax(x, size)


def whole(extent: int, size: int) -> int:
    """``extent / size``; raises ValueError where that leaves a remainder."""
    if extent % size:
        raise ValueError(f"an axis of {extent} can't be cut into groups of {size}")
    return extent // size


def spread(scale: Tensor, shape: torch.Size) -> Tensor:
    """Scales against codes of ``shape``: repeated over the groups and tiles they stand for."""
    if scale.dim() < 2:
        return scale
    for axis in (-1, -2):
        if scale.shape[axis] not in (1, shape[axis]):
            scale = scale.repeat_interleave(shape[axis] // scale.shape[axis], dim=axis)
    return scale


def in_steps(x: Tensor, scale: Tensor, largest: float) -> Tensor:
    """``x`` in steps of ``scale``, saturated; 0 where the scale is 0."""
    scale = spread(scale, x.shape)
    steps = x.float() / torch.where(scale == 0, torch.ones_like(scale), scale)
    steps = torch.where(scale == 0, torch.zeros_like(steps), steps)
    return steps.clamp(-largest, largest)


def balance(amax: Tensor, *, alpha: float, low: float, high: float) -> Tensor:
    """How much of each channel's size moves from an activation into its weight.

    amax       largest magnitude of each channel of the activation, [K]
    alpha      0 moves nothing, 1 makes every channel equally large
    low, high  the factors' limits

    Returns float32 [K], ``(amax / mean(amax)) ** alpha`` within the limits: the weight
    [N, K] is multiplied by it and the activation divided, before either is quantised.
    """
    size = amax.float().clamp(min=LEAST_AMAX)
    return (size / size.mean()).pow(alpha).clamp(low, high)

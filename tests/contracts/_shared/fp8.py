"""FP8 (E4M3) arithmetic as the packages state it: divide, saturate, product in float32."""

from __future__ import annotations

import torch
from torch import Tensor

LIMIT = 448.0
"""The largest finite value of E4M3."""


def quantize(x: Tensor, scale: Tensor) -> Tensor:
    """Codes of ``x`` under one scale: divided in float32, saturated, rounded to nearest even."""
    return (x.float() / scale.reshape(())).clamp(-LIMIT, LIMIT).to(torch.float8_e4m3fn)


def product(x: Tensor, weight: Tensor, x_scale: Tensor, weight_scale: Tensor) -> Tensor:
    """The product of codes [M, K] and [N, K] under their scales, float32 [M, N]."""
    return (x.float() @ weight.float().T) * (x_scale.reshape(()) * weight_scale.reshape(()))

"""Number formats: FP8 E4M3 and INT8, symmetric, by scale.

A scale is float32 and stands for one step: ``value = code * scale``. Scales are
per tensor ([1]) or per channel ([N, 1] for codes [N, K], one for each output).
A scale of 0 stands for data that is all zero: its codes and values are exact
zeros, never NaN. All arithmetic here is float32, whatever the input's dtype.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

FP8 = torch.float8_e4m3fn
FP8_MAX = 448.0
INT8_MAX = 127.0

Per = Literal["tensor", "channel"]


class Quantized(NamedTuple):
    """``data`` (codes, the input's shape) and ``scale`` (float32, [1] or [N, 1])."""

    data: Tensor
    scale: Tensor


# ---------------------------------------------------------------- scales


def fp8_scale(amax: Tensor | float) -> Tensor:
    """The E4M3 scale for a largest magnitude: ``amax / 448``, float32, at least 1-D."""
    return _scale(amax, FP8_MAX)


def int8_scale(amax: Tensor | float) -> Tensor:
    """The INT8 scale for a largest magnitude: ``amax / 127``, float32, at least 1-D."""
    return _scale(amax, INT8_MAX)


def row_amax(x: Tensor) -> Tensor:
    """The largest magnitude of each row: [..., K] -> float32 [..., 1]."""
    return x.float().abs().amax(-1, keepdim=True)


def _scale(amax: Tensor | float, largest: float) -> Tensor:
    scale = torch.as_tensor(amax, dtype=torch.float32) / largest
    return scale if scale.dim() else scale.reshape(1)


def _amax(w: Tensor, per: Per) -> Tensor:
    if per == "channel":
        return row_amax(w)
    return w.float().abs().amax().reshape(1)


def _steps(x: Tensor, scale: Tensor, largest: float) -> Tensor:
    """``x`` in steps of ``scale``, saturated; 0 where the scale is 0."""
    steps = x.float() / torch.where(scale > 0, scale, torch.ones_like(scale))
    return torch.where(scale > 0, steps, torch.zeros_like(steps)).clamp(-largest, largest)


# ---------------------------------------------------------------- FP8 E4M3


def to_fp8(x: Tensor, scale: Tensor) -> Tensor:
    """Codes of ``x`` under a given scale: round to nearest even, saturate at ±448."""
    return _steps(x, scale, FP8_MAX).to(FP8)


def quantize_fp8(w: Tensor, per: Per = "tensor") -> Quantized:
    """Quantise by its own largest magnitude, per tensor or per row of ``w`` [N, K]."""
    scale = fp8_scale(_amax(w, per))
    return Quantized(to_fp8(w, scale), scale)


def fp8_round_trip(x: Tensor, scale: Tensor) -> Tensor:
    """What is left of ``x`` after FP8: float32, the shape of ``x``."""
    return dequantize(to_fp8(x, scale), scale)


# ---------------------------------------------------------------- INT8


def to_int8(x: Tensor, scale: Tensor) -> Tensor:
    """Codes of ``x`` under a given scale: round to nearest even, saturate at ±127."""
    return _steps(x, scale, INT8_MAX).round().to(torch.int8)


def quantize_int8(w: Tensor, per: Per = "channel") -> Quantized:
    """Quantise by its own largest magnitude, per tensor or per row of ``w`` [N, K]."""
    scale = int8_scale(_amax(w, per))
    return Quantized(to_int8(w, scale), scale)


def int8_round_trip(x: Tensor, scale: Tensor) -> Tensor:
    """What is left of ``x`` after INT8: float32, the shape of ``x``."""
    return dequantize(to_int8(x, scale), scale)


# ---------------------------------------------------------------- both


def dequantize(data: Tensor, scale: Tensor) -> Tensor:
    """Codes back to float32 values, the shape of ``data``."""
    return data.float() * scale


def scaled_mm(
    x: Tensor,
    w: Tensor,
    x_scale: Tensor,
    w_scale: Tensor,
    *,
    out_dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """FP8 matrix product by ``torch._scaled_mm``.

    x [M, K] and w [N, K] (out_in) are FP8 codes; scales are float32, per tensor ([1])
    or, both of them, per row ([M, 1]) and per channel ([N, 1]). Returns [M, N] in
    ``out_dtype``, accumulated in float32. Raises RuntimeError where the device or the
    shape has no such product.
    """
    if w_scale.dim() == 2:
        x_scale, w_scale = x_scale.expand(x.shape[0], 1).contiguous(), w_scale.T.contiguous()
    product: Tensor = torch._scaled_mm(
        x.contiguous(), w.T, scale_a=x_scale, scale_b=w_scale, out_dtype=out_dtype
    )
    return product

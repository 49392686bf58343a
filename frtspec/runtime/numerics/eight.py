"""Eight-bit formats: FP8 E4M3 and INT8, both symmetric. All arithmetic is float32."""

from __future__ import annotations

import torch
from torch import Tensor

from frtspec.runtime.numerics.scales import (
    Per,
    Quantized,
    amax_per,
    in_steps,
    scale_of,
    spread,
)

FP8 = torch.float8_e4m3fn
FP8_MAX = 448.0
INT8_MAX = 127.0
_VALUES = torch.arange(256, dtype=torch.uint8, device="cpu").view(FP8).float()
"""What each E4M3 code stands for."""

# ---------------------------------------------------------------- FP8 E4M3


def fp8_scale(amax: Tensor | float) -> Tensor:
    """The E4M3 scale for a largest magnitude: ``amax / 448``, float32, at least 1-D."""
    return scale_of(amax, FP8_MAX)


def to_fp8(x: Tensor, scale: Tensor) -> Tensor:
    """Codes of ``x`` under a given scale: round to nearest even, saturate at ±448. Codes that
    come over a chain are under the scale already, and stay what they are."""
    if x.dtype == FP8:
        return x
    return in_steps(x, scale, FP8_MAX).to(FP8)


def quantize_fp8(x: Tensor, per: Per = "tensor", size: int | None = None) -> Quantized:
    """Quantise by its own largest magnitudes.

    per   tensor; channel or row (each row of ``x`` [..., K]); group (``size`` neighbours of
          a row); block (tiles of ``size`` by ``size``)

    Raises ValueError where ``size`` does not divide an axis it cuts.
    """
    scale = fp8_scale(amax_per(x, per, size))
    return Quantized(to_fp8(x, scale), scale)


def fp8_round_trip(x: Tensor, scale: Tensor) -> Tensor:
    """What is left of ``x`` after FP8: float32, the shape of ``x``."""
    return dequantize(to_fp8(x, scale), scale)


# ---------------------------------------------------------------- INT8


def int8_scale(amax: Tensor | float) -> Tensor:
    """The INT8 scale for a largest magnitude: ``amax / 127``, float32, at least 1-D."""
    return scale_of(amax, INT8_MAX)


def to_int8(x: Tensor, scale: Tensor) -> Tensor:
    """Codes of ``x`` under a given scale: round to nearest even, saturate at ±127.

    A whole number can't hold a NaN: its code is 0, and the scale has to be NaN for it to
    pass. ``quantize_int8`` makes such a scale.
    """
    return in_steps(x, scale, INT8_MAX).nan_to_num(0.0).round().to(torch.int8)


def quantize_int8(x: Tensor, per: Per = "channel", size: int | None = None) -> Quantized:
    """Quantise by its own largest magnitudes; ``per`` as in ``quantize_fp8``."""
    scale = int8_scale(amax_per(x, per, size))
    return Quantized(to_int8(x, scale), scale)


def int8_round_trip(x: Tensor, scale: Tensor) -> Tensor:
    """What is left of ``x`` after INT8: float32, the shape of ``x``."""
    return dequantize(to_int8(x, scale), scale)


# ---------------------------------------------------------------- both


def dequantize(data: Tensor, scale: Tensor, tensor_scale: Tensor | None = None) -> Tensor:
    """Codes back to float32 values, the shape of ``data``. ``tensor_scale`` is None here."""
    return _values(data) * spread(scale, data.shape)


def _values(codes: Tensor) -> Tensor:
    """``codes.float()``. On a CPU, PyTorch converts E4M3 one value at a time: a look-up in the
    256 that there are gives the same bits in a fifth of the time. Compiled code converts."""
    plain = codes.dtype == FP8 and codes.device.type == "cpu" and type(codes) is Tensor
    if not plain or torch.compiler.is_compiling():
        return codes.float()
    return _VALUES.index_select(0, codes.view(torch.uint8).reshape(-1).int()).view(codes.shape)

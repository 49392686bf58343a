"""Number formats and products of codes: what generated impls call.

FP8 E4M3 and INT8 are in ``numerics_eight``, INT4 and NVFP4 in ``numerics_four``; scales,
and what becomes of zeros and NaN, in ``numerics_scales``.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as nnf

from frtspec.runtime.numerics.eight import (
    FP8,
    FP8_MAX,
    INT8_MAX,
    dequantize,
    fp8_round_trip,
    fp8_scale,
    int8_round_trip,
    int8_scale,
    quantize_fp8,
    quantize_int8,
    to_fp8,
    to_int8,
)
from frtspec.runtime.numerics.four import (
    dequantize_int4,
    dequantize_nvfp4,
    nvfp4_round_trip,
    nvfp4_tensor_scale,
    quantize_int4,
    quantize_nvfp4,
    quantize_nvfp4_one_level,
    swizzled,
)
from frtspec.runtime.numerics.library import (
    attention,
    gated_delta,
    rope_half,
    rope_interleaved,
)
from frtspec.runtime.numerics.scales import Per, Quantized, balance, row_amax

__all__ = [
    "FP8",
    "FP8_MAX",
    "INT8_MAX",
    "Per",
    "Quantized",
    "attention",
    "balance",
    "calibrated",
    "dequantize",
    "dequantize_int4",
    "dequantize_nvfp4",
    "fp8_round_trip",
    "fp8_scale",
    "gated_delta",
    "int8_mm",
    "int8_round_trip",
    "int8_scale",
    "nvfp4_round_trip",
    "nvfp4_tensor_scale",
    "quantize_fp8",
    "quantize_int4",
    "quantize_int8",
    "quantize_nvfp4",
    "quantize_nvfp4_one_level",
    "rope_half",
    "rope_interleaved",
    "row_amax",
    "scaled_mm",
    "swizzled",
    "to_fp8",
    "to_int8",
]


def calibrated(kind: str, amax: Tensor) -> Tensor:
    """What an impl is handed for a scale, from a measured largest magnitude, float32.

    kind  ``fp8_e4m3`` or ``nvfp4``: a scale for the whole tensor, [1]; ``balance``: the
          magnitude of each channel itself, [K]
    """
    if kind == "balance":
        return amax.float().reshape(-1)
    return {"fp8_e4m3": fp8_scale, "nvfp4": nvfp4_tensor_scale}[kind](amax.max())


def scaled_mm(
    x: Tensor,
    w: Tensor,
    x_scale: Tensor,
    w_scale: Tensor,
    *,
    out_dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """FP8 matrix product by ``torch._scaled_mm``.

    x [..., K] and w [N, K] (out_in) are FP8 codes; scales are float32, one a tensor ([1]),
    one a row ([..., 1]) and one a channel ([N, 1]). Returns [..., N] in ``out_dtype``,
    accumulated in float32. Raises RuntimeError where the device or the shape has no such
    product.
    """
    lead = x.shape[:-1]
    x = x.reshape(-1, x.shape[-1])
    if x_scale.dim() > 1 or w_scale.dim() > 1:
        x_scale = x_scale.reshape(-1, 1)
        x_scale = x_scale.expand(x.shape[0], 1).contiguous()
        w_scale = w_scale.expand(w.shape[0], 1).T.contiguous()
        if x.is_cuda and out_dtype != torch.bfloat16:  # CUDA writes this form in bfloat16 only
            return scaled_mm(x, w, x_scale, w_scale.T).to(out_dtype).reshape(*lead, -1)
    product: Tensor = torch._scaled_mm(
        x.contiguous(), w.T, scale_a=x_scale, scale_b=w_scale, out_dtype=out_dtype
    )
    return product.reshape(*lead, -1)


_CUDA_ROWS = 32
"""Rows that CUDA's whole-number product is given at least; it takes none below 17."""


def int8_mm(
    x: Tensor,
    w: Tensor,
    x_scale: Tensor,
    w_scale: Tensor,
    *,
    out_dtype: torch.dtype = torch.bfloat16,
) -> Tensor:
    """INT8 matrix product by ``torch._int_mm``: exact in int32, then scaled in float32.

    x [..., K] and w [N, K] (out_in) are INT8 codes; scales are float32, [1] or one a row
    ([..., 1]) and one a channel ([N, 1]). Returns [..., N] in ``out_dtype``. Raises
    RuntimeError where the device or the shape has no such product.
    """
    lead = x.shape[:-1]
    x = x.reshape(-1, x.shape[-1])
    rows = x.shape[0]
    if x.is_cuda and rows < _CUDA_ROWS:
        x = nnf.pad(x, (0, 0, 0, _CUDA_ROWS - rows))
    product = torch._int_mm(x.contiguous(), w.T)[:rows]
    scaled = product.float() * x_scale.reshape(-1, 1) * w_scale.reshape(1, -1)
    return scaled.to(out_dtype).reshape(*lead, -1)

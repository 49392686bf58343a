# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/fp4-gemm version 1: NVFP4 codes, and products of codes with codes.

Codes are E2M1, two a byte; scales are UE4M3, one for 16 along K, in tiles of 128 rows by 4 blocks.
``alpha`` is one number on the host. Products are taken in float32; what an epilogue adds comes
before the one rounding. The ABI does not say which GELU it is: tanh here.
"""

from __future__ import annotations

from ._gemm import (
    fp4_w4a4_gemv_warpsplit_bf16,
    fp4_w4a16_linear_bf16,
    nvfp4_gemm_bf16,
    nvfp4_gemm_bias_bf16,
    nvfp4_gemm_bias_gelu_bf16,
    nvfp4_gemm_bias_gelu_nvfp4,
    nvfp4_gemm_bias_residual_bf16,
    nvfp4_gemm_geglu_nvfp4_fp16,
)
from ._quantize import (
    PackedWeight,
    dequantize_fp4_sfa_fp16,
    pack_nvfp4_weight_bf16,
    quantize_fp4_sfa_bf16,
    quantize_fp4_sfa_fp16,
)

ARCH: str | None = None
"""The compute capability played; None is one that every op runs on."""

__all__ = [
    "ARCH",
    "PackedWeight",
    "dequantize_fp4_sfa_fp16",
    "fp4_w4a4_gemv_warpsplit_bf16",
    "fp4_w4a16_linear_bf16",
    "nvfp4_gemm_bf16",
    "nvfp4_gemm_bias_bf16",
    "nvfp4_gemm_bias_gelu_bf16",
    "nvfp4_gemm_bias_gelu_nvfp4",
    "nvfp4_gemm_bias_residual_bf16",
    "nvfp4_gemm_geglu_nvfp4_fp16",
    "pack_nvfp4_weight_bf16",
    "quantize_fp4_sfa_bf16",
    "quantize_fp4_sfa_fp16",
]

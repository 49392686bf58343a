"""Four-bit formats: INT4 by group and NVFP4 (E2M1 in blocks of 16). All arithmetic is float32.

Two codes share a byte along K: the even one of a pair is in the low four bits, the odd one
in the high four. Codes of [N, K] are uint8 [N, K / 2].
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as nnf

from frtspec.runtime.numerics.scales import (
    Quantized,
    group_amax,
    in_steps,
    scale_of,
    spread,
    tensor_amax,
    whole,
)

INT4_MAX = 7.0
E2M1_MAX = 6.0
BLOCK = 16
LEAST_BLOCK_SCALE = 2.0**-9
"""The smallest E4M3 number: the scale of a block that would need a smaller one, or is zero."""

E4M3_MAX = 448.0
E4M3 = torch.float8_e4m3fn

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""Magnitude of each code 0 to 7; bit 3 is the sign."""

_BELOW = 1 - 2.0**-24
_MIDDLES = (0.25, 0.75 * _BELOW, 1.25, 1.75 * _BELOW, 2.5, 3.5 * _BELOW, 5.0)
"""The last magnitude that each code but 7 rounds from: the middle to the next one, or the
float32 just below it where the next code is the even one and gets the tie."""


def pack_pairs(codes: Tensor) -> Tensor:
    """Codes of four bits [..., K] two a byte: uint8 [..., K / 2], even places low."""
    low, high = codes[..., 0::2].to(torch.uint8), codes[..., 1::2].to(torch.uint8)
    return (low & 0xF) | (high << 4)


def unpack_pairs(data: Tensor) -> Tensor:
    """The inverse of ``pack_pairs``: uint8 [..., K], each 0 to 15."""
    return torch.stack([data & 0xF, data >> 4], dim=-1).flatten(-2)


# ---------------------------------------------------------------- INT4


def quantize_int4(w: Tensor, size: int) -> Quantized:
    """Quantise ``w`` [..., N, K] by the largest magnitude of each ``size`` neighbours of a row.

    Codes are -7 to 7 in two's complement, scales float32 [..., N, K / size]: the largest
    magnitude of a group over 7. Raises ValueError where ``size`` does not divide K.
    """
    whole(size, 2)
    scale = scale_of(group_amax(w, size), INT4_MAX)
    codes = in_steps(w, scale, INT4_MAX).nan_to_num(0.0).round()
    return Quantized(pack_pairs(codes.to(torch.int8).view(torch.uint8)), scale)


def dequantize_int4(data: Tensor, scale: Tensor, tensor_scale: Tensor | None = None) -> Tensor:
    """INT4 codes back to float32 [..., N, K]. ``tensor_scale`` is None here."""
    codes = unpack_pairs(data).to(torch.int8)
    codes = torch.where(codes > 7, codes - 16, codes).float()
    return codes * spread(scale, codes.shape)


# ---------------------------------------------------------------- NVFP4


def nvfp4_tensor_scale(amax: Tensor | float) -> Tensor:
    """NVFP4's second-level scale for a largest magnitude: ``amax / (448 * 6)``, float32."""
    return scale_of(amax, E4M3_MAX * E2M1_MAX)


def to_e2m1(x: Tensor) -> Tensor:
    """E2M1 codes of ``x``, uint8: round to nearest, ties to the even code, saturate at ±6.

    The format has no NaN: one becomes the largest code, under a block scale that is NaN.
    """
    codes = torch.bucketize(x.float().abs().contiguous(), torch.tensor(_MIDDLES, device=x.device))
    codes = codes.to(torch.uint8)
    return codes | (torch.signbit(x).to(torch.uint8) << 3)


def quantize_nvfp4(x: Tensor, tensor_scale: Tensor | None = None) -> Quantized:
    """Quantise ``x`` [..., K] in blocks of 16 neighbours.

    tensor_scale  float32; None: by the largest magnitude of ``x``, or of each matrix of a
                  stack. A scale of ones leaves the blocks' scales alone (one level)

    Codes are uint8 [..., K / 2]. A block's scale is E4M3, [..., K / 16]: its largest
    magnitude over 6, in steps of the tensor's, 2**-9 at least. Raises ValueError where K is
    not a multiple of 16.
    """
    if tensor_scale is None:
        tensor_scale = nvfp4_tensor_scale(tensor_amax(x))
    steps = group_amax(x, BLOCK) / E2M1_MAX / tensor_scale
    scale = steps.clamp(LEAST_BLOCK_SCALE, E4M3_MAX).to(E4M3)
    # What a block is multiplied by: one factor, as kernels do it, and not two divisions.
    factor = (1.0 / tensor_scale) / scale.float()
    codes = to_e2m1(x.float() * factor.repeat_interleave(BLOCK, dim=-1))
    return Quantized(pack_pairs(codes), scale, tensor_scale)


def swizzled(scale: Tensor) -> Tensor:
    """Scales of blocks [N, K / 16] in the order in which tensor cores read them: uint8, and
    one such row for each matrix of a stack [E, N, K / 16].

    A tile is 128 rows by 4 blocks, 512 bytes; rows that are 32 apart stand beside each other.
    Tiles follow each other along K first, and what fills the last ones up is zero.
    Source: "1D block scaling factors layout" of cuBLAS' documentation.
    """
    *stack, rows, blocks = scale.shape
    padded = nnf.pad(scale.view(torch.uint8), (0, -blocks % 4, 0, -rows % 128))
    tiles = padded.reshape(*stack, -1, 4, 32, padded.shape[-1] // 4, 4)
    return tiles.transpose(-4, -2).flatten(-5)


def quantize_nvfp4_one_level(x: Tensor) -> Quantized:
    """``quantize_nvfp4`` with blocks' scales only, as kernels quantise an activation: rows
    don't depend on each other."""
    return quantize_nvfp4(x, torch.ones(1, device=x.device))


def dequantize_nvfp4(data: Tensor, scale: Tensor, tensor_scale: Tensor | None) -> Tensor:
    """NVFP4 codes back to float32 [..., K]. ``tensor_scale`` None: 1, as for one level."""
    codes = unpack_pairs(data).int()
    values = torch.tensor(E2M1, device=data.device)[codes & 7]
    values = torch.where(codes > 7, -values, values)
    steps = scale.float() if tensor_scale is None else scale.float() * tensor_scale
    return values * spread(steps, values.shape)


def nvfp4_round_trip(x: Tensor, tensor_scale: Tensor) -> Tensor:
    """What is left of ``x`` after NVFP4 under a given tensor scale: float32."""
    return dequantize_nvfp4(*quantize_nvfp4(x, tensor_scale))

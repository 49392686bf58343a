"""Codes from values, values from codes, and the packing of a weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ._register import OPS, on
from ._shared import nvfp4
from ._shared.checking import BF16, FP16, U8, Check, has_rank, require


def _register_quantize(name: str, dtype: torch.dtype) -> Callable[..., tuple[Tensor, Tensor]]:
    @OPS.op(f"{name}(Tensor x, Tensor! packed, Tensor! sfa, bool is_sfb)")
    def op(x: Tensor, packed: Tensor, sfa: Tensor, is_sfb: bool) -> None:
        check = Check(name)
        on(check, "11.0", "12.0")
        rows, columns = check.tensor("x", x, dtype, ("M", "K"))
        check.multiple("axis 1 of x", columns, 16)
        check.tensor("packed", packed, U8, ("M", columns // 2))
        check.tensor("sfa", sfa, U8)
        wanted = nvfp4.swizzled_bytes(rows, columns)
        check.require("sfa", sfa.numel() == wanted, f"{sfa.numel()} bytes, not {wanted}")
        codes, scales = nvfp4.quantize(x)
        packed.copy_(codes)
        sfa.copy_(scales.reshape(sfa.shape))

    def entry(
        x: Tensor, packed: Tensor | None = None, sfa: Tensor | None = None, is_sfb: bool = False
    ) -> tuple[Tensor, Tensor]:
        """x [M, K] as codes uint8 [M, K / 2] and tiled scales uint8.

        is_sfb: the scales are those of a product's second operand; both lie in the same tiles.
        """
        has_rank(name, 2, x=x)
        if packed is None:
            packed = x.new_empty((x.shape[0], x.shape[1] // 2), dtype=U8)
        if sfa is None:
            sfa = x.new_empty((nvfp4.swizzled_bytes(*x.shape),), dtype=U8)
        op(x, packed, sfa, is_sfb)
        return packed, sfa

    return entry


quantize_fp4_sfa_bf16 = _register_quantize("quantize_fp4_sfa_bf16", BF16)
quantize_fp4_sfa_fp16 = _register_quantize("quantize_fp4_sfa_fp16", FP16)


@OPS.op("dequantize_fp4_sfa_fp16(Tensor packed, Tensor sfa, Tensor! out, bool is_sfb)")
def _dequantize(packed: Tensor, sfa: Tensor, out: Tensor, is_sfb: bool) -> None:
    check = Check("dequantize_fp4_sfa_fp16")
    on(check, "11.0", "12.0")
    rows, half = check.tensor("packed", packed, U8, ("M", "K/2"))
    check.multiple("axis 1 of packed", half, 8)
    check.tensor("sfa", sfa, U8)
    wanted = nvfp4.swizzled_bytes(rows, half * 2)
    check.require("sfa", sfa.numel() == wanted, f"{sfa.numel()} bytes, not {wanted}")
    check.tensor("out", out, FP16, ("M", half * 2))
    out.copy_(nvfp4.dequantize(packed, sfa))


def dequantize_fp4_sfa_fp16(
    packed: Tensor, sfa: Tensor, out: Tensor | None = None, is_sfb: bool = False
) -> Tensor:
    """The values fp16 [M, K] of codes uint8 [M, K / 2] and their tiled scales."""
    has_rank("dequantize_fp4_sfa_fp16", 2, packed=packed)
    if out is None:
        out = packed.new_empty((packed.shape[0], packed.shape[1] * 2), dtype=FP16)
    _dequantize(packed, sfa, out, is_sfb)
    return out


@dataclass(frozen=True)
class PackedWeight:
    """A weight [N, K] as codes and scales, padded with zeros to ``alignment`` both ways.

    The ABI names no fields of the real record, so a caller can't rely on any of these.
    """

    packed: Tensor
    sfb: Tensor
    bias: Tensor | None
    shape: tuple[int, int]


def pack_nvfp4_weight_bf16(
    weight: Tensor, bias: Tensor | None = None, *, alignment: int = 32, mse: bool = False
) -> PackedWeight:
    """Pack a weight bf16 [N, K] (and its bias [N]) once; not for a traced call."""
    name = "pack_nvfp4_weight_bf16"
    check = Check(name)
    rows, columns = check.tensor("weight", weight, BF16, ("N", "K"))
    if bias is not None:
        check.tensor("bias", bias, BF16, ("N",))
    require(name, "alignment", alignment > 0 and alignment % 16 == 0, f"{alignment}")
    wide = torch.nn.functional.pad(weight, (0, -columns % alignment, 0, -rows % alignment))
    if bias is not None:
        bias = torch.nn.functional.pad(bias, (0, -rows % alignment))
    return PackedWeight(*nvfp4.quantize(wide), bias, (rows, columns))

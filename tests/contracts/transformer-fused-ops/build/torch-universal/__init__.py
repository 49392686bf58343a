# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/transformer-fused-ops version 1: norms and gates, some ending in FP8.

All is computed in float32 and rounded once, to bfloat16 or by the scale to E4M3. The ops that
end in FP8 run on sm 11.0 only.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as nnf

from ._shared import fp8
from ._shared.checking import BF16, FP8, Check, Ops, has_rank, is_tensor

ARCH: str | None = None
"""The compute capability played; None is one that every op runs on."""

OPS = Ops(__name__)


@OPS.op("rms_norm_gated_silu_bf16(Tensor x, Tensor gate, Tensor weight, float eps, Tensor! out)")
def _rms_norm_gated(x: Tensor, gate: Tensor, weight: Tensor, eps: float, out: Tensor) -> None:
    check = Check("rms_norm_gated_silu_bf16")
    check.tensor("x", x, BF16, ("M", "D"))
    check.tensor("gate", gate, BF16, ("M", "D"))
    check.tensor("weight", weight, BF16, ("D",))
    check.eps(eps)
    check.tensor("out", out, BF16, ("M", "D"))
    normed = nnf.rms_norm(x.float(), x.shape[-1:], weight.float(), eps)
    out.copy_(normed * nnf.silu(gate.float()))


@OPS.op("quantize_fp8_static_bf16(Tensor x, Tensor scale, Tensor! out)")
def _quantize(x: Tensor, scale: Tensor, out: Tensor) -> None:
    check = Check("quantize_fp8_static_bf16")
    check.arch(ARCH, "11.0")
    shape = check.tensor("x", x, BF16)
    check.multiple("values of x", x.numel(), 2)
    check.scale("scale", scale)
    check.tensor("out", out, FP8, shape)
    out.copy_(fp8.quantize(x, scale))


@OPS.op(
    "layer_norm_quant_fp8_static_bf16(Tensor x, Tensor weight, Tensor bias, Tensor scale, "
    "float eps, Tensor! out)"
)
def _layer_norm_quant(
    x: Tensor, weight: Tensor, bias: Tensor, scale: Tensor, eps: float, out: Tensor
) -> None:
    check = Check("layer_norm_quant_fp8_static_bf16")
    check.arch(ARCH, "11.0")
    check.tensor("x", x, BF16, ("M", "D"))
    check.tensor("weight", weight, BF16, ("D",))
    check.tensor("bias", bias, BF16, ("D",))
    check.scale("scale", scale)
    check.eps(eps)
    check.tensor("out", out, FP8, ("M", "D"))
    normed = nnf.layer_norm(x.float(), x.shape[-1:], weight.float(), bias.float(), eps)
    out.copy_(fp8.quantize(normed, scale))


@OPS.op("gate_geglu_merged_quant_fp8_static_bf16(Tensor merged, Tensor scale, Tensor! out)")
def _geglu_quant(merged: Tensor, scale: Tensor, out: Tensor) -> None:
    check = Check("gate_geglu_merged_quant_fp8_static_bf16")
    check.arch(ARCH, "11.0")
    check.tensor("merged", merged, BF16, ("M", "2H"))
    check.multiple("axis 1 of merged", check.sizes["2H"], 2)
    check.scale("scale", scale)
    check.tensor("out", out, FP8, ("M", check.sizes["2H"] // 2))
    gate, up = merged.float().chunk(2, dim=1)
    out.copy_(fp8.quantize(nnf.gelu(gate, approximate="tanh") * up, scale))


# ---------------------------------------------------------------- entry points


def rms_norm_gated_silu_bf16(
    x: Tensor, gate: Tensor, weight: Tensor, *, eps: float = 1e-6, out: Tensor | None = None
) -> Tensor:
    """RMSNorm of x bf16 [M, D] times weight [D] times silu(gate [M, D]): bf16 [M, D]."""
    is_tensor("rms_norm_gated_silu_bf16", x=x)
    if out is None:
        out = x.new_empty(x.shape, dtype=BF16)
    _rms_norm_gated(x, gate, weight, eps, out)
    return out


def quantize_fp8_static_bf16(x: Tensor, scale: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x bf16 of any shape divided by scale, as FP8 of the same shape."""
    is_tensor("quantize_fp8_static_bf16", x=x)
    if out is None:
        out = x.new_empty(x.shape, dtype=FP8)
    _quantize(x, scale, out)
    return out


def layer_norm_quant_fp8_static_bf16(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    scale: Tensor,
    *,
    eps: float = 1e-6,
    out: Tensor | None = None,
) -> Tensor:
    """Affine LayerNorm of x bf16 [M, D], divided by scale, as FP8 [M, D]."""
    is_tensor("layer_norm_quant_fp8_static_bf16", x=x)
    if out is None:
        out = x.new_empty(x.shape, dtype=FP8)
    _layer_norm_quant(x, weight, bias, scale, eps, out)
    return out


def gate_geglu_merged_quant_fp8_static_bf16(
    merged: Tensor, scale: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """tanh-GELU of the first half of merged bf16 [M, 2H] times the second, as FP8 [M, H]."""
    has_rank("gate_geglu_merged_quant_fp8_static_bf16", 2, merged=merged)
    if out is None:
        out = merged.new_empty((merged.shape[0], merged.shape[1] // 2), dtype=FP8)
    _geglu_quant(merged, scale, out)
    return out

# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/flashrt-residual-norm-quant version 1: norms, some ending in FP8.

A norm is taken in float32 and rounded once, to bfloat16 or by the scale to E4M3. A residual is
rounded to bfloat16 before it is normalised.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as nnf

from ._shared import fp8
from ._shared.checking import BF16, FP8, Check, Ops, has_rank

OPS = Ops(__name__)


def _rows(check: Check, name: str, value: Tensor) -> None:
    check.tensor(name, value, BF16, ("M", "D"))
    check.multiple(f"axis 1 of {name}", check.sizes["D"], 2)


@OPS.op("layer_norm_bf16(Tensor x, Tensor weight, Tensor bias, float eps, Tensor! out)")
def _layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float, out: Tensor) -> None:
    check = Check("layer_norm_bf16")
    _rows(check, "x", x)
    check.tensor("weight", weight, BF16, ("D",))
    check.tensor("bias", bias, BF16, ("D",))
    check.eps(eps)
    check.tensor("out", out, BF16, ("M", "D"))
    out.copy_(nnf.layer_norm(x.float(), x.shape[-1:], weight.float(), bias.float(), eps))


@OPS.op(
    "rms_norm_quant_fp8_static_bf16(Tensor x, Tensor weight, Tensor scale, float eps, Tensor! out)"
)
def _rms_norm_quant(x: Tensor, weight: Tensor, scale: Tensor, eps: float, out: Tensor) -> None:
    check = Check("rms_norm_quant_fp8_static_bf16")
    _rows(check, "x", x)
    check.tensor("weight", weight, BF16, ("D",))
    check.scale("scale", scale)
    check.eps(eps)
    check.tensor("out", out, FP8, ("M", "D"))
    out.copy_(fp8.quantize(nnf.rms_norm(x.float(), x.shape[-1:], weight.float(), eps), scale))


@OPS.op(
    "residual_add_rms_norm_quant_fp8_static_bf16(Tensor! residual, Tensor x, Tensor weight, "
    "Tensor scale, float eps, Tensor! out)"
)
def _residual_add_rms_norm_quant(
    residual: Tensor, x: Tensor, weight: Tensor, scale: Tensor, eps: float, out: Tensor
) -> None:
    check = Check("residual_add_rms_norm_quant_fp8_static_bf16")
    _rows(check, "residual", residual)
    check.tensor("x", x, BF16, ("M", "D"))
    check.tensor("weight", weight, BF16, ("D",))
    check.scale("scale", scale)
    check.eps(eps)
    check.tensor("out", out, FP8, ("M", "D"))
    check.apart("residual", residual, x=x)
    residual.copy_(residual.float() + x.float())
    normed = nnf.rms_norm(residual.float(), x.shape[-1:], weight.float(), eps)
    out.copy_(fp8.quantize(normed, scale))


# ---------------------------------------------------------------- entry points


def layer_norm_bf16(
    x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5, out: Tensor | None = None
) -> Tensor:
    """LayerNorm of x bf16 [M, D], times weight [D], plus bias [D]: bf16 [M, D]."""
    has_rank("layer_norm_bf16", 2, x=x)
    if out is None:
        out = x.new_empty(x.shape, dtype=BF16)
    _layer_norm(x, weight, bias, eps, out)
    return out


def rms_norm_quant_fp8_static_bf16(
    x: Tensor, weight: Tensor, scale: Tensor, eps: float = 1e-6, out: Tensor | None = None
) -> Tensor:
    """RMSNorm of x bf16 [M, D] times weight [D], divided by scale, as FP8 [M, D]."""
    has_rank("rms_norm_quant_fp8_static_bf16", 2, x=x)
    if out is None:
        out = x.new_empty(x.shape, dtype=FP8)
    _rms_norm_quant(x, weight, scale, eps, out)
    return out


def residual_add_rms_norm_quant_fp8_static_bf16(
    residual: Tensor,
    x: Tensor,
    weight: Tensor,
    scale: Tensor,
    eps: float = 1e-6,
    out: Tensor | None = None,
) -> Tensor:
    """residual bf16 [M, D] += x (in place), then RMSNorm of the sum as FP8 [M, D]."""
    has_rank("residual_add_rms_norm_quant_fp8_static_bf16", 2, residual=residual, x=x)
    if out is None:
        out = x.new_empty(x.shape, dtype=FP8)
    _residual_add_rms_norm_quant(residual, x, weight, scale, eps, out)
    return out

# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/flashrt-gemm-epilogues version 1: bf16 linears, and FP8 by channel.

The weight of a linear is [K, N] here, not the layout of ``nn.Linear``. Products are taken in
float32; a bias is added before the one rounding to bfloat16.
"""

from __future__ import annotations

from torch import Tensor

from ._shared import fp8
from ._shared.checking import BF16, FP8, Check, Ops, has_rank, is_tensor

OPS = Ops(__name__)


def _check_linear(check: Check, x: Tensor, w: Tensor, out: Tensor) -> None:
    check.tensor("x", x, BF16, ("M", "K"))
    check.tensor("w", w, BF16, ("K", "N"))
    check.tensor("out", out, BF16, ("M", "N"))
    check.apart("out", out, x=x, w=w)


@OPS.op("bf16_linear_bf16(Tensor x, Tensor w, Tensor! out)")
def _linear(x: Tensor, w: Tensor, out: Tensor) -> None:
    _check_linear(Check("bf16_linear_bf16"), x, w, out)
    out.copy_(x.float() @ w.float())


@OPS.op("bf16_linear_bias_bf16(Tensor x, Tensor w, Tensor bias, Tensor! out)")
def _linear_bias(x: Tensor, w: Tensor, bias: Tensor, out: Tensor) -> None:
    check = Check("bf16_linear_bias_bf16")
    _check_linear(check, x, w, out)
    check.tensor("bias", bias, BF16, ("N",))
    out.copy_(x.float() @ w.float() + bias.float())


@OPS.op(
    "channel_scale_quantize_fp8_static_bf16(Tensor input, Tensor channel_scale, Tensor scale, "
    "Tensor! out)"
)
def _channel_quantize(input: Tensor, channel_scale: Tensor, scale: Tensor, out: Tensor) -> None:
    check = Check("channel_scale_quantize_fp8_static_bf16")
    shape = check.tensor("input", input, BF16)
    check.require("input", len(shape) >= 1, "no axes")
    check.tensor("channel_scale", channel_scale, BF16, (shape[-1],))
    check.scale("scale", scale)
    check.tensor("out", out, FP8, shape)
    out.copy_(fp8.quantize(input.float() * channel_scale.float(), scale))


def bf16_linear_bf16(x: Tensor, w: Tensor, out: Tensor | None = None) -> Tensor:
    """x bf16 [M, K] times w bf16 [K, N]: bf16 [M, N]."""
    has_rank("bf16_linear_bf16", 2, x=x, w=w)
    if out is None:
        out = x.new_empty((x.shape[0], w.shape[1]), dtype=BF16)
    _linear(x, w, out)
    return out


def bf16_linear_bias_bf16(x: Tensor, w: Tensor, bias: Tensor, out: Tensor | None = None) -> Tensor:
    """x bf16 [M, K] times w bf16 [K, N] plus bias bf16 [N]: bf16 [M, N]."""
    has_rank("bf16_linear_bias_bf16", 2, x=x, w=w)
    if out is None:
        out = x.new_empty((x.shape[0], w.shape[1]), dtype=BF16)
    _linear_bias(x, w, bias, out)
    return out


def channel_scale_quantize_fp8_static_bf16(
    input: Tensor, channel_scale: Tensor, scale: Tensor, out: Tensor | None = None
) -> Tensor:
    """input bf16 [..., K] times channel_scale bf16 [K], divided by scale, as FP8 [..., K]."""
    is_tensor("channel_scale_quantize_fp8_static_bf16", input=input)
    if out is None:
        out = input.new_empty(input.shape, dtype=FP8)
    _channel_quantize(input, channel_scale, scale, out)
    return out

# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/fp8-gemm version 1: FP8 linears whose scales are one host number.

``alpha`` is the product of both scales. Products are taken in float32, and all an epilogue adds
comes before the one rounding to bfloat16. The ABI does not say which GELU it is: tanh here.
"""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor
from torch.nn import functional as nnf

from ._shared.checking import BF16, FP8, Check, Ops, has_rank, require

ARCH = "11.0"
"""The compute capability played: "11.0" runs everything, "12.0" fp8_linear_bf16 only."""

OPS = Ops(__name__)


def _product(
    op: str, input: Tensor, weight: Tensor, alpha: float, out: Tensor, name: str = "out"
) -> tuple[Check, Tensor]:
    """Check what all forms share; the scaled product in float32."""
    check = Check(op)
    if op == "fp8_linear_bf16":
        check.arch(ARCH, "11.0", "12.0")
    else:
        check.arch(ARCH, "11.0")
    check.tensor("input", input, FP8, ("M", "K"))
    check.tensor("weight", weight, FP8, ("N", "K"))
    check.multiple("axis 1 of input", check.sizes["K"], 32 if ARCH == "12.0" else 16)
    if ARCH != "12.0":
        check.multiple("axis 0 of weight", check.sizes["N"], 16)
    check.require("alpha", math.isfinite(alpha), f"{alpha}")
    check.tensor(name, out, BF16, ("M", "N"))
    return check, alpha * (input.float() @ weight.float().T)


@OPS.op("fp8_linear_bf16(Tensor input, Tensor weight, float alpha, int variant, Tensor! out)")
def _linear(input: Tensor, weight: Tensor, alpha: float, variant: int, out: Tensor) -> None:
    check, product = _product("fp8_linear_bf16", input, weight, alpha, out)
    last = 3 if ARCH == "11.0" else 0
    check.require("variant", 0 <= variant <= last, f"{variant} is not in 0..{last}")
    out.copy_(product)


@OPS.op("fp8_linear_bias_bf16(Tensor input, Tensor weight, Tensor bias, float alpha, Tensor! out)")
def _linear_bias(input: Tensor, weight: Tensor, bias: Tensor, alpha: float, out: Tensor) -> None:
    check, product = _product("fp8_linear_bias_bf16", input, weight, alpha, out)
    check.tensor("bias", bias, BF16, ("N",))
    out.copy_(product + bias.float())


@OPS.op(
    "fp8_linear_bias_residual_bf16(Tensor input, Tensor weight, Tensor bias, Tensor! residual, "
    "float alpha)"
)
def _linear_bias_residual(
    input: Tensor, weight: Tensor, bias: Tensor, residual: Tensor, alpha: float
) -> None:
    name = "fp8_linear_bias_residual_bf16"
    check, product = _product(name, input, weight, alpha, residual, "residual")
    check.tensor("bias", bias, BF16, ("N",))
    residual.copy_(residual.float() + product + bias.float())


@OPS.op(
    "fp8_linear_bias_gelu_bf16(Tensor input, Tensor weight, Tensor bias, float alpha, Tensor! out)"
)
def _linear_bias_gelu(
    input: Tensor, weight: Tensor, bias: Tensor, alpha: float, out: Tensor
) -> None:
    check, product = _product("fp8_linear_bias_gelu_bf16", input, weight, alpha, out)
    check.tensor("bias", bias, BF16, ("N",))
    out.copy_(nnf.gelu(product + bias.float(), approximate="tanh"))


# ---------------------------------------------------------------- entry points


def _number(op: str, alpha: Any) -> float:
    """A tensor would have to be read from the device: the real op takes a host number."""
    number = isinstance(alpha, int | float) and not isinstance(alpha, bool)
    require(op, "alpha", number, f"not a number on the host: {type(alpha).__name__}")
    return float(alpha)


def _out(op: str, input: Tensor, weight: Tensor, out: Tensor | None) -> Tensor:
    has_rank(op, 2, input=input, weight=weight)
    if out is None:
        out = input.new_empty((input.shape[0], weight.shape[0]), dtype=BF16)
    return out


def fp8_linear_bf16(
    input: Tensor,
    weight: Tensor,
    alpha: float = 1.0,
    out: Tensor | None = None,
    variant: int = 0,
) -> Tensor:
    """alpha times input FP8 [M, K] times weight FP8 [N, K] transposed: bf16 [M, N]."""
    out = _out("fp8_linear_bf16", input, weight, out)
    _linear(input, weight, _number("fp8_linear_bf16", alpha), variant, out)
    return out


def fp8_linear_bias_bf16(
    input: Tensor, weight: Tensor, bias: Tensor, alpha: float = 1.0, out: Tensor | None = None
) -> Tensor:
    """fp8_linear_bf16 plus bias bf16 [N]."""
    out = _out("fp8_linear_bias_bf16", input, weight, out)
    _linear_bias(input, weight, bias, _number("fp8_linear_bias_bf16", alpha), out)
    return out


def fp8_linear_bias_residual_bf16(
    input: Tensor, weight: Tensor, bias: Tensor, residual: Tensor, alpha: float = 1.0
) -> Tensor:
    """residual bf16 [M, N] plus the biased product, in place; returns residual."""
    name = "fp8_linear_bias_residual_bf16"
    has_rank(name, 2, input=input, weight=weight, residual=residual)
    _linear_bias_residual(input, weight, bias, residual, _number(name, alpha))
    return residual


def fp8_linear_bias_gelu_bf16(
    input: Tensor, weight: Tensor, bias: Tensor, alpha: float = 1.0, out: Tensor | None = None
) -> Tensor:
    """GELU of fp8_linear_bias_bf16."""
    out = _out("fp8_linear_bias_gelu_bf16", input, weight, out)
    _linear_bias_gelu(input, weight, bias, _number("fp8_linear_bias_gelu_bf16", alpha), out)
    return out

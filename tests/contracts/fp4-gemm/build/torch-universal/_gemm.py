"""Products of codes with codes."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor
from torch.nn import functional as nnf

from ._register import OPS, on
from ._shared import nvfp4
from ._shared.checking import BF16, FP16, U8, Check, has_rank, require

BOTH = ("11.0", "12.0")


def _operand(check: Check, name: str, scales: str, rows: str, packed: Tensor, sf: Tensor) -> Tensor:
    """Check codes [rows, K / 2] with their scales; their values in float32."""
    count, half = check.tensor(name, packed, U8, (rows, "K/2"))
    check.multiple(f"axis 1 of {name}", half, 16)
    check.tensor(scales, sf, U8)
    wanted = nvfp4.swizzled_bytes(count, half * 2)
    check.require(scales, sf.numel() == wanted, f"{sf.numel()} bytes, not {wanted}")
    return nvfp4.dequantize(packed, sf)


def _product(
    check: Check, a_packed: Tensor, b_packed: Tensor, sfa: Tensor, sfb: Tensor, b: str = "b_packed"
) -> Tensor:
    """The product float32 [M, N]; rows of codes begin at multiples of 16 bytes."""
    left = _operand(check, "a_packed", "sfa", "M", a_packed, sfa)
    right = _operand(check, b, "sfb", "N", b_packed, sfb)
    return left @ right.T


def _finite(check: Check, alpha: float) -> None:
    check.require("alpha", math.isfinite(alpha), f"{alpha}")


def _put(check: Check, packed: Tensor, sf: Tensor, value: Tensor) -> None:
    """Check the outputs in FP4 and write them."""
    rows, columns = value.shape
    check.multiple("columns of the result", columns, 16)
    check.tensor("out_packed", packed, U8, (rows, columns // 2))
    check.tensor("out_sfa", sf, U8)
    wanted = nvfp4.swizzled_bytes(rows, columns)
    check.require("out_sfa", sf.numel() == wanted, f"{sf.numel()} bytes, not {wanted}")
    codes, scales = nvfp4.quantize(value)
    packed.copy_(codes)
    sf.copy_(scales.reshape(sf.shape))


_OPERANDS = "Tensor a_packed, Tensor b_packed, Tensor sfa, Tensor sfb"

# ---------------------------------------------------------------- ops


@OPS.op(f"nvfp4_gemm_bf16({_OPERANDS}, float alpha, Tensor! out, int variant)")
def _gemm(
    a: Tensor, b: Tensor, sfa: Tensor, sfb: Tensor, alpha: float, out: Tensor, variant: int
) -> None:
    check = Check("nvfp4_gemm_bf16")
    on(check, *BOTH)
    product = _product(check, a, b, sfa, sfb)
    _finite(check, alpha)
    check.require("variant", variant >= -1, f"{variant}")
    check.tensor("out", out, BF16, ("M", "N"))
    out.copy_(alpha * product)


@OPS.op(
    f"fp4_w4a4_gemv_warpsplit_bf16({_OPERANDS}, float alpha, int warps, int stages, Tensor! out)"
)
def _gemv(
    a: Tensor,
    b: Tensor,
    sfa: Tensor,
    sfb: Tensor,
    alpha: float,
    warps: int,
    stages: int,
    out: Tensor,
) -> None:
    check = Check("fp4_w4a4_gemv_warpsplit_bf16")
    on(check, "12.0")
    product = _product(check, a, b, sfa, sfb)
    check.require("a_packed", check.sizes["M"] == 1, f"{check.sizes['M']} rows, not 1")
    _finite(check, alpha)
    check.require("warps", warps > 0, f"{warps}")
    check.require("stages", stages > 0, f"{stages}")
    check.tensor("out", out, BF16, (1, "N"))
    out.copy_(alpha * product)


@OPS.op(f"nvfp4_gemm_bias_bf16({_OPERANDS}, Tensor bias, Tensor! out)")
def _gemm_bias(a: Tensor, b: Tensor, sfa: Tensor, sfb: Tensor, bias: Tensor, out: Tensor) -> None:
    check = Check("nvfp4_gemm_bias_bf16")
    on(check, "11.0")
    product = _product(check, a, b, sfa, sfb)
    check.tensor("bias", bias, BF16, ("N",))
    check.tensor("out", out, BF16, ("M", "N"))
    out.copy_(product + bias.float())


@OPS.op(f"nvfp4_gemm_bias_residual_bf16({_OPERANDS}, Tensor bias, Tensor residual, Tensor! out)")
def _gemm_bias_residual(
    a: Tensor, b: Tensor, sfa: Tensor, sfb: Tensor, bias: Tensor, residual: Tensor, out: Tensor
) -> None:
    check = Check("nvfp4_gemm_bias_residual_bf16")
    on(check, "11.0")
    product = _product(check, a, b, sfa, sfb)
    check.tensor("bias", bias, BF16, ("N",))
    check.tensor("residual", residual, BF16, ("M", "N"))
    check.tensor("out", out, BF16, ("M", "N"))
    out.copy_(product + bias.float() + residual.float())


def _gelu(product: Tensor, bias: Tensor, alpha: float) -> Tensor:
    return nnf.gelu(alpha * product + bias.float(), approximate="tanh")


@OPS.op(f"nvfp4_gemm_bias_gelu_bf16({_OPERANDS}, Tensor bias, float alpha, Tensor! out)")
def _gemm_bias_gelu(
    a: Tensor, b: Tensor, sfa: Tensor, sfb: Tensor, bias: Tensor, alpha: float, out: Tensor
) -> None:
    check = Check("nvfp4_gemm_bias_gelu_bf16")
    on(check, *BOTH)
    product = _product(check, a, b, sfa, sfb)
    check.tensor("bias", bias, BF16, ("N",))
    _finite(check, alpha)
    check.tensor("out", out, BF16, ("M", "N"))
    out.copy_(_gelu(product, bias, alpha))


@OPS.op(
    f"nvfp4_gemm_bias_gelu_nvfp4({_OPERANDS}, Tensor bias, float alpha, Tensor! out_packed, "
    "Tensor! out_sfa)"
)
def _gemm_bias_gelu_nvfp4(
    a: Tensor,
    b: Tensor,
    sfa: Tensor,
    sfb: Tensor,
    bias: Tensor,
    alpha: float,
    out_packed: Tensor,
    out_sfa: Tensor,
) -> None:
    check = Check("nvfp4_gemm_bias_gelu_nvfp4")
    on(check, *BOTH)
    product = _product(check, a, b, sfa, sfb)
    check.tensor("bias", bias, BF16, ("N",))
    _finite(check, alpha)
    _put(check, out_packed, out_sfa, _gelu(product, bias, alpha))


@OPS.op(
    "nvfp4_gemm_geglu_nvfp4_fp16(Tensor a_packed, Tensor b_interleaved_packed, Tensor sfa, "
    "Tensor sfb, bool skinny, Tensor! scratch, Tensor! out_packed, Tensor! out_sfa)"
)
def _gemm_geglu(
    a: Tensor,
    b: Tensor,
    sfa: Tensor,
    sfb: Tensor,
    skinny: bool,
    scratch: Tensor,
    out_packed: Tensor,
    out_sfa: Tensor,
) -> None:
    check = Check("nvfp4_gemm_geglu_nvfp4_fp16")
    on(check, "11.0")
    product = _product(check, a, b, sfa, sfb, "b_interleaved_packed")
    check.multiple("axis 0 of b_interleaved_packed", check.sizes["N"], 2)
    check.tensor("scratch", scratch, FP16, ("M", check.sizes["N"] // 2))
    scratch.copy_(nnf.gelu(product[:, 0::2], approximate="tanh") * product[:, 1::2])
    _put(check, out_packed, out_sfa, scratch)


# ---------------------------------------------------------------- entry points


def _number(op: str, alpha: Any) -> float:
    """A tensor would have to be read from the device: the real op takes a host number."""
    number = isinstance(alpha, int | float) and not isinstance(alpha, bool)
    require(op, "alpha", number, f"not a number on the host: {type(alpha).__name__}")
    return float(alpha)


def _out(op: str, a_packed: Tensor, b_packed: Tensor, out: Tensor | None) -> Tensor:
    has_rank(op, 2, a_packed=a_packed, b_packed=b_packed)
    if out is None:
        out = a_packed.new_empty((a_packed.shape[0], b_packed.shape[0]), dtype=BF16)
    return out


def _outs(
    a_packed: Tensor, columns: int, packed: Tensor | None, sf: Tensor | None
) -> tuple[Tensor, Tensor]:
    rows = a_packed.shape[0]
    if packed is None:
        packed = a_packed.new_empty((rows, columns // 2))
    if sf is None:
        sf = a_packed.new_empty((nvfp4.swizzled_bytes(rows, columns),))
    return packed, sf


def nvfp4_gemm_bf16(
    a_packed: Tensor,
    b_packed: Tensor,
    sfa: Tensor,
    sfb: Tensor,
    alpha: float = 1.0,
    out: Tensor | None = None,
    variant: int = -1,
) -> Tensor:
    """alpha times codes [M, K / 2] times codes [N, K / 2] transposed: bf16 [M, N]."""
    name = "nvfp4_gemm_bf16"
    out = _out(name, a_packed, b_packed, out)
    _gemm(a_packed, b_packed, sfa, sfb, _number(name, alpha), out, variant)
    return out


fp4_w4a16_linear_bf16 = nvfp4_gemm_bf16
"""Despite its name it takes packed activations."""


def fp4_w4a4_gemv_warpsplit_bf16(
    a_packed: Tensor,
    b_packed: Tensor,
    sfa: Tensor,
    sfb: Tensor,
    *,
    alpha: float,
    warps: int = 4,
    stages: int = 4,
    out: Tensor | None = None,
) -> Tensor:
    """nvfp4_gemm_bf16 for one row: bf16 [1, N]."""
    name = "fp4_w4a4_gemv_warpsplit_bf16"
    out = _out(name, a_packed, b_packed, out)
    _gemv(a_packed, b_packed, sfa, sfb, _number(name, alpha), warps, stages, out)
    return out


def nvfp4_gemm_bias_bf16(
    a_packed: Tensor,
    b_packed: Tensor,
    sfa: Tensor,
    sfb: Tensor,
    bias: Tensor,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The product plus bias bf16 [N]; there is no alpha."""
    out = _out("nvfp4_gemm_bias_bf16", a_packed, b_packed, out)
    _gemm_bias(a_packed, b_packed, sfa, sfb, bias, out)
    return out


def nvfp4_gemm_bias_residual_bf16(
    a_packed: Tensor,
    b_packed: Tensor,
    sfa: Tensor,
    sfb: Tensor,
    bias: Tensor,
    residual: Tensor,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The product plus bias bf16 [N] plus residual bf16 [M, N]; there is no alpha."""
    out = _out("nvfp4_gemm_bias_residual_bf16", a_packed, b_packed, out)
    _gemm_bias_residual(a_packed, b_packed, sfa, sfb, bias, residual, out)
    return out


def nvfp4_gemm_bias_gelu_bf16(
    a_packed: Tensor,
    b_packed: Tensor,
    sfa: Tensor,
    sfb: Tensor,
    bias: Tensor,
    alpha: float,
    out: Tensor | None = None,
) -> Tensor:
    """GELU of alpha times the product plus bias: bf16 [M, N]."""
    name = "nvfp4_gemm_bias_gelu_bf16"
    out = _out(name, a_packed, b_packed, out)
    _gemm_bias_gelu(a_packed, b_packed, sfa, sfb, bias, _number(name, alpha), out)
    return out


def nvfp4_gemm_bias_gelu_nvfp4(
    a_packed: Tensor,
    b_packed: Tensor,
    sfa: Tensor,
    sfb: Tensor,
    bias: Tensor,
    alpha: float,
    out_packed: Tensor | None = None,
    out_sfa: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """nvfp4_gemm_bias_gelu_bf16 as codes uint8 [M, N / 2] and tiled scales."""
    name = "nvfp4_gemm_bias_gelu_nvfp4"
    has_rank(name, 2, a_packed=a_packed, b_packed=b_packed)
    outs = _outs(a_packed, b_packed.shape[0], out_packed, out_sfa)
    _gemm_bias_gelu_nvfp4(a_packed, b_packed, sfa, sfb, bias, _number(name, alpha), *outs)
    return outs


def nvfp4_gemm_geglu_nvfp4_fp16(
    a_packed: Tensor,
    b_interleaved_packed: Tensor,
    sfa: Tensor,
    sfb: Tensor,
    *,
    skinny: bool = False,
    scratch: Tensor | None = None,
    out_packed: Tensor | None = None,
    out_sfa: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """tanh-GELU(gate) * up as codes uint8 [M, H / 2] and tiled scales.

    b_interleaved_packed [2H, K / 2]: rows of gate and up alternate. scratch fp16 [M, H].
    """
    name = "nvfp4_gemm_geglu_nvfp4_fp16"
    has_rank(name, 2, a_packed=a_packed, b_interleaved_packed=b_interleaved_packed)
    hidden = b_interleaved_packed.shape[0] // 2
    if scratch is None:
        scratch = a_packed.new_empty((a_packed.shape[0], hidden), dtype=FP16)
    outs = _outs(a_packed, hidden, out_packed, out_sfa)
    _gemm_geglu(a_packed, b_interleaved_packed, sfa, sfb, skinny, scratch, *outs)
    return outs

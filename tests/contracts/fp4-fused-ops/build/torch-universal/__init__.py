# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/fp4-fused-ops version 2: norms and gates that end in NVFP4.

All is computed in float32 up to the codes; a sum that is kept is rounded to bfloat16 before
the norm reads it. Codes and scales lie as in fp4-gemm.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as nnf

from ._shared import nvfp4
from ._shared.checking import BF16, F32, U8, Check, Ops, has_rank

ARCH: str | None = None
"""The compute capability played; None is one that every op runs on."""

OPS = Ops(__name__)


def _check(op: str) -> Check:
    check = Check(op)
    check.arch(ARCH, "11.0", "12.0")
    return check


def _put(check: Check, value: Tensor, packed: Tensor, sf: Tensor, name: str = "sfa") -> None:
    """Check the outputs in FP4 and write them."""
    rows, columns = value.shape
    check.multiple("columns of the result", columns, 16)
    check.tensor("packed", packed, U8, (rows, columns // 2))
    check.tensor(name, sf, U8)
    wanted = nvfp4.swizzled_bytes(rows, columns)
    check.require(name, sf.numel() == wanted, f"{sf.numel()} bytes, not {wanted}")
    codes, scales = nvfp4.quantize(value)
    packed.copy_(codes)
    sf.copy_(scales.reshape(sf.shape))


def _scaled(check: Check, value: Tensor, inv_s: Tensor | None) -> Tensor:
    """Times what balances the channels, where there is such."""
    if inv_s is None:
        return value
    check.tensor("inv_s", inv_s, (BF16, F32), (value.shape[1],))
    return value * inv_s.float()


@OPS.op(
    "layer_norm_nvfp4_bf16(Tensor x, Tensor gamma, Tensor beta, Tensor? inv_s, float eps, "
    "Tensor! packed, Tensor! sfa)"
)
def _layer_norm(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    inv_s: Tensor | None,
    eps: float,
    packed: Tensor,
    sfa: Tensor,
) -> None:
    check = _check("layer_norm_nvfp4_bf16")
    check.tensor("x", x, BF16, ("M", "D"))
    check.tensor("gamma", gamma, BF16, ("D",))
    check.tensor("beta", beta, BF16, ("D",))
    check.eps(eps)
    normed = nnf.layer_norm(x.float(), x.shape[-1:], gamma.float(), beta.float(), eps)
    _put(check, _scaled(check, normed, inv_s), packed, sfa)


@OPS.op("gelu_mul_nvfp4_bf16(Tensor merged, Tensor? inv_s, Tensor! packed, Tensor! sfa)")
def _gelu_mul(merged: Tensor, inv_s: Tensor | None, packed: Tensor, sfa: Tensor) -> None:
    check = _check("gelu_mul_nvfp4_bf16")
    check.tensor("merged", merged, BF16, ("M", "2H"))
    check.multiple("axis 1 of merged", check.sizes["2H"], 2)
    gate, up = merged.float().chunk(2, dim=1)
    value = nnf.gelu(gate, approximate="tanh") * up
    _put(check, _scaled(check, value, inv_s), packed, sfa)


@OPS.op(
    "residual_add_rms_norm_quant_nvfp4_swizzled_bf16(Tensor! residual, Tensor x, Tensor weight, "
    "float eps, Tensor! packed, Tensor! sfa)"
)
def _residual_add(
    residual: Tensor, x: Tensor, weight: Tensor, eps: float, packed: Tensor, sfa: Tensor
) -> None:
    check = _check("residual_add_rms_norm_quant_nvfp4_swizzled_bf16")
    check.tensor("residual", residual, BF16, ("M", "D"))
    check.tensor("x", x, BF16, ("M", "D"))
    check.tensor("weight", weight, BF16, ("D",))
    check.eps(eps)
    check.apart("residual", residual, x=x)
    residual.copy_(residual.float() + x.float())
    normed = nnf.rms_norm(residual.float(), residual.shape[-1:], weight.float(), eps)
    _put(check, normed, packed, sfa)


@OPS.op(
    "gate_res_ada_rms_norm_quant_nvfp4_swizzled_bf16(Tensor x, Tensor previous_gate, "
    "Tensor! residual, Tensor style, Tensor! packed, Tensor! sf_swizzled, Tensor! gate)"
)
def _gate_res_ada(
    x: Tensor,
    previous_gate: Tensor,
    residual: Tensor,
    style: Tensor,
    packed: Tensor,
    sf_swizzled: Tensor,
    gate: Tensor,
) -> None:
    check = _check("gate_res_ada_rms_norm_quant_nvfp4_swizzled_bf16")
    rows, width = check.tensor("x", x, BF16, ("M", "D"))
    check.tensor("previous_gate", previous_gate, BF16, ("M", "D"))
    check.tensor("residual", residual, BF16, ("M", "D"))
    given, _ = check.tensor("style", style, BF16, ("S", 3 * width))
    check.require("style", given in (1, rows), f"{given} rows for {rows} of x")
    check.tensor("gate", gate, BF16, ("M", "D"))
    check.apart("residual", residual, x=x, previous_gate=previous_gate)
    residual.copy_(residual.float() + x.float() * previous_gate.float())
    scale, shift, next_gate = style.float().chunk(3, dim=1)
    normed = nnf.rms_norm(residual.float(), residual.shape[-1:], None, 1e-6)
    _put(check, normed * (1 + scale) + shift, packed, sf_swizzled, "sf_swizzled")
    gate.copy_(next_gate.expand(rows, width))


# ---------------------------------------------------------------- entry points


def _outs(
    x: Tensor, columns: int, packed: Tensor | None, sf: Tensor | None
) -> tuple[Tensor, Tensor]:
    if packed is None:
        packed = x.new_empty((x.shape[0], columns // 2), dtype=U8)
    if sf is None:
        sf = x.new_empty((nvfp4.swizzled_bytes(x.shape[0], columns),), dtype=U8)
    return packed, sf


def layer_norm_nvfp4_bf16(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    inv_s: Tensor | None = None,
    eps: float = 1e-6,
    *,
    packed: Tensor | None = None,
    sfa: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Affine LayerNorm of x bf16 [M, D], times inv_s [D], as codes and tiled scales."""
    has_rank("layer_norm_nvfp4_bf16", 2, x=x)
    outs = _outs(x, x.shape[1], packed, sfa)
    _layer_norm(x, gamma, beta, inv_s, eps, *outs)
    return outs


def gelu_mul_nvfp4_bf16(
    merged: Tensor,
    inv_s: Tensor | None = None,
    *,
    packed: Tensor | None = None,
    sfa: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """tanh-GELU of the first half of merged bf16 [M, 2H] times the second, as codes and scales."""
    has_rank("gelu_mul_nvfp4_bf16", 2, merged=merged)
    outs = _outs(merged, merged.shape[1] // 2, packed, sfa)
    _gelu_mul(merged, inv_s, *outs)
    return outs


def residual_add_rms_norm_quant_nvfp4_swizzled_bf16(
    residual: Tensor,
    x: Tensor,
    weight: Tensor,
    eps: float = 1e-6,
    *,
    packed: Tensor | None = None,
    sfa: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """residual bf16 [M, D] += x, in place; its RMSNorm times weight as codes and scales."""
    has_rank("residual_add_rms_norm_quant_nvfp4_swizzled_bf16", 2, residual=residual, x=x)
    outs = _outs(x, x.shape[1], packed, sfa)
    _residual_add(residual, x, weight, eps, *outs)
    return outs


def gate_res_ada_rms_norm_quant_nvfp4_swizzled_bf16(
    x: Tensor,
    previous_gate: Tensor,
    residual: Tensor,
    style: Tensor,
    *,
    packed: Tensor | None = None,
    sf_swizzled: Tensor | None = None,
    gate: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """residual += x * previous_gate, in place; its adaptive RMSNorm as codes and scales.

    style bf16 [M or 1, 3D]: scale, shift, gate. Gives (residual, packed, sf_swizzled, gate); the
    ABI says a tuple and not of what, so a caller can't rely on the order.
    """
    has_rank("gate_res_ada_rms_norm_quant_nvfp4_swizzled_bf16", 2, x=x)
    outs = _outs(x, x.shape[1], packed, sf_swizzled)
    if gate is None:
        gate = x.new_empty(x.shape)
    _gate_res_ada(x, previous_gate, residual, style, *outs, gate)
    return residual, *outs, gate

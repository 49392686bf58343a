# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/flashrt-adaptive-norms version 1: RMSNorms under a style.

A style is scale | shift | gate along its rows, one row for all or one for each. All is computed
in float32 and rounded once; a residual is rounded to bfloat16 before it is normalised.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as nnf

from ._shared import fp8
from ._shared.checking import BF16, FP8, Check, Ops, has_rank

OPS = Ops(__name__)


def _check_style(check: Check, weight: Tensor, style: Tensor, eps: float) -> None:
    check.multiple("axis 1 of x", check.sizes["D"], 2)
    check.tensor("weight", weight, BF16, ("D",))
    rows, _ = check.tensor("style", style, BF16, ("rows of the style", 3 * check.sizes["D"]))
    check.require("style", rows in (1, check.sizes["M"]), f"{rows} rows for {check.sizes['M']}")
    check.eps(eps)


def _adaptive(x: Tensor, weight: Tensor, style: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The styled norm in float32, and the gate of each row."""
    scale, shift, gate = style.float().expand(x.shape[0], -1).chunk(3, dim=1)
    normed = nnf.rms_norm(x.float(), x.shape[-1:], weight.float(), eps)
    return normed * (1 + scale) + shift, gate


@OPS.op(
    "ada_rms_norm_style_bf16(Tensor x, Tensor weight, Tensor style, float eps, Tensor! out, "
    "Tensor! gate_out)"
)
def _ada_rms_norm_style(
    x: Tensor, weight: Tensor, style: Tensor, eps: float, out: Tensor, gate_out: Tensor
) -> None:
    check = Check("ada_rms_norm_style_bf16")
    check.tensor("x", x, BF16, ("M", "D"))
    _check_style(check, weight, style, eps)
    check.tensor("out", out, BF16, ("M", "D"))
    check.tensor("gate_out", gate_out, BF16, ("M", "D"))
    check.apart("gate_out", gate_out, x=x, style=style, out=out)
    normed, gate = _adaptive(x, weight, style, eps)
    out.copy_(normed)
    gate_out.copy_(gate)


@OPS.op(
    "gate_residual_ada_norm_fp8_static_bf16(Tensor! residual, Tensor x, Tensor gate, "
    "Tensor weight, Tensor style, Tensor scale, float eps, Tensor! out, Tensor! gate_out)"
)
def _gate_residual_ada_norm(
    residual: Tensor,
    x: Tensor,
    gate: Tensor,
    weight: Tensor,
    style: Tensor,
    scale: Tensor,
    eps: float,
    out: Tensor,
    gate_out: Tensor,
) -> None:
    check = Check("gate_residual_ada_norm_fp8_static_bf16")
    check.tensor("residual", residual, BF16, ("M", "D"))
    check.tensor("x", x, BF16, ("M", "D"))
    check.tensor("gate", gate, BF16, ("M", "D"))
    _check_style(check, weight, style, eps)
    check.scale("scale", scale)
    check.tensor("out", out, FP8, ("M", "D"))
    check.tensor("gate_out", gate_out, BF16, ("M", "D"))
    check.apart("residual", residual, x=x, gate=gate)
    check.apart("gate_out", gate_out, style=style, residual=residual)
    residual.copy_(residual.float() + x.float() * gate.float())
    normed, following = _adaptive(residual, weight, style, eps)
    out.copy_(fp8.quantize(normed, scale))
    gate_out.copy_(following)


# ---------------------------------------------------------------- entry points


def ada_rms_norm_style_bf16(
    x: Tensor,
    weight: Tensor,
    style: Tensor,
    eps: float = 1e-6,
    out: Tensor | None = None,
    gate_out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """RMSNorm of x bf16 [M, D] times weight [D], times 1 + scale, plus shift; and the gate.

    style  bf16 [M, 3D] or [1, 3D]: scale | shift | gate

    Returns the norm and the gates of its rows, both bf16 [M, D].
    """
    has_rank("ada_rms_norm_style_bf16", 2, x=x)
    if out is None:
        out = x.new_empty(x.shape, dtype=BF16)
    if gate_out is None:
        gate_out = x.new_empty(x.shape, dtype=BF16)
    _ada_rms_norm_style(x, weight, style, eps, out, gate_out)
    return out, gate_out


def gate_residual_ada_norm_fp8_static_bf16(
    residual: Tensor,
    x: Tensor,
    gate: Tensor,
    weight: Tensor,
    style: Tensor,
    scale: Tensor,
    eps: float = 1e-6,
    out: Tensor | None = None,
    gate_out: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """residual bf16 [M, D] += x * gate (in place), then the styled norm of it as FP8.

    gate   bf16 [M, D], one for each row
    style  bf16 [M, 3D] or [1, 3D]: scale | shift | gate

    Returns the residual, the codes FP8 [M, D] and the next gates bf16 [M, D].
    """
    has_rank("gate_residual_ada_norm_fp8_static_bf16", 2, residual=residual, x=x)
    if out is None:
        out = x.new_empty(x.shape, dtype=FP8)
    if gate_out is None:
        gate_out = torch.empty_like(residual)
    _gate_residual_ada_norm(residual, x, gate, weight, style, scale, eps, out, gate_out)
    return residual, out, gate_out

# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/masked-mha-runtime version 1: attention as two strided products.

Logits are rounded to the dtype of q, for they are stored; softmax is taken in float32, its
weights are stored where the logits were, and the sums are rounded once.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ._shared.checking import BF16, FP16, Check, Ops, has_rank

OPS = Ops(__name__)


def _padded(keys: int) -> int:
    return -(-keys // 8) * 8


def _check_operands(check: Check, q: Tensor, k: Tensor, v: Tensor) -> None:
    check.tensor("q", q, (FP16, BF16), ("Sq", "H", "D"), contiguous=False)
    check.tensor("k", k, q.dtype, ("Sk", "H", "D"), contiguous=False)
    check.tensor("v", v, q.dtype, ("Sk", "H", "D"), contiguous=False)
    strides: set[int] = set()
    for name, value in (("q", q), ("k", k), ("v", v)):
        if value.dtype == FP16:
            told = f"not contiguous: strides {value.stride()}"
            check.require(name, value.is_contiguous(), told)
            continue
        told = f"the heads of a token lie apart: strides {value.stride()}"
        check.require(name, value[0].is_contiguous(), told)
        if value.shape[0] > 1:
            strides.add(value.stride(0))
        told = f"token strides differ: {sorted(strides)}"
        check.require(name, len(strides) <= 1, told)


@OPS.op("forward_static(Tensor q, Tensor k, Tensor v, Tensor! logits, Tensor! out, float scale)")
def _forward(q: Tensor, k: Tensor, v: Tensor, logits: Tensor, out: Tensor, scale: float) -> None:
    check = Check("forward_static")
    _check_operands(check, q, k, v)
    keys = check.sizes["Sk"]
    check.tensor("logits", logits, q.dtype, ("H", "Sq", _padded(keys)))
    check.tensor("out", out, q.dtype, ("Sq", "H", "D"))
    check.apart("out", out, q=q, k=k, v=v)
    check.require("scale", scale > 0, f"{scale}: not a positive number")
    logits.zero_()
    logits[..., :keys] = (torch.einsum("qhd,khd->hqk", q.float(), k.float()) * scale).to(q.dtype)
    weights = logits[..., :keys].float().softmax(dim=-1).to(q.dtype)
    logits[..., :keys] = weights
    out.copy_(torch.einsum("hqk,khd->qhd", weights.float(), v.float()))


def allocate_workspace(q: Tensor, k: Tensor) -> Tensor:
    """Logits [H, Sq, Sk rounded up to 8] in the dtype of q [Sq, H, D], for k [Sk, H, D]."""
    has_rank("allocate_workspace", 3, q=q, k=k)
    return q.new_empty((q.shape[1], q.shape[0], _padded(k.shape[0])))


def forward_static(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    logits: Tensor,
    out: Tensor,
    scale: float | None = None,
) -> Tensor:
    """Attention of q fp16 or bf16 [Sq, H, D] over all of k, v [Sk, H, D], into out.

    fp16 is dense; in bf16 q, k and v may be rows of one buffer, under one token stride. scale is
    D**-0.5 where it is not given.
    """
    has_rank("forward_static", 3, q=q, k=k, v=v)
    _forward(q, k, v, logits, out, q.shape[-1] ** -0.5 if scale is None else scale)
    return out

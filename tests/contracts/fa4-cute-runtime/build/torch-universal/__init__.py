# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/fa4-cute-runtime version 1: FlashAttention 4 into a buffer of the caller.

The entry has no fake and can't be traced: the real one is Python that compiles its kernel when
it first runs. Where the causal corner lies for unequal lengths is not part of the ABI, so such a call is refused.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ._shared.attention import attend, lower
from ._shared.checking import BF16, FP16, I32, Check, Ops, has_rank

OPS = Ops(__name__)


@OPS.op(
    "forward_static(Tensor q, Tensor k, Tensor v, Tensor? seqused_k, Tensor! out, "
    "float softmax_scale, bool causal)"
)
def _forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    seqused_k: Tensor | None,
    out: Tensor,
    softmax_scale: float,
    causal: bool,
) -> None:
    check = Check("forward_static")
    check.tensor("q", q, (FP16, BF16), ("B", "Sq", "Hq", "D"), contiguous=False)
    check.tensor("k", k, q.dtype, ("B", "Sk", "Hkv", "D"), contiguous=False)
    check.tensor("v", v, q.dtype, ("B", "Sk", "Hkv", "D"), contiguous=False)
    check.tensor("out", out, q.dtype, ("B", "Sq", "Hq", "D"), contiguous=False)
    for name, value in (("q", q), ("k", k), ("v", v), ("out", out)):
        check.require(name, value.stride(-1) == 1, f"last axis has stride {value.stride(-1)}")
    check.apart("out", out, q=q, k=k, v=v)
    queries, keys, q_heads, kv_heads = (check.sizes[one] for one in ("Sq", "Sk", "Hq", "Hkv"))
    check.require("k", q_heads % kv_heads == 0, f"{kv_heads} heads for {q_heads} of q")
    check.require("softmax_scale", softmax_scale > 0, f"{softmax_scale}: not a positive number")
    seen = None
    if causal:
        told = f"{queries} queries and {keys} keys: the corner is not stated"
        check.require("causal", queries == keys, told)
        seen = lower(queries, keys, q.device)
    if seqused_k is not None:
        check.tensor("seqused_k", seqused_k, I32, ("B",), align=4)
        low, high = int(seqused_k.min()), int(seqused_k.max())
        check.require("seqused_k", 1 <= low and high <= keys, f"{low}..{high} is not in 1..{keys}")
        used = torch.arange(keys, device=q.device) < seqused_k[:, None, None, None]
        seen = used if seen is None else used & seen
    out.copy_(attend(q, k, v, softmax_scale, seen)[0])


@torch.compiler.disable
def forward_static(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    *,
    softmax_scale: float | None = None,
    causal: bool = False,
    pack_gqa: bool | None = None,
    seqused_k: Tensor | None = None,
) -> Tensor:
    """Attention of q fp16 or bf16 [B, Sq, Hq, D] over k, v [B, Sk, Hkv, D], into out.

    seqused_k  int32 [B]: keys of each row that are attended to (None: all)
    pack_gqa   how the kernel groups heads; of no effect on the values
    """
    has_rank("forward_static", 4, q=q)
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    _forward(q, k, v, seqused_k, out, scale, causal)
    return out

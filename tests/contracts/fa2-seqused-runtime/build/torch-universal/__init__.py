# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/fa2-seqused-runtime version 1: FlashAttention 2 into buffers of the caller.

Logits, softmax and sums are taken in float32 and rounded once. Where the causal corner lies for
unequal lengths is not part of the ABI, so such a call is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ._shared.attention import attend, lower
from ._shared.checking import BF16, F32, FP16, I32, Check, Ops, has_rank, require

OPS = Ops(__name__)
SMS = 1
"""Multiprocessors of the device played: one never splits the keys."""

_BLOCK = 128  # keys that one split has at least


@dataclass(frozen=True)
class FA2Workspace:
    """Partial results of keys split over the device: float32 [splits, B, Hq, Sq(, D)]."""

    lse: Tensor
    out: Tensor


def _check_operands(check: Check, dtypes: tuple[torch.dtype, ...], **operands: Tensor) -> None:
    for name, value in operands.items():
        shape = ("B", "Sq", "Hq", "D") if name in ("q", "out") else ("B", "Sk", "Hkv", "D")
        check.tensor(name, value, dtypes, shape, contiguous=False)
        check.require(name, value.stride(-1) == 1, f"last axis has stride {value.stride(-1)}")
        for axis in range(3):
            stride = value.stride(axis)
            told = f"stride {stride} of axis {axis} is no multiple of 8"
            check.require(name, value.shape[axis] == 1 or stride % 8 == 0, told)
        dtypes = (value.dtype,)
    size, q_heads, kv_heads = (check.sizes[one] for one in ("D", "Hq", "Hkv"))
    check.require("q", size % 8 == 0 and size <= 256, f"heads of {size}: not 8, 16 .. 256")
    check.require("k", q_heads % kv_heads == 0, f"{kv_heads} heads for {q_heads} of q")


def _check_results(
    check: Check, q: Tensor, out: Tensor, lse: Tensor, parts: tuple[Tensor | None, Tensor | None]
) -> None:
    check.tensor("softmax_lse", lse, F32, ("B", "Hq", "Sq"))
    check.apart("out", out, q=q)
    if parts[0] is None or parts[1] is None:
        return
    size = check.sizes["D"]
    split = 40 <= size <= 128 or 232 <= size <= 256
    check.require("workspace", split, f"keys of heads of {size} are not split")
    check.tensor("workspace", parts[0], F32, ("splits", "B", "Hq", "Sq"))
    check.tensor("workspace", parts[1], F32, ("splits", "B", "Hq", "Sq", "D"))


@OPS.op(
    "forward_static(Tensor q, Tensor k, Tensor v, Tensor! out, Tensor! softmax_lse, "
    "Tensor!? lse_parts, Tensor!? out_parts, float softmax_scale, bool causal)"
)
def _forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    softmax_lse: Tensor,
    lse_parts: Tensor | None,
    out_parts: Tensor | None,
    softmax_scale: float,
    causal: bool,
) -> None:
    check = Check("forward_static")
    _check_operands(check, (FP16, BF16), q=q, k=k, v=v, out=out)
    _check_results(check, q, out, softmax_lse, (lse_parts, out_parts))
    check.require("softmax_scale", softmax_scale > 0, f"{softmax_scale}: not a positive number")
    seen = None
    if causal:
        size, queries, keys = (check.sizes[one] for one in ("D", "Sq", "Sk"))
        told = f"on {q.dtype} heads of {size}, not bfloat16 ones of 128 or 256"
        check.require("causal", q.dtype == BF16 and size in (128, 256), told)
        told = f"{queries} queries and {keys} keys: the corner is not stated"
        check.require("causal", queries == keys, told)
        seen = lower(queries, keys, q.device)
    found, lse = attend(q, k, v, softmax_scale, seen)
    out.copy_(found)
    softmax_lse.copy_(lse)


@OPS.op(
    "forward_seqused_static(Tensor q, Tensor k, Tensor v, Tensor seqused_k, Tensor! out, "
    "Tensor! softmax_lse, Tensor!? lse_parts, Tensor!? out_parts, float softmax_scale)"
)
def _forward_seqused(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    seqused_k: Tensor,
    out: Tensor,
    softmax_lse: Tensor,
    lse_parts: Tensor | None,
    out_parts: Tensor | None,
    softmax_scale: float,
) -> None:
    check = Check("forward_seqused_static")
    _check_operands(check, (BF16,), q=q, k=k, v=v, out=out)
    check.tensor("seqused_k", seqused_k, I32, ("B",), align=4)
    _check_results(check, q, out, softmax_lse, (lse_parts, out_parts))
    check.require("softmax_scale", softmax_scale > 0, f"{softmax_scale}: not a positive number")
    keys, low, high = check.sizes["Sk"], int(seqused_k.min()), int(seqused_k.max())
    check.require("seqused_k", 1 <= low and high <= keys, f"{low}..{high} is not in 1..{keys}")
    seen = torch.arange(keys, device=q.device) < seqused_k[:, None, None, None]
    found, lse = attend(q, k, v, softmax_scale, seen)
    out.copy_(found)
    softmax_lse.copy_(lse)


# ---------------------------------------------------------------- entry points


def allocate_outputs(q: Tensor) -> tuple[Tensor, Tensor]:
    """A buffer like q [B, Sq, Hq, D], and one of float32 [B, Hq, Sq] for the log of sums."""
    has_rank("allocate_outputs", 4, q=q)
    batch, steps, heads, _ = q.shape
    return torch.empty_like(q), q.new_empty((batch, heads, steps), dtype=F32)


def allocate_workspace(q: Tensor, k: Tensor, *, num_sms: int | None = None) -> FA2Workspace | None:
    """What splitting the keys needs, None where they are not split. Not inside a capture."""
    has_rank("allocate_workspace", 4, q=q, k=k)
    batch, steps, heads, size = q.shape
    blocks = batch * heads * -(-steps // 64)
    splits = min((SMS if num_sms is None else num_sms) // blocks, k.shape[1] // _BLOCK)
    if splits < 2 or not (40 <= size <= 128 or 232 <= size <= 256):
        return None
    return FA2Workspace(
        lse=q.new_empty((splits, batch, heads, steps), dtype=F32),
        out=q.new_empty((splits, batch, heads, steps, size), dtype=F32),
    )


def _parts(op: str, workspace: FA2Workspace | None) -> tuple[Tensor | None, Tensor | None]:
    if workspace is None:
        return None, None
    known = isinstance(workspace, FA2Workspace)
    require(op, "workspace", known, "not from allocate_workspace")
    return workspace.lse, workspace.out


def forward_static(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    out: Tensor,
    softmax_lse: Tensor,
    workspace: FA2Workspace | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
) -> Tensor:
    """Attention of q fp16 or bf16 [B, Sq, Hq, D] over k, v [B, Sk, Hkv, D], into out.

    The last axis is contiguous, the other strides are multiples of 8. softmax_scale is D**-0.5
    where it is not given.
    """
    has_rank("forward_static", 4, q=q)
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    parts = _parts("forward_static", workspace)
    _forward(q, k, v, out, softmax_lse, *parts, scale, causal)
    return out


def forward_seqused_static(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    seqused_k: Tensor,
    *,
    out: Tensor,
    softmax_lse: Tensor,
    workspace: FA2Workspace | None = None,
    softmax_scale: float | None = None,
) -> Tensor:
    """The same in bf16 over the first seqused_k int32 [B] keys of each row, into out."""
    has_rank("forward_seqused_static", 4, q=q)
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    parts = _parts("forward_seqused_static", workspace)
    _forward_seqused(q, k, v, seqused_k, out, softmax_lse, *parts, scale)
    return out

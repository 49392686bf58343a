"""Softmax attention as the packages state it: logits, softmax and sums in float32."""

from __future__ import annotations

import torch
from torch import Tensor


def attend(
    q: Tensor, k: Tensor, v: Tensor, scale: float, seen: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The output float32 [B, Sq, Hq, D] and the log of the sum of exponents [B, Hq, Sq].

    q, k, v  [B, Sq, Hq, D] and [B, Sk, Hkv, D]; head h of q reads head h // (Hq / Hkv)
    seen     bool, what each query sees: broadcasts to [B, Hq, Sq, Sk]; None is all
    """
    group = q.shape[2] // k.shape[2]
    k, v = (one.float().repeat_interleave(group, dim=2) for one in (k, v))
    logits = torch.einsum("bqhd,bkhd->bhqk", q.float(), k) * scale
    if seen is not None:
        logits = logits.masked_fill(~seen, float("-inf"))
    out = torch.einsum("bhqk,bkhd->bqhd", logits.softmax(dim=-1), v)
    return out, logits.logsumexp(dim=-1)


def lower(queries: int, keys: int, device: torch.device) -> Tensor:
    """What is seen causally: bool [queries, keys], the first query sees the first key."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril()

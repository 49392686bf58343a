"""Library ops of torch that stand for several steps of a dataflow: what torch rungs call."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as nnf

CHUNK = 64
"""Steps of a recurrence that are taken as one product."""


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float = 1.0,
    bias: Tensor | None = None,
    seen: Tensor | None = None,
    causal: bool = False,
) -> Tensor:
    """``softmax(q @ k.T * scale + mask) @ v`` by torch's own fused attention.

    q [B, H, Sq, D], k and v [B, Hkv, Skv, D], each head of k and v for ``H / Hkv`` of q

    bias    [B or 1, 1 or H, Sq, Skv]: added to the scores
    seen    [B or 1, 1 or H, Sq, Skv] of bool: the keys that a query may see
    causal  without either of the two: the last query meets the last key, and none a later one

    Returns [B, H, Sq, D] in the dtype of ``q``. Scores and softmax are float32 inside; its
    weights are rounded to the dtype of ``v`` before they meet it.
    """
    mask = seen
    if bias is not None:
        limits = torch.finfo(q.dtype)  # a float32 minimum would become -inf, and a row of it NaN
        mask = bias.clamp(limits.min, limits.max).to(q.dtype)
    square = q.shape[-2] == k.shape[-2]
    causal = causal and mask is None and q.shape[-2] > 1
    if causal and not square:  # torch's own causal mask lets the first query meet the first key
        whole = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device)
        mask = whole.tril(k.shape[-2] - q.shape[-2])
    return nnf.scaled_dot_product_attention(
        q,
        k,
        v,
        attn_mask=mask,
        is_causal=causal and square,
        scale=scale,
        enable_gqa=q.shape[-3] != k.shape[-3],
    )


# ---------------------------------------------------------------- rotation


def rope_half(x: Tensor, cos: Tensor, sin: Tensor, *, rotary: int, heads: int = 0) -> Tensor:
    """``ops.rope_half`` with each half written by one multiply and one ``addcmul``: no copy of
    the halves exchanged, and none of a half-wide table.

    x [..., D]; cos, sin [..., rotary] or [..., rotary / 2]; ``heads``: the axis of ``x``,
    from the end, that the tables lack.
    """
    first, second = x[..., :rotary].chunk(2, dim=-1)
    (cos1, cos2), (sin1, sin2) = (_halves(table, rotary, heads) for table in (cos, sin))
    turned = (
        torch.addcmul(first * cos1, second, sin1, value=-1),
        torch.addcmul(second * cos2, first, sin2),
    )
    return torch.cat([*turned, x[..., rotary:]], dim=-1)


def rope_interleaved(x: Tensor, cos: Tensor, sin: Tensor, *, rotary: int, heads: int = 0) -> Tensor:
    """Like ``rope_half``, with neighbouring channels paired."""
    first, second = x[..., 0:rotary:2], x[..., 1:rotary:2]
    (cos1, cos2), (sin1, sin2) = (_pairs(table, rotary, heads) for table in (cos, sin))
    turned = torch.stack(
        [
            torch.addcmul(first * cos1, second, sin1, value=-1),
            torch.addcmul(second * cos2, first, sin2),
        ],
        dim=-1,
    )
    return torch.cat([turned.flatten(-2), x[..., rotary:]], dim=-1)


def _halves(table: Tensor, rotary: int, heads: int) -> tuple[Tensor, Tensor]:
    """What each half of the channels is multiplied by."""
    table = table.unsqueeze(heads) if heads else table
    if table.shape[-1] != rotary:
        return table, table
    return table[..., : rotary // 2], table[..., rotary // 2 :]


def _pairs(table: Tensor, rotary: int, heads: int) -> tuple[Tensor, Tensor]:
    table = table.unsqueeze(heads) if heads else table
    if table.shape[-1] != rotary:
        return table, table
    return table[..., 0::2], table[..., 1::2]


# ---------------------------------------------------------------- recurrence


def gated_delta(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, strength: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """The gated delta rule in chunks: products of torch in place of a step at a time.

    q, k [B, S, H, Dk], v [B, S, H, Dv], log_decay and strength [B, S, H], state [B, H, Dk, Dv],
    all float32. Returns what each step reads, [B, S, H, Dv], and the state after the last.

    A step is ``s' = d s + k (b (v - (d s) k))`` and reads ``s' q``. With the products ``D_i``
    of the decays up to step i, the corrections ``u_i = b_i (v_i - (d_i s) k_i)`` of one chunk
    solve ``(I + A) u = b (v - D k s0)``, where ``A_ij = b_i D_i / D_j (k_i . k_j)`` below the
    diagonal: one triangular solve for all chunks, then a product or two for each in turn.
    """
    steps = q.shape[1]
    if steps == 0:
        return v.new_empty(v.shape), state
    size = min(CHUNK, steps)
    lead = -steps % size
    q, k, v = (_chunked(nnf.pad(t, (0, 0, 0, 0, 0, lead)), size) for t in (q, k, v))
    log_decay, b = (_chunked(nnf.pad(t, (0, 0, 0, lead)), size) for t in (log_decay, strength))
    # float64: a difference of two sums has to keep what is small beside either; and no -inf,
    # of which there is no difference (the exponential is 0 long before)
    total = log_decay.double().clamp(min=-1e4).cumsum(-1)
    between = (total.unsqueeze(-1) - total.unsqueeze(-2)).float()
    later = torch.ones(size, size, dtype=torch.bool, device=q.device).triu(1)
    between = between.masked_fill(later, float("-inf")).exp()
    since = total.float().exp().unsqueeze(-1)
    until = between[..., -1, :].unsqueeze(-1)

    below = (b.unsqueeze(-1) * between * (k @ k.mT)).tril(-1)
    sides = torch.cat([b.unsqueeze(-1) * v, b.unsqueeze(-1) * since * k], dim=-1)
    solved = torch.linalg.solve_triangular(below, sides, upper=False, unitriangular=True)
    own, of_state = solved.split([v.shape[-1], k.shape[-1]], dim=-1)
    seen = (q @ k.mT) * between
    q, k = q * since, k * until
    out = []
    for chunk in range(q.shape[2]):
        u = own[:, :, chunk] - of_state[:, :, chunk] @ state
        out.append(q[:, :, chunk] @ state + seen[:, :, chunk] @ u)
        state = since[:, :, chunk, -1:] * state + k[:, :, chunk].mT @ u
    read = torch.cat(out, dim=2)[:, :, :steps]
    return read.transpose(1, 2), state


def _chunked(x: Tensor, size: int) -> Tensor:
    """[B, S, H, …] as [B, H, S / size, size, …]."""
    x = x.transpose(1, 2)
    return x.reshape(*x.shape[:2], -1, size, *x.shape[3:])

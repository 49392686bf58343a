# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/flashrt-qkv-cache-rope version 1: a packed product split and rotated.

A packed row is q | k | v. All is computed in float32 and rounded once to bfloat16.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as nnf

from ._shared.checking import BF16, F32, Check, Ops, has_rank, is_count, require

OPS = Ops(__name__)
HEAD = 128
"""The one head size of the op that norms each head."""


def _halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [B, S, H, D] with its halves rotated by cos, sin [B, S, D or D / 2]."""
    if cos.shape[-1] != x.shape[-1]:
        cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
    low, high = x.chunk(2, dim=-1)
    turned = torch.cat((-high, low), dim=-1)
    return x * cos.float()[:, :, None] + turned * sin.float()[:, :, None]


def _pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [B, S, H, D] with its neighbours rotated by cos, sin [S, D / 2]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    cos, sin = cos.float()[None, :, None], sin.float()[None, :, None]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


def _split(packed: Tensor, heads: tuple[int, int], head_dim: int) -> tuple[Tensor, ...]:
    """q, k, v of [B, S, heads * D] as [B, S, H, D]."""
    parts = packed.split([one * head_dim for one in (heads[0], heads[1], heads[1])], dim=2)
    return tuple(one.unflatten(2, (-1, head_dim)) for one in parts)


def _check_packed(check: Check, packed: Tensor, heads: tuple[int, int], head_dim: int) -> int:
    """The width of a packed row of so many heads."""
    q_heads, kv_heads = heads
    check.require("q_heads", q_heads >= 1, f"{q_heads}")
    grouped = kv_heads >= 1 and q_heads % kv_heads == 0
    check.require("kv_heads", grouped, f"{kv_heads} for {q_heads} of q")
    check.require("head_dim", head_dim >= 2 and head_dim % 2 == 0, f"{head_dim} is not even")
    width = (q_heads + 2 * kv_heads) * head_dim
    check.tensor("packed_qkv", packed, BF16, ("B", "S", width))
    return width


def _check_outs(
    check: Check, heads: tuple[int, int], head_dim: int, q: Tensor, k: Tensor, v: Tensor
) -> None:
    for name, out, count in (
        ("q_out", q, heads[0]),
        ("k_out", k, heads[1]),
        ("v_out", v, heads[1]),
    ):
        check.tensor(name, out, BF16, ("B", "S", count, head_dim))


@OPS.op(
    "qkv_split_rope_kvcache_bf16(Tensor packed_qkv, Tensor rope, int q_heads, int kv_heads, "
    "int head_dim, int cache_offset, Tensor! q_out, Tensor! k_cache, Tensor! v_cache)"
)
def _split_rope_cache(
    packed_qkv: Tensor,
    rope: Tensor,
    q_heads: int,
    kv_heads: int,
    head_dim: int,
    cache_offset: int,
    q_out: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
) -> None:
    check = Check("qkv_split_rope_kvcache_bf16")
    heads = (q_heads, kv_heads)
    _check_packed(check, packed_qkv, heads, head_dim)
    steps = check.sizes["S"]
    rows, _ = check.tensor("rope", rope, BF16, ("rows", head_dim))
    check.require("rope", rows >= steps, f"{rows} rows for {steps} positions")
    check.tensor("q_out", q_out, BF16, ("B", "S", q_heads, head_dim))
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        check.tensor(name, cache, BF16, ("B", "Smax", kv_heads, head_dim))
    end, room = cache_offset + steps, check.sizes["Smax"]
    fits = cache_offset >= 0 and end <= room
    check.require("cache_offset", fits, f"{cache_offset} + {steps} positions in {room}")
    check.apart("k_cache", k_cache, v_cache=v_cache)
    q, k, v = _split(packed_qkv.float(), heads, head_dim)
    cos, sin = rope[:steps, 0::2], rope[:steps, 1::2]
    q_out.copy_(_pairs(q, cos, sin))
    k_cache[:, cache_offset:end] = _pairs(k, cos, sin).bfloat16()
    v_cache[:, cache_offset:end] = v.bfloat16()


@OPS.op(
    "qkv_split_bias_rope_bf16(Tensor packed_qkv, Tensor qkv_bias, Tensor cos, Tensor sin, "
    "int q_heads, int kv_heads, int head_dim, Tensor! q_out, Tensor! k_out, Tensor! v_out)"
)
def _split_bias_rope(
    packed_qkv: Tensor,
    qkv_bias: Tensor,
    cos: Tensor,
    sin: Tensor,
    q_heads: int,
    kv_heads: int,
    head_dim: int,
    q_out: Tensor,
    k_out: Tensor,
    v_out: Tensor,
) -> None:
    check = Check("qkv_split_bias_rope_bf16")
    heads = (q_heads, kv_heads)
    width = _check_packed(check, packed_qkv, heads, head_dim)
    check.require("head_dim", 8 <= head_dim <= 256, f"{head_dim} is not in 8..256")
    check.tensor("qkv_bias", qkv_bias, BF16, (width,))
    _, _, turned = check.tensor("cos", cos, BF16, ("B", "S", "R"))
    wide = turned in (head_dim, head_dim // 2)
    check.require("cos", wide, f"{turned} values, not {head_dim} or {head_dim // 2}")
    check.tensor("sin", sin, BF16, ("B", "S", "R"))
    _check_outs(check, heads, head_dim, q_out, k_out, v_out)
    q, k, v = _split(packed_qkv.float() + qkv_bias.float(), heads, head_dim)
    q_out.copy_(_halves(q, cos, sin))
    k_out.copy_(_halves(k, cos, sin))
    v_out.copy_(v)


@OPS.op(
    "qkv_split_per_head_norm_rope_bf16(Tensor packed_qkv, Tensor q_norm_weight, "
    "Tensor k_norm_weight, Tensor cos, Tensor sin, int q_heads, int kv_heads, float eps, "
    "Tensor! q_out, Tensor! k_out, Tensor! v_out)"
)
def _split_norm_rope(
    packed_qkv: Tensor,
    q_norm_weight: Tensor,
    k_norm_weight: Tensor,
    cos: Tensor,
    sin: Tensor,
    q_heads: int,
    kv_heads: int,
    eps: float,
    q_out: Tensor,
    k_out: Tensor,
    v_out: Tensor,
) -> None:
    check = Check("qkv_split_per_head_norm_rope_bf16")
    heads = (q_heads, kv_heads)
    _check_packed(check, packed_qkv, heads, HEAD)
    check.tensor("q_norm_weight", q_norm_weight, BF16, (HEAD,))
    check.tensor("k_norm_weight", k_norm_weight, BF16, (HEAD,))
    check.tensor("cos", cos, BF16, ("B", "S", HEAD))
    check.tensor("sin", sin, BF16, ("B", "S", HEAD))
    check.eps(eps)
    _check_outs(check, heads, HEAD, q_out, k_out, v_out)
    q, k, v = _split(packed_qkv.float(), heads, HEAD)
    q_out.copy_(_halves(nnf.rms_norm(q, (HEAD,), q_norm_weight.float(), eps), cos, sin))
    k_out.copy_(_halves(nnf.rms_norm(k, (HEAD,), k_norm_weight.float(), eps), cos, sin))
    v_out.copy_(v)


@OPS.op(
    "qkv_split_bias_norm_rope_v_bf16(Tensor packed_qkv, Tensor qkv_bias, Tensor norm_q_weight, "
    "Tensor norm_k_weight, Tensor freqs_re, Tensor freqs_im, int heads, int head_dim, "
    "int rope_seq_len, float eps, Tensor! q_out, Tensor! k_out, Tensor! v_out)"
)
def _split_bias_norm_rope(
    packed_qkv: Tensor,
    qkv_bias: Tensor,
    norm_q_weight: Tensor,
    norm_k_weight: Tensor,
    freqs_re: Tensor,
    freqs_im: Tensor,
    heads: int,
    head_dim: int,
    rope_seq_len: int,
    eps: float,
    q_out: Tensor,
    k_out: Tensor,
    v_out: Tensor,
) -> None:
    check = Check("qkv_split_bias_norm_rope_v_bf16")
    width = _check_packed(check, packed_qkv, (heads, heads), head_dim)
    check.tensor("qkv_bias", qkv_bias, BF16, (width,))
    row = heads * head_dim
    check.tensor("norm_q_weight", norm_q_weight, BF16, (row,))
    check.tensor("norm_k_weight", norm_k_weight, BF16, (row,))
    check.tensor("freqs_re", freqs_re, F32, ("rows", head_dim // 2))
    check.tensor("freqs_im", freqs_im, F32, ("rows", head_dim // 2))
    rows, steps = check.sizes["rows"], check.sizes["S"]
    known = 0 <= rope_seq_len <= min(rows, steps)
    told = f"{rope_seq_len} of {steps} positions with {rows} rows of freqs_re"
    check.require("rope_seq_len", known, told)
    check.eps(eps)
    _check_outs(check, (heads, heads), head_dim, q_out, k_out, v_out)
    packed = packed_qkv.float() + qkv_bias.float()
    parts = packed.split(row, dim=2)
    for part, weight, out in ((parts[0], norm_q_weight, q_out), (parts[1], norm_k_weight, k_out)):
        normed = nnf.rms_norm(part, (row,), weight.float(), eps).unflatten(2, (heads, head_dim))
        turned = normed[:, :rope_seq_len]
        turned = _pairs(turned, freqs_re[:rope_seq_len], freqs_im[:rope_seq_len])
        out.copy_(torch.cat((turned, normed[:, rope_seq_len:]), dim=1))
    v_out.copy_(parts[2].unflatten(2, (heads, head_dim)))


# ---------------------------------------------------------------- entry points


def _allocate(
    packed: Tensor,
    heads: tuple[int, int],
    head_dim: int,
    outs: tuple[Tensor | None, Tensor | None, Tensor | None],
) -> tuple[Tensor, Tensor, Tensor]:
    counts = (heads[0], heads[1], heads[1])
    q, k, v = (
        packed.new_empty((*packed.shape[:2], count, head_dim), dtype=BF16) if out is None else out
        for out, count in zip(outs, counts, strict=True)
    )
    return q, k, v


def qkv_split_rope_kvcache_bf16(
    packed_qkv: Tensor,
    rope: Tensor,
    q_heads: int,
    kv_heads: int,
    head_dim: int,
    cache_offset: int,
    q_out: Tensor | None = None,
    k_cache: Tensor | None = None,
    v_cache: Tensor | None = None,
    max_seq_len: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Split packed bf16 [B, S, (Hq + 2 Hkv) D], rotate neighbours of q and k, write k and v.

    rope     bf16 [>= S, D], cos and sin alternating
    k_cache, v_cache  bf16 [B, Smax, Hkv, D], written from cache_offset; made of zeros with
             max_seq_len positions where they are not given

    Returns q bf16 [B, S, Hq, D] and the caches.
    """
    op = "qkv_split_rope_kvcache_bf16"
    has_rank(op, 3, packed_qkv=packed_qkv)
    is_count(op, q_heads=q_heads, kv_heads=kv_heads, head_dim=head_dim)
    batch, steps = packed_qkv.shape[:2]
    if q_out is None:
        q_out = packed_qkv.new_empty((batch, steps, q_heads, head_dim), dtype=BF16)
    if k_cache is None or v_cache is None:
        require(op, "v_cache", k_cache is None and v_cache is None, "one cache without the other")
        room = cache_offset + steps if max_seq_len is None else max_seq_len
        k_cache = packed_qkv.new_zeros((batch, room, kv_heads, head_dim))
        v_cache = torch.zeros_like(k_cache)
    _split_rope_cache(
        packed_qkv, rope, q_heads, kv_heads, head_dim, cache_offset, q_out, k_cache, v_cache
    )
    return q_out, k_cache, v_cache


def qkv_split_bias_rope_bf16(
    packed_qkv: Tensor,
    qkv_bias: Tensor,
    cos: Tensor,
    sin: Tensor,
    q_heads: int,
    kv_heads: int,
    head_dim: int,
    q_out: Tensor | None = None,
    k_out: Tensor | None = None,
    v_out: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Packed bf16 [B, S, (Hq + 2 Hkv) D] plus its bias, split, the halves of q and k rotated.

    cos, sin  bf16 [B, S, D] or [B, S, D / 2]

    Returns q, k, v bf16 [B, S, H, D].
    """
    op = "qkv_split_bias_rope_bf16"
    has_rank(op, 3, packed_qkv=packed_qkv)
    is_count(op, q_heads=q_heads, kv_heads=kv_heads, head_dim=head_dim)
    heads = (q_heads, kv_heads)
    q, k, v = _allocate(packed_qkv, heads, head_dim, (q_out, k_out, v_out))
    _split_bias_rope(packed_qkv, qkv_bias, cos, sin, q_heads, kv_heads, head_dim, q, k, v)
    return q, k, v


def qkv_split_per_head_norm_rope_bf16(
    packed_qkv: Tensor,
    q_norm_weight: Tensor,
    k_norm_weight: Tensor,
    cos: Tensor,
    sin: Tensor,
    q_heads: int,
    kv_heads: int,
    eps: float = 1e-6,
    q_out: Tensor | None = None,
    k_out: Tensor | None = None,
    v_out: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Packed bf16 [B, S, (Hq + 2 Hkv) 128], split; each head of q and k normed, halves rotated.

    q_norm_weight, k_norm_weight  bf16 [128]
    cos, sin                      bf16 [B, S, 128]

    Returns q, k, v bf16 [B, S, H, 128].
    """
    op = "qkv_split_per_head_norm_rope_bf16"
    has_rank(op, 3, packed_qkv=packed_qkv)
    is_count(op, q_heads=q_heads, kv_heads=kv_heads)
    q, k, v = _allocate(packed_qkv, (q_heads, kv_heads), HEAD, (q_out, k_out, v_out))
    _split_norm_rope(
        packed_qkv, q_norm_weight, k_norm_weight, cos, sin, q_heads, kv_heads, eps, q, k, v
    )
    return q, k, v


def qkv_split_bias_norm_rope_v_bf16(
    packed_qkv: Tensor,
    qkv_bias: Tensor,
    norm_q_weight: Tensor,
    norm_k_weight: Tensor,
    freqs_re: Tensor,
    freqs_im: Tensor,
    heads: int,
    head_dim: int,
    rope_seq_len: int | None = None,
    eps: float = 1e-6,
    q_out: Tensor | None = None,
    k_out: Tensor | None = None,
    v_out: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Packed bf16 [B, S, 3 H D] plus bias, the rows of q and k normed over H D, pairs rotated.

    norm_q_weight, norm_k_weight  bf16 [H D]
    freqs_re, freqs_im            f32 [>= rope_seq_len, D / 2]
    rope_seq_len                  positions that are rotated (None: all)

    Returns q, k, v bf16 [B, S, H, D].
    """
    op = "qkv_split_bias_norm_rope_v_bf16"
    has_rank(op, 3, packed_qkv=packed_qkv)
    is_count(op, heads=heads, head_dim=head_dim)
    q, k, v = _allocate(packed_qkv, (heads, heads), head_dim, (q_out, k_out, v_out))
    turned = packed_qkv.shape[1] if rope_seq_len is None else rope_seq_len
    _split_bias_norm_rope(
        packed_qkv,
        qkv_bias,
        norm_q_weight,
        norm_k_weight,
        freqs_re,
        freqs_im,
        heads,
        head_dim,
        turned,
        eps,
        q,
        k,
        v,
    )
    return q, k, v

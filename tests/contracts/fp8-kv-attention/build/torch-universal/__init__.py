# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/fp8-kv-attention version 4: decode attention over paged FP8 keys.

seq_lens counts the keys of the cache with those of the queries themselves, which are the last
ones; the mask says which of these each query sees, a bit a key, lowest first. Logits, softmax
and sums are taken in float32 and rounded once. Strides of the caches can't be given here: the
ABI text does not name those arguments.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ._shared.attention import attend
from ._shared.checking import BF16, FP8, I32, U8, Check, Ops, is_tensor, require

OPS = Ops(__name__)
PAGE = 32
FORMS = ((24, 4, 256), (16, 2, 256), (32, 8, 128), (32, 16, 128), (16, 8, 128))
"""Heads of q, heads of k and v, and their size, as the package has them."""


@OPS.op(
    "xqa_bf16_fp8kv(Tensor q, Tensor k_cache, Tensor v_cache, Tensor page_table, "
    "Tensor seq_lens, Tensor mask, Tensor! out, Tensor! semaphores, Tensor! scratch, "
    "int max_seq_len, float q_scale, Tensor kv_scale, bool enable_pdl, int? sm_count)"
)
def _xqa(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    page_table: Tensor,
    seq_lens: Tensor,
    mask: Tensor,
    out: Tensor,
    semaphores: Tensor,
    scratch: Tensor,
    max_seq_len: int,
    q_scale: float,
    kv_scale: Tensor,
    enable_pdl: bool,
    sm_count: int | None,
) -> None:
    check = Check("xqa_bf16_fp8kv")
    shape = check.tensor("q", q, BF16)
    check.require("q", len(shape) >= 3, f"shape {list(shape)}, not [.., q_seq, Hq, D]")
    steps, heads, size = shape[-3:]
    check.require("q", q.numel() == steps * heads * size, "a batch: one row of queries is taken")
    check.require("q", 1 <= steps <= 32, f"{steps} queries, not 1 to 32")
    check.tensor("k_cache", k_cache, FP8, ("pages", PAGE, "Hkv", size))
    check.tensor("v_cache", v_cache, FP8, ("pages", PAGE, "Hkv", size))
    kv_heads = check.sizes["Hkv"]
    told = f"{heads}/{kv_heads} heads of {size} are none of {FORMS}"
    check.require("q", (heads, kv_heads, size) in FORMS, told)
    check.tensor("page_table", page_table, I32, align=4)
    check.tensor("seq_lens", seq_lens, I32, (1,), align=4)
    check.tensor("mask", mask, I32, (steps, 1), align=4)
    check.tensor("out", out, BF16, shape)
    check.tensor("semaphores", semaphores, I32, ("count",))
    check.require("semaphores", semaphores.numel() >= 256, f"{semaphores.numel()}, fewer than 256")
    check.tensor("scratch", scratch, U8, ("bytes",))
    check.require("scratch", scratch.numel() >= 2**20, f"{scratch.numel()} bytes, less than 1 MiB")
    check.scale("kv_scale", kv_scale)
    check.require("q_scale", q_scale > 0, f"{q_scale}: not a positive number")
    keys, pages = int(seq_lens), page_table.reshape(-1)
    told = f"{keys} is not in {steps}..{max_seq_len}"
    check.require("seq_lens", steps <= keys <= max_seq_len, told)
    used = -(-keys // PAGE)
    check.require("page_table", pages.numel() >= used, f"{pages.numel()} pages for {keys} keys")
    named = pages[:used].long()
    known = 0 <= int(named.min()) and int(named.max()) < check.sizes["pages"]
    check.require("page_table", known, "a page that the cache has not")
    k, v = (
        one[named].flatten(0, 1)[None, :keys].float() * kv_scale.reshape(())
        for one in (k_cache, v_cache)
    )
    bits = mask >> torch.arange(steps, dtype=torch.int32, device=q.device) & 1
    before = torch.ones(steps, keys - steps, dtype=torch.bool, device=q.device)
    seen = torch.cat((before, bits.bool()), dim=1)
    out.copy_(
        attend(q.reshape(1, steps, heads, size), k, v, q_scale * size**-0.5, seen)[0].view(shape)
    )
    semaphores.zero_()


# ---------------------------------------------------------------- entry points


def xqa_bf16_fp8kv(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    page_table: Tensor,
    seq_lens: Tensor,
    mask: Tensor,
    *,
    out: Tensor | None = None,
    semaphores: Tensor,
    scratch: Tensor,
    max_seq_len: int,
    q_scale: float = 1.0,
    kv_scale: Tensor,
    enable_pdl: bool = True,
    sm_count: int | None = None,
) -> Tensor:
    """Attention of q bf16 [.., q_seq, Hq, D] over FP8 pages [pages, 32, Hkv, D]: bf16 like q.

    page_table  int32, the pages of the row in order
    seq_lens    int32 [1], keys with those of the queries
    mask        int32 [q_seq, 1], see causal_spec_mask
    kv_scale    f32 [1], of both caches; q_scale is a number on the host
    """
    is_tensor("xqa_bf16_fp8kv", q=q)
    if out is None:
        out = torch.empty_like(q)
    _xqa(
        q,
        k_cache,
        v_cache,
        page_table,
        seq_lens,
        mask,
        out,
        semaphores,
        scratch,
        max_seq_len,
        q_scale,
        kv_scale,
        enable_pdl,
        sm_count,
    )
    return out


def allocate_workspace(
    *,
    q_seq: int,
    num_q_heads: int = 24,
    num_kv_heads: int = 4,
    device: torch.device | str = "cpu",
    scratch_mb: int = 256,
) -> tuple[Tensor, Tensor]:
    """Semaphores int32 (zero, 256 or more) and scratch_mb MiB of scratch."""
    op = "allocate_workspace"
    require(op, "q_seq", 1 <= q_seq <= 32, f"{q_seq}, not 1 to 32")
    require(op, "scratch_mb", scratch_mb >= 1, f"{scratch_mb}: less than 1 MiB")
    count = max(256, num_kv_heads * q_seq)
    semaphores = torch.zeros(count, dtype=I32, device=device)
    return semaphores, torch.empty(scratch_mb * 2**20, dtype=U8, device=device)


def causal_spec_mask(q_seq: int, device: torch.device | str = "cpu") -> Tensor:
    """int32 [q_seq, 1]: query i sees the queries 0 to i, a bit each."""
    require("causal_spec_mask", "q_seq", 1 <= q_seq <= 32, f"{q_seq}, not 1 to 32")
    rows = [(1 << (row + 1)) - 1 for row in range(q_seq)]
    signed = [row - (1 << 32) if row >= 1 << 31 else row for row in rows]
    return torch.tensor(signed, dtype=I32, device=device)[:, None]


def default_page_table(num_pages: int, device: torch.device | str = "cpu") -> Tensor:
    """int32 [num_pages]: page i is the i-th."""
    return torch.arange(num_pages, dtype=I32, device=device)

"""Products of few rows: the weight is read once, at the speed of memory.

The weight is the tall side of each product and the rows of ``x`` the narrow one, so one row
costs what sixteen do. Programs are many and small, more than one a multiprocessor: all of
them run at once and share the memory evenly.

A weight is [N, K] codes (INT4: [N, K / 2] bytes, even places low). Gated forms hold the rows
of the gate, then those of the other half: [2 N, K].
"""

import triton
import triton.language as tl

from ._codes import FP8, INT4, ask, dot, int4_to_bf16, int8_to_bf16
from ._finish import finish


@triton.jit
def _dots(
    x, w, rows, row_ok, M, K, BYTES, begin, end,
    FORMAT: tl.constexpr, BR: tl.constexpr, BM: tl.constexpr,
    BK: tl.constexpr, EVEN: tl.constexpr, STAGES: tl.constexpr, ASM: tl.constexpr,
    EXACT: tl.constexpr,
):  # fmt: skip
    """acc [BR, BM] = w[rows, begin:end] @ x[:, begin:end].T on the matrix units."""
    ms = tl.arange(0, BM)
    m_ok = ms < M
    acc = tl.zeros([BR, BM], tl.float32)
    ks = tl.arange(0, BK)
    line = rows.to(tl.int64) * BYTES
    for k in tl.range(begin, end, BK, num_stages=STAGES):
        k_ok = k + ks < end
        at = w + line[:, None] + (k + ks)[None, :]
        if FORMAT == FP8:
            if EVEN:
                wt = tl.load(at, mask=row_ok[:, None], other=0.0, eviction_policy="evict_first")
            else:
                wt = tl.load(at, mask=row_ok[:, None] & k_ok[None, :], other=0.0)
        else:
            if EVEN:
                wt = tl.load(at, mask=row_ok[:, None], other=0, eviction_policy="evict_first")
            else:
                wt = tl.load(at, mask=row_ok[:, None] & k_ok[None, :], other=0)
        xp = x + ms[None, :] * K + (k + ks)[:, None]
        x_ok = m_ok[None, :] if EVEN else m_ok[None, :] & k_ok[:, None]
        if FORMAT == FP8:
            xt = tl.load(xp, mask=x_ok, other=0.0)
            if EXACT:
                acc = tl.dot(wt, xt, acc, max_num_imprecise_acc=EXACT)
            else:
                acc = tl.dot(wt, xt, acc)
        else:
            xt = tl.load(xp, mask=x_ok, other=0.0)
            acc = dot(int8_to_bf16(wt, ASM), xt, acc, ASM)
    return acc


@triton.jit
def _dots_int4(
    x, w, ws, rows, row_ok, M, K, BYTES, GROUPS, begin, end,
    GROUP: tl.constexpr, BR: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr,
    EVEN: tl.constexpr, STAGES: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """``_dots`` of INT4: the groups of a tile are a batch of products, scaled each."""
    PARTS: tl.constexpr = BK // GROUP
    ms = tl.arange(0, BM)
    m_ok = (ms < M)[None, None, :]
    parts = tl.arange(0, PARTS)
    half = tl.arange(0, GROUP // 2)
    line = rows.to(tl.int64)[None, :, None]
    ok = row_ok[None, :, None]
    acc = tl.zeros([PARTS, BR, BM], tl.float32)
    place = parts[:, None, None] * (GROUP // 2) + half[None, None, :]
    xs = parts[:, None, None] * (GROUP // 2) + half[None, :, None] + ms[None, None, :] * (K // 2)
    odds = M * (K // 2)
    for k in tl.range(begin, end, BK, num_stages=STAGES):
        at = w + line * BYTES + k // 2 + place
        sp = ws + line * GROUPS + k // GROUP + parts[:, None, None]
        p_ok = (k + parts * GROUP < end)[:, None, None]
        if EVEN:
            codes = tl.load(at, mask=ok, other=0, eviction_policy="evict_first")
            s = tl.load(sp, mask=ok, other=0.0)
            even = tl.load(x + k // 2 + xs, mask=m_ok, other=0.0)
            odd = tl.load(x + odds + k // 2 + xs, mask=m_ok, other=0.0)
        else:
            codes = tl.load(at, mask=ok & p_ok, other=0)
            s = tl.load(sp, mask=ok & p_ok, other=0.0)
            even = tl.load(x + k // 2 + xs, mask=m_ok & p_ok, other=0.0)
            odd = tl.load(x + odds + k // 2 + xs, mask=m_ok & p_ok, other=0.0)
        low, high = int4_to_bf16(codes, ASM)
        part = dot(low, even, tl.zeros([PARTS, BR, BM], tl.float32), ASM)
        acc += dot(high, odd, part, ASM) * s
    return tl.sum(acc, axis=0)


@triton.jit
def few_rows(
    x, w, ws, xs, bias, out, os, part, count, zero, M, N, K, BYTES, GROUPS,
    FORMAT: tl.constexpr, GATED: tl.constexpr, ACT: tl.constexpr, BIAS: tl.constexpr,
    REQUANT: tl.constexpr, HALVES: tl.constexpr, GROUP: tl.constexpr, BN: tl.constexpr,
    BM: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr, EVEN: tl.constexpr,
    STAGES: tl.constexpr, LINES: tl.constexpr, ZEROS: tl.constexpr, ASM: tl.constexpr,
    EXACT: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """out[M, N] = epilogue(x[M, K] @ w.T): one tile of outputs, one part of K, a program.

    x, w, ws  rows and codes; scales of w ([1] FP8, [N] INT8, [N, K / GROUP] INT4)
    xs        scale of x's FP8 codes, [1]
    out, os   bfloat16, or FP8 codes under os [1] where REQUANT
    part      float32 [SPLIT, tiles, BN or 2 BN, BM] and count int32 [tiles], zero: where SPLIT > 1
    zero      int32 [ZEROS], made zero here for the kernel behind
    PDL       started before the kernel in front has ended: what that one wrote is read after
              the wait only, weights are asked for before it
    """
    tile = tl.program_id(0)
    piece = tl.program_id(1)
    BR: tl.constexpr = 2 * BN if GATED else BN
    r = tl.arange(0, BR)
    col = tile * BN + r % BN
    row_ok = col < N
    rows = tl.where(row_ok, col, 0) + (r // BN) * N
    chunk = tl.cdiv(tl.cdiv(K, BK), SPLIT) * BK
    begin = piece * chunk
    end = tl.minimum(begin + chunk, K)
    HALF: tl.constexpr = 2 if FORMAT == INT4 else 1
    if PDL:
        if LINES > 0:
            ask(w, rows, BYTES, begin // HALF, LINES)
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    if ZEROS > 0:  # noqa: SIM102 (known when compiled)
        if (tile == 0) & (piece == 0):
            tl.store(zero + tl.arange(0, ZEROS), tl.zeros([ZEROS], tl.int32))
    if FORMAT == INT4:
        acc = _dots_int4(
            x, w, ws, rows, row_ok, M, K, BYTES, GROUPS, begin, end,
            GROUP, BR, BM, BK, EVEN, STAGES, ASM,
        )  # fmt: skip
    else:
        acc = _dots(
            x, w, rows, row_ok, M, K, BYTES, begin, end,
            FORMAT, BR, BM, BK, EVEN, STAGES, ASM, EXACT,
        )  # fmt: skip
    last = True
    if SPLIT > 1:
        ms = tl.arange(0, BM)
        here = part + tile * (BR * BM) + r[:, None] * BM + ms[None, :]
        step = tl.num_programs(0).to(tl.int64) * (BR * BM)
        tl.store(here + piece * step, acc)
        tl.debug_barrier()
        last = tl.atomic_add(count + tile, 1, sem="acq_rel") == SPLIT - 1
        if last:
            # In the order of the pieces, so that the sum does not depend on who came last.
            acc = tl.zeros([BR, BM], tl.float32)
            for p in tl.static_range(SPLIT):
                acc += tl.load(here + p * step, cache_modifier=".cg")
    if last:
        finish(
            acc, ws, xs, bias, out, os, tile, col, row_ok, rows, M, N,
            FORMAT, GATED, ACT, BIAS, REQUANT, HALVES, BN, BM, ASM,
        )  # fmt: skip

"""Products of one row on the ordinary units: the matrix units would be given rows of zeros.

Weights are [N, K] codes, FP8 or INT8, gated forms [2 N, K] as in ``_few``.
"""

import triton
import triton.language as tl

from ._codes import FP8, ask, int8_to_f32, steps_of, to_fp8
from ._finish import finish


@triton.jit
def one_row(
    x, w, ws, xs, bias, out, os, part, count, zero, N, K,
    FORMAT: tl.constexpr, GATED: tl.constexpr, ACT: tl.constexpr, BIAS: tl.constexpr,
    REQUANT: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr,
    EVEN: tl.constexpr, STAGES: tl.constexpr, LINES: tl.constexpr, ZEROS: tl.constexpr,
    ASM: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """out[1, N] = epilogue(x[1, K] @ w.T); BN columns and a part of K a program.

    x is bfloat16, or FP8 codes under xs; a bfloat16 row of an FP8 product is quantised here.
    part is float32 [SPLIT, tiles, BN or 2 BN]; the rest as in ``few_rows``.
    """
    tile = tl.program_id(0)
    piece = tl.program_id(1)
    BR: tl.constexpr = 2 * BN if GATED else BN
    r = tl.arange(0, BR)
    col = tile * BN + r % BN
    ok = col < N
    rows = tl.where(ok, col, 0) + (r // BN) * N
    chunk = tl.cdiv(tl.cdiv(K, BK), SPLIT) * BK
    begin = piece * chunk
    end = tl.minimum(begin + chunk, K)
    if PDL:
        if LINES > 0:
            ask(w, rows, K, begin, LINES)
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    if ZEROS > 0:  # noqa: SIM102 (known when compiled)
        if (tile == 0) & (piece == 0):
            tl.store(zero + tl.arange(0, ZEROS), tl.zeros([ZEROS], tl.int32))
    acc = _stream(x, w, xs, rows, K, begin, end, FORMAT, BR, BK, EVEN, STAGES, ASM)
    last = True
    if SPLIT > 1:
        here = part + tile * BR + r
        step = tl.num_programs(0) * BR
        tl.store(here + piece * step, acc)
        tl.debug_barrier()
        last = tl.atomic_add(count + tile, 1, sem="acq_rel") == SPLIT - 1
        if last:
            # In the order of the pieces, so that the sum does not depend on who came last.
            acc = tl.zeros([BR], tl.float32)
            for p in tl.static_range(SPLIT):
                acc += tl.load(here + p * step, cache_modifier=".cg")
    if last:
        finish(
            acc[:, None], ws, xs, bias, out, os, tile, col, ok, rows, 1, N,
            FORMAT, GATED, ACT, BIAS, REQUANT, False, BN, 1, ASM,
        )  # fmt: skip


@triton.jit
def _stream(
    x, w, xs, rows, K, begin, end,
    FORMAT: tl.constexpr, BR: tl.constexpr, BK: tl.constexpr, EVEN: tl.constexpr,
    STAGES: tl.constexpr, ASM: tl.constexpr,
):  # fmt: skip
    """acc [BR] = w[rows, begin:end] @ x[begin:end], in codes."""
    ks = tl.arange(0, BK)
    line = rows.to(tl.int64)[:, None] * K
    QUANTIZE: tl.constexpr = FORMAT == FP8 and x.dtype.element_ty == tl.bfloat16
    if QUANTIZE:
        scale, inverse = steps_of(tl.load(xs))
    acc = tl.zeros([BR, BK], tl.float32)
    for k in tl.range(begin, end, BK, num_stages=STAGES):
        at = w + line + (k + ks)[None, :]
        if EVEN:
            xt = tl.load(x + k + ks)
            wt = tl.load(at, eviction_policy="evict_first")
        elif FORMAT == FP8:
            xt = tl.load(x + k + ks, mask=k + ks < end, other=0.0)
            wt = tl.load(at, mask=(k + ks < end)[None, :], other=0.0)
        else:
            xt = tl.load(x + k + ks, mask=k + ks < end, other=0.0)
            wt = tl.load(at, mask=(k + ks < end)[None, :], other=0)
        if QUANTIZE:
            xt = to_fp8(xt.to(tl.float32), scale, inverse, ASM)
        if FORMAT == FP8:
            acc += wt.to(tl.float32) * xt.to(tl.float32)[None, :]
        else:
            acc += int8_to_f32(wt, ASM) * xt.to(tl.float32)[None, :]
    return tl.sum(acc, axis=1)

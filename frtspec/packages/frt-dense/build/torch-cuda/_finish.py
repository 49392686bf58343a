"""The end of a product: scales, bias, activation of a gate, the form it is stored in."""

import triton
import triton.language as tl

from ._codes import FP8, INT4, activate, steps_of, to_bf16, to_fp8


@triton.jit
def finish(
    acc, ws, xs, bias, out, os, tile, col, row_ok, rows, M, N,
    FORMAT: tl.constexpr, GATED: tl.constexpr, ACT: tl.constexpr, BIAS: tl.constexpr,
    REQUANT: tl.constexpr, HALVES: tl.constexpr, BN: tl.constexpr, BM: tl.constexpr,
    ASM: tl.constexpr,
):  # fmt: skip
    """Stores a tile of sums [BN or 2 BN, BM]; what is activated is rounded to bfloat16 before.

    HALVES: out is [2, M, N / 2], even columns first, as an INT4 product reads its rows.
    """
    if FORMAT == FP8:
        acc = acc * (tl.load(xs) * tl.load(ws))
    elif FORMAT != INT4:
        acc = acc * tl.load(ws + rows, mask=row_ok, other=0.0)[:, None]
    if BIAS:
        acc += tl.load(bias + rows, mask=row_ok, other=0.0).to(tl.float32)[:, None]
    ms = tl.arange(0, BM)
    n = tile * BN + tl.arange(0, BN)
    if ACT != 0:
        acc = to_bf16(acc, ASM).to(tl.float32)
    if GATED:
        g, u = tl.split(tl.permute(tl.reshape(acc, [2, BN, BM]), [1, 2, 0]))
        acc = activate(g, ACT, ASM) * u
    elif ACT != 0:
        acc = activate(acc, ACT, ASM)
    if HALVES:
        at = out + (n[:, None] % 2 * M + ms[None, :]).to(tl.int64) * (N // 2) + n[:, None] // 2
    else:
        at = out + ms[None, :].to(tl.int64) * N + n[:, None]
    ok = (n < N)[:, None] & (ms < M)[None, :]
    if REQUANT:
        step, inverse = steps_of(tl.load(os))
        tl.store(at, to_fp8(acc, step, inverse, ASM), mask=ok)
    else:
        tl.store(at, to_bf16(acc, ASM), mask=ok)

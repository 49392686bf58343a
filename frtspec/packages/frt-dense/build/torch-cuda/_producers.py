"""What stands between the products: FP8 codes of rows, of an activated gate."""

import triton
import triton.language as tl

from ._codes import activate, steps_of, to_fp8


@triton.jit
def quantize_rows(
    x, out, scale, zero, total, ZEROS: tl.constexpr, BLOCK: tl.constexpr, ASM: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    """FP8 codes of contiguous ``x`` under scale [1]; ``zero`` int32 [ZEROS] becomes zero."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    pid = tl.program_id(0)
    if ZEROS > 0:  # noqa: SIM102 (known when compiled)
        if pid == 0:
            tl.store(zero + tl.arange(0, ZEROS), tl.zeros([ZEROS], tl.int32))
    at = pid.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    ok = at < total
    v = tl.load(x + at, mask=ok, other=0.0).to(tl.float32)
    step, inverse = steps_of(tl.load(scale))
    tl.store(out + at, to_fp8(v, step, inverse, ASM), mask=ok)


@triton.jit
def activate_quantize(
    h, out, scale, M, N, GATED: tl.constexpr, ACT: tl.constexpr, BLOCK: tl.constexpr,
    ASM: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """out [M, N] = FP8 codes under scale [1] of act(h[:, :N]) * h[:, N:], or of act(h)."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    row = tl.program_id(1).to(tl.int64)
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = n < N
    line = h + row * (2 * N if GATED else N) + n
    v = activate(tl.load(line, mask=ok, other=0.0).to(tl.float32), ACT, ASM)
    if GATED:
        v = v * tl.load(line + N, mask=ok, other=0.0).to(tl.float32)
    step, inverse = steps_of(tl.load(scale))
    tl.store(out + row * N + n, to_fp8(v, step, inverse, ASM), mask=ok)


@triton.jit
def halve_rows(
    x, out, zero, M, K, ZEROS: tl.constexpr, BLOCK: tl.constexpr, PDL: tl.constexpr
):  # fmt: skip
    """out [2, M, K / 2] bfloat16: the even places of x [M, K], then the odd ones; ``zero`` as
    in ``quantize_rows``."""
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    row = tl.program_id(1).to(tl.int64)
    if ZEROS > 0:  # noqa: SIM102 (known when compiled)
        if (tl.program_id(0) == 0) & (row == 0):
            tl.store(zero + tl.arange(0, ZEROS), tl.zeros([ZEROS], tl.int32))
    k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + row * K + k, mask=k < K, other=0.0)
    tl.store(out + (k % 2 * M + row) * (K // 2) + k // 2, v, mask=k < K)

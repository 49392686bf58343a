"""Speed of the gated FFN on one GPU, every arm live and interleaved in one process.

    python bench/kernels_ffn.py [--rows 1,16,64,512,2048,8192] [--d 4096] [--f 12288]

Timed region: the whole block from a bfloat16 activation to a bfloat16 result, quantising
included, as replays of a CUDA graph of twelve calls over six weight sets in rotation (cold:
more than the L2 holds) or over one (warm); figures are medians of 30 replays with the tenth
and ninetieth percentile. Arms take turns in random order with
a rest of 20 ms between replays. Weights are random, so is the input.
"""

from __future__ import annotations

import argparse

import kernels_gpu as gpu
import torch
from torch import Tensor
from torch.nn import functional as nnf


def plain(x: Tensor, up: Tensor, down: Tensor) -> Tensor:
    g, u = (x @ up.T).chunk(2, dim=-1)
    return (nnf.silu(g) * u) @ down.T


def scaled(
    x: Tensor, up: Tensor, down: Tensor, xs: Tensor, us: Tensor, hs: Tensor, ds: Tensor
) -> Tensor:
    """What torch alone gives: static FP8 by the library's product, fast accumulation."""

    def codes(t: Tensor, scale: Tensor) -> Tensor:
        return (t.float() / scale).clamp(-448, 448).to(gpu.FP8)

    def mm(a: Tensor, b: Tensor, sa: Tensor, sb: Tensor) -> Tensor:
        return torch._scaled_mm(
            a, b.T, scale_a=sa, scale_b=sb, out_dtype=torch.bfloat16, use_fast_accum=True
        )

    g, u = mm(codes(x, xs), up, xs, us).chunk(2, dim=-1)
    return mm(codes(nnf.silu(g) * u, hs), down, hs, ds)


def arms(d: int, f: int, m: int, weights: dict, sets: int) -> dict[str, gpu.Call]:
    """Each arm on ``sets`` weight sets."""
    kit = gpu.package()
    x = torch.randn(m, d, device="cuda", dtype=torch.bfloat16)
    xs = torch.full((1,), 1 / 64, device="cuda")
    hs = torch.full((1,), 0.02, device="cuda")
    inductor = torch.compile(plain)
    inductor_fp8 = torch.compile(scaled)

    def of(fmt: str, i: int) -> tuple:
        return weights[fmt][i % sets]

    found: dict[str, gpu.Call] = {
        "eager bf16": lambda i: plain(x, *of("bf16", i)),
        "inductor bf16": lambda i: inductor(x, *of("bf16", i)),
    }
    if m >= 16:

        def library(i: int) -> Tensor:
            (up, us), (down, ds) = of("fp8", i)
            return inductor_fp8(x, up, down, xs, us, hs, ds)

        found["inductor fp8"] = library

    def fp8(i: int) -> Tensor:
        (up, us), (down, ds) = of("fp8", i)
        return kit.fp8_swiglu(x, up, down, xs, us, hs, ds)

    def int8(i: int) -> Tensor:
        (up, us), (down, ds) = of("int8", i)
        return kit.w8a16_swiglu(x, up, us, down, ds)

    def int4(i: int) -> Tensor:
        (up, us), (down, ds) = of("int4", i)
        return kit.w4a16_swiglu(x, up, us, down, ds)

    found["frt-dense fp8"] = fp8
    if m <= 64:
        found |= {"frt-dense w8a16": int8, "frt-dense w4a16": int4}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="1,8,16,64,128,512,2048,8192")
    parser.add_argument("--d", type=int, default=4096)
    parser.add_argument("--f", type=int, default=12288)
    parser.add_argument("--rest", type=float, default=0.02, help="seconds between replays")
    options = parser.parse_args()
    d, f = options.d, options.f
    import triton

    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}, "
        f"CUDA {torch.version.cuda}; D {d}, F {f}, {gpu.SETS} weight sets"
    )
    print("copy {:.2f} TB/s, read {:.2f} TB/s".format(*gpu.ceilings()))
    weights: dict = {
        fmt: [(gpu.codes(2 * f, d, fmt), gpu.codes(d, f, fmt)) for _ in range(gpu.SETS)]
        for fmt in ("fp8", "int8", "int4")
    }
    make = [(torch.randn(2 * f, d), torch.randn(d, f)) for _ in range(1)]
    weights["bf16"] = [
        tuple((w.cuda() * 0.02).bfloat16() for w in make[0]) for _ in range(gpu.SETS)
    ]
    with torch.no_grad():
        for m in map(int, options.rows.split(",")):
            calls = 12 if m < 2048 else 6
            cold = gpu.interleaved(arms(d, f, m, weights, gpu.SETS), calls, rest=options.rest)
            warm = (
                gpu.interleaved(arms(d, f, m, weights, 1), calls, rest=options.rest)
                if m in (1, 16)
                else {}
            )
            for name, times in cold.items():
                beside = f", warm {gpu.middle(warm[name])}" if name in warm else ""
                print(f"M {m:5d}  {name:16s} {gpu.middle(times)} us{beside}", flush=True)


if __name__ == "__main__":
    main()

"""Speed of single projections on one GPU, every arm live and interleaved in one process.

    python bench/kernels_linear.py [--rows 1,4,16,64,512,2048]

Timed as in ``kernels_ffn.py``: a bfloat16 activation in, a bfloat16 result out, quantising
included, CUDA graph replays over six weight sets. ``share`` is the bytes of the weight over the
time, of what a read alone reaches in the same run.
"""

from __future__ import annotations

import argparse
from types import ModuleType

import kernels_gpu as gpu
import torch
from torch import Tensor

SHAPES = ((4096, 4096), (4096, 6144), (12288, 4096), (4096, 12288), (1024, 4096), (1152, 4304))
"""(K, N) of projections; the last two are small ones, where launches and edges decide."""


def scaled(x: Tensor, w: Tensor, xs: Tensor, ws: Tensor) -> Tensor:
    codes = (x.float() / xs).clamp(-448, 448).to(gpu.FP8)
    return torch._scaled_mm(
        codes, w.T, scale_a=xs, scale_b=ws, out_dtype=torch.bfloat16, use_fast_accum=True
    )


def arms(kit: ModuleType, x: Tensor, made: dict, inductor: dict) -> dict[str, gpu.Call]:
    """Each way to multiply rows by weights of one shape."""
    m = x.shape[0]
    xs = torch.full((1,), 1 / 64, device="cuda")
    found: dict[str, gpu.Call] = {
        "eager bf16": lambda i: x @ made["bf16"][i].T,
        "inductor bf16": lambda i: inductor["bf16"](x, made["bf16"][i]),
        "frt-dense fp8": lambda i: kit.fp8_linear(x, made["fp8"][i][0], xs, made["fp8"][i][1]),
    }
    if m >= 16:
        found["inductor fp8"] = lambda i: inductor["fp8"](
            x, made["fp8"][i][0], xs, made["fp8"][i][1]
        )
    if m <= 64:
        found["frt-dense w8a16"] = lambda i: kit.w8a16_linear(x, *made["int8"][i])
    if m <= 64 and "int4" in made:
        found["frt-dense w4a16"] = lambda i: kit.w4a16_linear(x, *made["int4"][i])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="1,4,16,64,512,2048")
    options = parser.parse_args()
    kit = gpu.package()
    _, read = gpu.ceilings()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; read {read:.2f} TB/s")
    inductor = {"bf16": torch.compile(lambda x, w: x @ w.T), "fp8": torch.compile(scaled)}
    for k, n in SHAPES:
        formats = ("fp8", "int8", "int4") if k % 64 == 0 else ("fp8", "int8")
        made: dict = {f: [gpu.codes(n, k, f) for _ in range(gpu.SETS)] for f in formats}
        made["bf16"] = [torch.randn(n, k, device="cuda").bfloat16() for _ in range(gpu.SETS)]
        for m in map(int, options.rows.split(",")):
            x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
            for name, times in gpu.interleaved(arms(kit, x, made, inductor), rounds=15).items():
                width = {"fp8": 1, "w8a16": 1, "w4a16": 0.5625}.get(name.split()[-1], 2)
                width = 1 if name == "inductor fp8" else width
                share = n * k * width / times[len(times) // 2] / 1e6 / read
                print(
                    f"K {k:5d} N {n:5d} M {m:4d}  {name:16s} {gpu.middle(times)} us, "
                    f"share {share:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

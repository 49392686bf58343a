"""Measures tuning rows for the package frt-dense and prints the best of each product.

    python bench/kernels_tune.py --op gated --format fp8 --rows 16 --columns 12288 --k 4096

What it prints is for review: a row is taken over into ``tuning/<family>.json`` by hand, after
the whole block has been timed with it (``bench/kernels_ffn.py``). A candidate whose result
differs from the first one's by more than a few bfloat16 steps is left out. Candidates are built
by as many processes as there are cores, then timed one after the other on an idle GPU: medians
of ten replays of a CUDA graph of twelve calls over six weight sets.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import multiprocessing
import os
import sys
from collections.abc import Iterator
from types import ModuleType

import kernels_gpu as gpu
import torch
from torch import Tensor

SHARED_BYTES = 227 * 1024
ACT = "silu"


def candidates(op: str, fmt: str, rows: int) -> Iterator[dict]:
    """Every row worth timing: tiles that fit, with work for each thread."""
    halves = 2 if op == "gated" else 1
    splits = (1,) if op == "gated" else (1, 2, 3, 4, 6)
    per_byte = 2 if fmt == "int4" else 1
    widest = {"fp8": 1, "int8": 2, "int4": 2}[fmt]
    if rows == 1 and fmt != "int4":
        sizes: Iterator[tuple] = itertools.product((4, 8, 16), (512, 1024), (None,), (4, 8))
    else:
        bm = max(8 if fmt != "fp8" else 16, 1 << (rows - 1).bit_length())
        bks = (256, 512) if fmt == "int4" else (128, 256)
        sizes = itertools.product((16, 32, 64, 128), bks, (bm,), (1, 2, 4, 8))
    for (bn, bk, bm, warps), split, stages, lines in itertools.product(
        sizes, splits, (2, 3, 4, 5, 8), (0, 4, 8)
    ):
        tile = halves * bn * bk // per_byte + (bm or 0) * bk * widest
        share = halves * bn * bk // per_byte // (32 * warps)
        if tile * stages > SHARED_BYTES or not 16 <= share <= 256:
            continue
        row = {"bn": bn, "bk": bk, "split": split, "stages": stages, "warps": warps, "lines": lines}
        if bm is not None:
            row["bm"] = bm
        if fmt == "fp8" and bm is not None:
            row["exact"] = bk
        yield row


def product(launch: ModuleType, options: argparse.Namespace, sets: int) -> list[tuple]:
    """Inputs of each weight set: (x, codes, scales, scale of x, scale of the output)."""
    torch.manual_seed(0)
    rows, fmt = options.rows, options.format
    x = torch.randn(rows, options.k, device="cuda", dtype=torch.bfloat16)
    xs, os_ = torch.full((1,), 1 / 64, device="cuda"), torch.full((1,), 0.02, device="cuda")
    x = launch.quantize(x, xs) if fmt == "fp8" else launch.halves(x) if fmt == "int4" else x
    wide = options.columns * (2 if options.op == "gated" else 1)
    return [(x, *gpu.codes(wide, options.k, fmt), xs, os_) for _ in range(sets)]


def call(
    launch: ModuleType, options: argparse.Namespace, given: tuple, row: dict, count: Tensor | None
) -> Tensor:
    x, w, ws, xs, out_scale = given
    gated, fp8 = options.op == "gated", options.format == "fp8"
    return launch.few(
        options.format, x, w, ws, row, xs=xs if fp8 else None, gated=gated,
        act=ACT if gated else None, out_scale=out_scale if gated and fp8 else None,
        split_out=gated and options.format == "int4", count=count,
    )  # fmt: skip


def _launch() -> ModuleType:
    return importlib.import_module(f"{gpu.package().__name__}._launch")


def build(work: tuple[argparse.Namespace, list[dict]]) -> None:
    """Compiles candidates into Triton's cache, in a process of its own."""
    options, rows = work
    launch = _launch()
    given = product(launch, options, 1)[0]
    for row in rows:
        try:
            count = launch.counters(options.columns, row, given[0].device, zeros=True)
            call(launch, options, given, row, count)
            torch.cuda.synchronize()
        except Exception as error:  # noqa: BLE001  told when it is timed
            print(type(error).__name__, file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--op", choices=("gated", "plain"), required=True)
    parser.add_argument("--format", choices=("fp8", "int8", "int4"), required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--columns", type=int, required=True)
    parser.add_argument("--k", type=int, required=True)
    parser.add_argument("--first", type=int, default=None, help="only so many candidates")
    options = parser.parse_args()
    tried = list(candidates(options.op, options.format, options.rows))[: options.first]
    workers = min(len(os.sched_getaffinity(0)), 14)
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        pool.map(build, [(options, tried[i::workers]) for i in range(workers)])
    launch = _launch()
    given = product(launch, options, gpu.SETS)
    found, first, left = [], None, 0
    for row in tried:
        try:
            count = launch.counters(options.columns, row, given[0][0].device, zeros=True)
            result = call(launch, options, given[0], row, count).float()
        except Exception:  # noqa: BLE001  a tile that does not compile or fit is no candidate
            left += 1
            continue
        first = result if first is None else first
        if (result - first).norm() > 2e-2 * first.norm():
            left += 1
            continue
        zeroed = torch.zeros(1, dtype=torch.int32, device="cuda") if count is None else count

        def timed(i: int, row: dict = row, count: Tensor | None = count, zeroed=zeroed) -> Tensor:
            zeroed.zero_()  # as a kernel in front does, for every candidate alike
            return call(launch, options, given[i], row, count)

        times = gpu.interleaved({"row": timed}, rounds=10)
        if times:
            found.append((times["row"][len(times["row"]) // 2], row))
    print(f"{len(tried)} candidates, {left} left out; {torch.cuda.get_device_name()}")
    for time, row in sorted(found, key=lambda item: item[0])[:8]:
        named = {"op": options.op, "format": options.format, "rows": options.rows, **row}
        print(f"{time:8.2f} us  {json.dumps(named)}")


if __name__ == "__main__":
    main()

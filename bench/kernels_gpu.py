"""What the GPU benchmarks of kernel packages share: weights, graphs, interleaved timing."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

SETS = 6
"""Weight sets in rotation: together they are far larger than the L2, so each call reads memory."""

FP8 = torch.float8_e4m3fn

Call = Callable[[int], object]
"""One timed call; the argument says which weight set."""


def package(name: str = "frt-dense") -> ModuleType:
    """The shipped package, as the runtime loads it."""
    from frtspec.runtime.rungs import kernels

    return kernels.load("local", name, 1).module


def codes(n: int, k: int, fmt: str) -> tuple[Tensor, Tensor]:
    """Random codes of [N, K] and scales, as the impls pack them."""
    if fmt == "fp8":
        data = torch.randn(n, k, device="cuda").mul_(60).clamp_(-448, 448).to(FP8)
        return data, torch.full((1,), 2e-4, device="cuda")
    if fmt == "int8":
        data = torch.randint(-127, 128, (n, k), device="cuda", dtype=torch.int8)
        return data, torch.rand(n, 1, device="cuda") * 2e-4 + 1e-4
    data = torch.randint(0, 256, (n, k // 2), device="cuda", dtype=torch.uint8)
    return data, torch.rand(n, k // 64, device="cuda") * 2e-3 + 1e-3


def captured(call: Call, calls: int) -> torch.cuda.CUDAGraph:
    """``calls`` calls in one graph, weight sets in turn, after a warm-up outside it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for i in range(max(3, calls)):
            call(i % SETS)
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(calls):
            call(i % SETS)
    return graph


def interleaved(
    arms: dict[str, Call], calls: int = 12, rounds: int = 30, rest: float = 0.0
) -> dict[str, list[float]]:
    """Microseconds a call of each arm, one figure a replay, sorted; arms in random order.

    rest  seconds between replays: a GPU at its power limit lowers its clock, and every arm's
          figure would be one of the arms before it. After a rest a replay goes untimed, so that
          the next one is queued behind work and not behind the host

    An arm that can't be captured is left out, with the reason on stderr.
    """
    graphs = {}
    for name, call in arms.items():
        try:
            graphs[name] = captured(call, calls)
        except Exception as error:  # noqa: BLE001  a baseline that fails must not end the run
            torch.cuda.synchronize()
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
    for graph in graphs.values():
        for _ in range(3):
            graph.replay()
    marks: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {n: [] for n in graphs}
    for _ in range(rounds):
        for name in random.sample(list(graphs), len(graphs)):
            if rest:
                torch.cuda.synchronize()
                time.sleep(rest)
                graphs[name].replay()
            begin = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            begin.record()
            graphs[name].replay()
            end.record()
            marks[name].append((begin, end))
    torch.cuda.synchronize()
    return {n: sorted(a.elapsed_time(b) * 1000 / calls for a, b in m) for n, m in marks.items()}


def middle(times: list[float]) -> str:
    """Median and the tenth and ninetieth of a hundred."""
    at = [times[int(len(times) * share)] for share in (0.5, 0.1, 0.9)]
    return f"{at[0]:.1f} ({at[1]:.1f} to {at[2]:.1f})"


def ceilings() -> tuple[float, float]:
    """TB/s of a copy (bytes read and written) and of a sum (bytes read), 1 GiB each."""
    a = torch.randn(1 << 28, device="cuda")
    b = torch.empty_like(a)
    copy = interleaved({"copy": lambda i: b.copy_(a), "sum": lambda i: a.sum()}, calls=4, rounds=10)
    size = a.numel() * 4
    return 2 * size / copy["copy"][5] / 1e6, size / copy["sum"][5] / 1e6

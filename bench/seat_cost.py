"""What an attached seat costs in Python against the bare module, both doing nothing.

    python bench/seat_cost.py [--device cuda] [--json FILE] [--small]

Every arm is called with the same tensor and gives it back: the bare module from its own
``forward`` (for an MLP: through its children's, as the host calls them), the seat from a form
that does nothing, which leaves its guard and its ledger. A second seat has a rung that returns
its rows: its time above the first's goes into torch's views between the host's axes and rows.
Nothing is launched, so on a GPU host it is the CPU's time as well.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from frtspec.runtime.rungs.impl import BoundImpl
from frtspec.runtime.seats.calls import Context
from frtspec.runtime.seats.forms import Form, Forms
from frtspec.runtime.seats.guard import Band, Contract, Guard
from frtspec.runtime.seats.ledger import Counter
from frtspec.runtime.seats.seatmodule import SeatModule
from frtspec.runtime.spec import ImplSpec, RungSpec

CALLS, ROUNDS, WIDTH = 2000, 25, 64
MOST_RATIO, MOST_US = 4.0, 5.0


class Leaf(nn.Linear):
    """A linear's parameters; its call gives back what it is handed."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class Mlp(nn.Module):
    """Three linears and an activation, none of which does anything."""

    def __init__(self) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = (
            Leaf(WIDTH, WIDTH, bias=False),
            Leaf(WIDTH, WIDTH, bias=False),
        )
        self.down_proj, self.act_fn = Leaf(WIDTH, WIDTH, bias=False), nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        self.up_proj(x)
        return self.down_proj(self.act_fn(self.gate_proj(x)))


class Given(Forms):
    """A form that does nothing."""

    def __call__(self, x: Tensor) -> Tensor:
        return x


class Nothing(BoundImpl):
    """A rung that gives its rows back."""

    SPEC = ImplSpec.__new__(ImplSpec)

    def nothing(self, x: Tensor) -> Tensor:
        return x


def seat_over(host: nn.Module, x: Tensor, *, rows: bool) -> SeatModule:
    """The host's seat, bound for the dtype and width of ``x``; with ``rows`` through a rung."""
    contract = Contract((x.shape[-1],), x.device, {Context(x.dtype, None): x.dtype})
    impl = Nothing().on(RungSpec("torch", run="nothing"))
    forms = (Forms if rows else Given)(contract, (Form(Band(), impl),))
    guard = Guard(contract, {"host": host})
    return SeatModule(host, forms, guard, Counter("seat", "nothing on torch", "fallback"))


def microseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS * 1e6


def measure(host: nn.Module, x: Tensor, count: int) -> dict[str, float]:
    """Medians of interleaved rounds, in us a call; ``ratio`` is the median of the rounds'."""
    seat, through = seat_over(host, x, rows=False), seat_over(host, x, rows=True)
    arms: dict[str, Callable[[], object]] = {
        "bare": lambda: host(x),
        "seat": lambda: seat(x),
        "rows": lambda: through(x),
    }
    for call in arms.values():
        microseconds(call)
    rounds = [{name: microseconds(call) for name, call in arms.items()} for _ in range(count)]
    for each in (seat, through):
        assert each._frt.counter.ledger().clean, each._frt.counter.ledger()
    found = {name: statistics.median(each[name] for each in rounds) for name in arms}
    found["ratio"] = statistics.median(each["seat"] / each["bare"] for each in rounds)
    return found


def run(device: str, *, rounds: int) -> dict[str, dict[str, float]]:
    """Every case: what the seat stands for, and the shape of its input."""
    hosts = {"linear": Leaf(WIDTH, WIDTH, bias=False), "mlp": Mlp()}
    shapes = {"[8, 64]": (8, WIDTH), "[1, 8, 64]": (1, 8, WIDTH)}
    with torch.inference_mode():
        inputs = {name: torch.ones(shape, device=device) for name, shape in shapes.items()}
    found = {}
    with torch.no_grad():
        for kind, host in hosts.items():
            host.eval().to(device)
            for name, x in inputs.items():
                found[f"{kind}, rows {name}"] = measure(host, x, rounds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--small", action="store_true", help="few calls: shows that it works")
    args = parser.parse_args()
    found = run(args.device, rounds=2 if args.small else ROUNDS)
    print(f"torch {torch.__version__}, Python {platform.python_version()}, {args.device}")
    print(f"{'seat':24} {'bare us':>8} {'seat us':>8} {'ratio':>6} {'rows us':>8}  target")
    for name, row in found.items():
        met = row["ratio"] <= MOST_RATIO if args.device == "cpu" else row["seat"] <= MOST_US
        target = f"{MOST_RATIO:g}x" if args.device == "cpu" else f"{MOST_US:g} us"
        figures = f"{row['bare']:8.2f} {row['seat']:8.2f} {row['ratio']:6.2f} {row['rows']:8.2f}"
        print(f"{name:24} {figures}  {target} {'met' if met else 'missed'}")
    if args.json:
        args.json.write_text(json.dumps({"device": args.device, "cases": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()

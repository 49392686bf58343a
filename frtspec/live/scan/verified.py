"""Every seat, in each way it could be written, held against one run of the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from frtspec.live.scan.found import FoundSeat
from frtspec.live.verify import verify
from frtspec.runtime.spec import RUNTIME_ABI, Host, HostBinding


def verified(
    model: nn.Module, options: Sequence[Sequence[FoundSeat]], forward: Callable[[], Any]
) -> list[list[str | None]]:
    """What the host shows against each way of each seat; None where it shows nothing."""
    named = {
        f"seat_{k}_{j}": (k, j, seat)
        for k, ways in enumerate(options)
        for j, seat in enumerate(ways)
    }
    binding = HostBinding(
        name="scan",
        source_digest="",
        contract_digest="",
        hosts=(Host("torch", None, (type(model).__name__,)),),
        dims=lambda config: {},
        seats=lambda host: [seat.seat(name) for name, (_, _, seat) in named.items()],
        schemes={},
        auto=(),
        runtime_abi=RUNTIME_ABI,
    )
    report = verify(binding, model, forward)
    found: list[list[str | None]] = [[None] * len(ways) for ways in options]
    for seat in report.seats:
        if seat.problems:
            k, j, _ = named[seat.name]
            found[k][j] = "; ".join(problem.what for problem in seat.problems)
    for problem in report.problems:
        if problem.code == "host.forward":
            raise RuntimeError(problem.what)
    return found

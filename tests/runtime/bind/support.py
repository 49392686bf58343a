"""Shortcuts of the bind tests: observe a tiny host, bind its seats, activate them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.runtime.observation.observe import Capture, Observation, observe
from frtspec.runtime.rungs import ladder
from frtspec.runtime.seats import swap
from frtspec.runtime.spec import SchemeSpec, Seat
from tests.runtime.hosts_small import FP8_STATIC, tiny_seats, token_batches


def watch(
    model: nn.Module,
    seats: Sequence[Seat] | None = None,
    *,
    scheme: SchemeSpec = FP8_STATIC,
    batches: Sequence[Tensor] | None = None,
    **options: Any,
) -> Observation:
    """Observe what a scheme asks of the seats, on token batches."""
    chosen = tiny_seats(model) if seats is None else seats
    requests = {s.name: scheme.route(s.structure.name, s.seam).measured() for s in chosen}
    thunks = [lambda batch=batch: model(batch) for batch in batches or token_batches()]
    return observe(model, chosen, requests, thunks, **({"capture": Capture()} | options))


def bind(
    model: nn.Module,
    names: Sequence[str] | None = None,
    *,
    rungs: Sequence[str] | None = ("emulate",),
    scheme: SchemeSpec = FP8_STATIC,
    seats: Sequence[Seat] | None = None,
    seen: Observation | None = None,
    **options: Any,
) -> list[ladder.BoundSeat]:
    """Bind seats (all, or those named) after observing the host."""
    chosen = tiny_seats(model) if seats is None else list(seats)
    chosen = [seat for seat in chosen if names is None or seat.name in names]
    seen = watch(model, chosen, scheme=scheme) if seen is None else seen
    return [
        ladder.bind_seat(
            model,
            seat,
            scheme.route(seat.structure.name, seat.seam),
            seen,
            rungs=rungs,
            **options,
        )
        for seat in chosen
    ]


def attach(model: nn.Module, names: Sequence[str] | None = None, **options: Any) -> swap.Attachment:
    return swap.activate(model, bind(model, names, **options))


def run(model: nn.Module, batch: Tensor | None = None) -> Tensor:
    """The host's logits without gradients."""
    with torch.no_grad():
        return model(token_batches(1, seed=9)[0] if batch is None else batch)


def rel_l2(found: Tensor, wanted: Tensor) -> float:
    return float((found.double() - wanted.double()).norm() / wanted.double().norm())

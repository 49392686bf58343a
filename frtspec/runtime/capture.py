"""Keeping a few whole calls: a seat's own tensors and those of its boundary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.runtime.calls import Signature, row_count
from frtspec.runtime.errors import Refusal
from frtspec.runtime.host import submodule
from frtspec.runtime.recorders import Place, Recorder, input_count, place_text
from frtspec.runtime.spec import Seat


@dataclass(frozen=True)
class Capture:
    """How much to keep: the first ``calls`` calls of the first ``samples`` samples, at
    most ``max_rows`` rows of each (spread evenly, the first row always among them;
    only where every input of the structure folds rows)."""

    samples: int = 4
    calls: int = 1
    max_rows: int = 512


@dataclass(frozen=True)
class SeatCapture:
    """One call: the boundary's tensors by port name, and the seat's own by position.

    Where the seat has no boundary on the host, ``inputs`` and ``outputs`` are empty.
    ``seat_outputs`` is a tensor, or a tuple with one for each sibling.
    """

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    seat_inputs: tuple[Tensor, ...]
    seat_outputs: Any


@dataclass
class _Round:
    """The tensors of one call of the seat that have passed so far."""

    ports: dict[str, Tensor] = field(default_factory=dict)
    given: dict[str, tuple[Tensor, ...]] = field(default_factory=dict)
    returned: dict[str, Any] = field(default_factory=dict)


def _ports(seat: Seat) -> dict[str, Place]:
    """The boundary's places by port; a repeated output counts: ``y[0]``, ``y[1]``."""
    if seat.boundary is None:
        return {}
    ports: dict[str, Place] = dict(seat.boundary.inputs)
    for port, place in seat.boundary.outputs.items():
        if isinstance(place, tuple):
            ports |= {f"{port}[{position}]": item for position, item in enumerate(place)}
        else:
            ports[port] = place
    return ports


class CaptureRecorder(Recorder):
    """Whole calls of the first samples. The nth tensor at each place belongs to call n."""

    def __init__(
        self, seat: Seat, model: nn.Module, modules: Mapping[str, nn.Module], capture: Capture
    ) -> None:
        super().__init__(seat)
        self.modules, self.capture = modules, capture
        self.ports = {port: (submodule(model, at.path), at) for port, at in _ports(seat).items()}
        shapes = seat.structure.shapes
        self.by_rows = all(shapes[name][0].rows for name in seat.structure.inputs if name in shapes)
        self.rounds: list[_Round] = []
        self._sample = 0
        self._first_round = 0
        self._calls: dict[str, int] = {}

    def attach(self) -> None:
        first = next(iter(self.modules))
        for path, module in self.modules.items():
            self._watch(path, module, inputs=path == first)
        for port, (module, place) in self.ports.items():
            self.at(module, place, lambda x, port=port: self._keep("ports", port, x))  # type: ignore[misc]

    def _watch(self, path: str, module: nn.Module, *, inputs: bool) -> None:
        sig, count = Signature.of(module), input_count(self.seat)

        def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self._keep("given", path, sig.inputs(count, args, kwargs))

        def returned(_a: tuple[Any, ...], _k: dict[str, Any], output: Any) -> None:
            self._keep("returned", path, output)

        if inputs:
            self.before(module, given)
        self.after(module, returned)

    def _keep(self, side: str, name: str, value: Any) -> None:
        call = self._calls.get(f"{side} {name}", 0)
        self._calls[f"{side} {name}"] = call + 1
        if self._sample >= self.capture.samples or call >= self.capture.calls:
            return
        while len(self.rounds) <= self._first_round + call:
            self.rounds.append(_Round())
        getattr(self.rounds[self._first_round + call], side)[name] = self._own(value)

    def _own(self, value: Any) -> Any:
        if isinstance(value, tuple | list):
            return tuple(self._own(item) for item in value)
        if not isinstance(value, Tensor):
            return value
        value = value.detach()
        rows = row_count(value)
        if self.by_rows and rows > self.capture.max_rows:
            keep = torch.linspace(0, rows - 1, self.capture.max_rows, device=value.device)
            return value.reshape(rows, -1)[keep.round().long()]
        return value.clone()

    def end_sample(self) -> None:
        self._sample += 1
        self._first_round = len(self.rounds)
        self._calls.clear()

    def problem(self, samples: int) -> Refusal | None:
        for held in self.rounds:
            missing = [
                f"{port} ({place_text(place)})"
                for port, (_, place) in self.ports.items()
                if port not in held.ports
            ]
            if missing:
                return Refusal(
                    "host.boundary",
                    f"{', '.join(missing)} did not pass in the call that reached the seat",
                    fix="check the boundary in the binding against this version of the host",
                    seat=self.seat.name,
                )
        return None

    def captures(self) -> list[SeatCapture]:
        inputs = self.seat.boundary.inputs if self.seat.boundary else {}
        found = []
        for held in self.rounds:
            if held.returned.keys() != self.modules.keys():
                continue
            returned = tuple(held.returned[path] for path in self.modules)
            found.append(
                SeatCapture(
                    {port: held.ports[port] for port in self.ports if port in inputs},
                    {port: held.ports[port] for port in self.ports if port not in inputs},
                    held.given[next(iter(self.modules))],
                    returned if self.seat.siblings is not None else returned[0],
                )
            )
        return found

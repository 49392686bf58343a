"""Keeping a few whole calls: a seat's own tensors and those of its boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.dims import Shape
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.host import submodule
from frtspec.runtime.hosts.places import laid_out, owner, place_text
from frtspec.runtime.observation.keeping import Keeping
from frtspec.runtime.observation.recorders import Recorder, input_count, named_inputs
from frtspec.runtime.seats.calls import Signature, first_tensor, row_count
from frtspec.runtime.seats.guard import Band
from frtspec.runtime.spec import Place, Seat, Weight


@dataclass(frozen=True)
class Capture:
    """How much to keep of the first ``samples`` samples: the first call, at most ``max_rows``
    rows of it (spread evenly, the first row always among them; only where every input of
    the structure folds rows).

    calls          where a seat is called several times in a sample: about so many of its calls,
                   from the first to the last; 1: the first alone
    later_samples  samples of which calls after the first are kept
    later_rows     rows of those
    later_bytes    seat -> what its later calls may take in one sample; None: any
    """

    samples: int = 4
    calls: int = 1
    max_rows: int = 512
    later_samples: int = 2
    later_rows: int = 16
    later_bytes: Mapping[str, int] | None = None


BYTES = 1 << 31
ROWS = (16, 512)
"""First calls kept for the per-seat gates: at most this much memory for all seats together,
within these rows a sample."""

CALLS = 32
LATER_BYTES = 1 << 29
"""Calls of a sample beside its last that the per-seat gates run on, and what the ones after
the first may take for all seats together."""


def budget(
    seats: Sequence[Seat], parameters: Mapping[str, tuple[int, torch.dtype]], samples: int
) -> Capture:
    """So many samples, with as many rows as the memory for captures allows."""
    by_seat = {seat.name: _row_bytes(seat, parameters) for seat in seats}
    row = sum(by_seat.values()) or 1
    least, most = ROWS
    rows = max(least, min(most, BYTES // (row * samples)))
    whole = LATER_BYTES // Capture.later_samples
    later = {name: whole * mine // row for name, mine in by_seat.items()}
    return Capture(samples=samples, calls=CALLS, max_rows=rows, later_bytes=later)


def _row_bytes(seat: Seat, parameters: Mapping[str, tuple[int, torch.dtype]]) -> int:
    """Bytes of one captured row: in and out, of the seat and of its boundary."""
    weights = [w for v in seat.slots.values() for w in ((v,) if isinstance(v, Weight) else v)]
    known = [parameters[w.path] for w in weights if w.path in parameters]
    width = max(seat.dims.values(), default=0)
    return 4 * width * max((dtype.itemsize for _, dtype in known), default=4)


@dataclass(frozen=True)
class SeatCapture:
    """One call: the boundary's tensors by port name, and the seat's own by position.

    Where the seat has no boundary on the host, ``inputs`` and ``outputs`` are empty.
    ``seat_outputs`` is a tensor, or a tuple with one for each sibling. ``call``: the how
    many-th of its sample (in its band of rows), from 0; ``calls``: how many that had.
    """

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    seat_inputs: tuple[Tensor, ...]
    seat_outputs: Any
    call: int = 0
    calls: int = 1


@dataclass
class _Round:
    """The tensors of one call of the seat that have passed so far."""

    ports: dict[str, Tensor] = field(default_factory=dict)
    given: dict[str, tuple[Tensor, ...]] = field(default_factory=dict)
    returned: dict[str, Any] = field(default_factory=dict)
    size: int = 0


@dataclass
class _Open:
    """The calls of the sample that runs, in one band."""

    keeping: Keeping
    rounds: dict[int, _Round] = field(default_factory=dict)

    def give_up(self, *, ended: bool = False) -> None:
        held = {call: round.size for call, round in self.rounds.items()}
        for call in self.keeping.given_up(held, ended=ended):
            del self.rounds[call]


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
    """Whole calls of the first samples. The nth tensor at each place belongs to call n; where
    places see different numbers of tensors, only the first of each is known to belong together."""

    def __init__(
        self,
        seat: Seat,
        model: nn.Module,
        modules: Mapping[str, nn.Module],
        capture: Capture,
        bands: Sequence[Band] = (),
    ) -> None:
        """``bands``: calls with other row counts are not kept, and each band keeps its own."""
        super().__init__(seat)
        self.modules, self.capture, self.bands = modules, capture, bands
        self.ports = {
            port: (submodule(model, owner(seat.path, at)), at) for port, at in _ports(seat).items()
        }
        shapes = seat.structure.shapes
        self.by_rows = all(shapes[name][0].rows for name in seat.structure.inputs if name in shapes)
        self.rounds: dict[tuple[int, int, int], _Round] = {}
        self.made: dict[tuple[int, int], int] = {}
        self._open: dict[int, _Open] = {}
        self._sample = 0
        self._calls: dict[tuple[str, str, int], int] = {}

    def attach(self) -> None:
        first = next(iter(self.modules))
        for path, module in self.modules.items():
            self._watch(path, module, inputs=path == first)
        for port, (module, place) in self.ports.items():
            self._watch_port(port, module, place)

    def _watch_port(self, port: str, module: nn.Module, place: Place) -> None:
        """Keep what passes at a port, as the structure lays it out."""
        shape, dims = self.seat.structure.shapes.get(port, ()), self.seat.dims

        def see(value: Tensor) -> None:
            self._keep("ports", port, laid_out(value, place.layout, shape, dims))

        self.at(module, place, see)

    def _watch(self, path: str, module: nn.Module, *, inputs: bool) -> None:
        sig, count = Signature.of(module, named_inputs(self.seat)), input_count(self.seat)

        def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self._keep("given", path, sig.inputs(count, args, kwargs))

        def returned(_a: tuple[Any, ...], _k: dict[str, Any], output: Any) -> None:
            self._keep("returned", path, output)

        def called(handed: Mapping[str, Any], output: Any) -> None:
            self._keep("given", path, tuple(handed.values()))
            self._keep("returned", path, output)

        if self.seat.routed is not None:
            self.routed(module, called)
            return
        if inputs:
            self.before(module, given)
        self.after(module, returned)

    def _keep(self, side: str, name: str, value: Any) -> None:
        """Keep a tensor that passed, in the round of its call: sample, band, how many-th."""
        band = self._band(value)
        if band is None:
            return
        call = self._calls.get((side, name, band), 0)
        self._calls[side, name, band] = call + 1
        if self._sample >= self.capture.samples:
            return
        now = self._open.setdefault(band, _Open(self._keeping()))
        if not now.keeping.wants(call):
            return
        held, own = now.rounds.setdefault(call, _Round()), self._own(value, band, later=call > 0)
        getattr(held, side)[name] = own
        held.size += _size(own)
        now.give_up()

    def _keeping(self) -> Keeping:
        capture, room = self.capture, self.capture.later_bytes
        several = self._sample < capture.later_samples
        return Keeping(
            capture.calls if several else 1,
            None if room is None else room.get(self.seat.name, 0) // max(1, len(self.bands)),
        )

    def _band(self, value: Any) -> int | None:
        """The band that a call's rows lie in, as its place in the list; None: in none."""
        rows = row_count(x) if (x := first_tensor(value)) is not None else 0
        if not self.bands or not self.by_rows:
            return 0
        return next((k for k, band in enumerate(self.bands) if band.holds(rows)), None)

    def _own(self, value: Any, band: int, *, later: bool) -> Any:
        if isinstance(value, tuple | list):
            return tuple(self._own(item, band, later=later) for item in value)
        if not isinstance(value, Tensor):
            return value
        value = value.detach()
        rows, most = row_count(value), self._most(band, later=later)
        if self.by_rows and rows > most:
            keep = torch.linspace(0, rows - 1, most, device=value.device)
            return value.reshape(rows, -1)[keep.round().long()]
        return value.clone()

    def _most(self, band: int, *, later: bool) -> int:
        """Rows to keep of a call: no more than asked for, and as many as the band needs."""
        most = self.capture.max_rows
        if later:
            most = min(most, self.capture.later_rows)
        if not self.bands:
            return most
        mine = self.bands[band]
        return max(most - most % mine.multiple, mine.least)

    def end_sample(self) -> None:
        for band, now in self._open.items():
            now.give_up(ended=True)
            passed = {count for (_, _, at), count in self._calls.items() if at == band}
            self.made[self._sample, band] = max(passed)
            for call, round in now.rounds.items():
                if call == 0 or len(passed) == 1:
                    self.rounds[self._sample, band, call] = round
        self._open.clear()
        self._sample += 1
        self._calls.clear()

    def problem(self, samples: int) -> Refusal | None:
        for held in self.rounds.values():
            missing = [
                f"{port} ({place_text(place)})"
                for port, (_, place) in self.ports.items()
                if port not in held.ports and port not in self.seat.structure.optional
            ]
            if missing:
                return Refusal(
                    "host.boundary",
                    f"{', '.join(missing)} did not pass in the call that reached the seat",
                    fix="check the boundary in the binding against this version of the host",
                    seat=self.seat.name,
                )
            for port, (_, place) in self.ports.items():
                if port in held.ports and not self._fits(port, held.ports[port]):
                    return Refusal(
                        "host.boundary",
                        f"{port} ({place_text(place)}) is {list(held.ports[port].shape)} here; "
                        f"{self.seat.structure.key} has {_axes(self.seat.structure.shapes[port])}",
                        fix="this host computes another region here: leave this seat out, or say "
                        "how the host lays the value out",
                        seat=self.seat.name,
                    )
        return None

    def _fits(self, port: str, value: Tensor) -> bool:
        """Whether a value has as many axes as its port; `rows` folds any number."""
        shape = self.seat.structure.shapes.get(port)
        if shape is None:
            return True
        rows = bool(shape) and shape[0].rows
        return value.dim() >= len(shape) - 1 if rows else value.dim() == len(shape)

    def captures(self) -> list[SeatCapture]:
        inputs = self.seat.boundary.inputs if self.seat.boundary else {}
        found = []
        for (sample, band, call), held in self.rounds.items():
            if held.returned.keys() != self.modules.keys():
                continue
            given = held.given[next(iter(self.modules))]
            if self.bands and not any(b.holds(row_count(given[0])) for b in self.bands):
                continue
            returned = tuple(held.returned[path] for path in self.modules)
            found.append(
                SeatCapture(
                    {port: held.ports[port] for port in held.ports if port in inputs},
                    {port: held.ports[port] for port in held.ports if port not in inputs},
                    given,
                    returned if self.seat.siblings is not None else returned[0],
                    call,
                    self.made[sample, band],
                )
            )
        return found


def _size(value: Any) -> int:
    """Bytes of the tensors that were kept."""
    if isinstance(value, tuple):
        return sum(map(_size, value))
    return value.numel() * value.element_size() if isinstance(value, Tensor) else 0


def _axes(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"

"""Running the host and looking: statistics, calls, and a few whole samples.

Hooks go onto the host's modules for the length of one ``observe`` and come off in
every case. Statistics reduce on two levels: the largest value over every call
inside a sample, then a percentile across samples. Only one number per point and
sample is kept, so a stream of any length fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.runtime.capture import Capture, CaptureRecorder, SeatCapture
from frtspec.runtime.eligible import check_free
from frtspec.runtime.errors import Refusal
from frtspec.runtime.host import seat_modules, submodule
from frtspec.runtime.recorders import (
    CallForm,
    CallRecorder,
    PointRecorder,
    Recorder,
    SiblingRecorder,
)
from frtspec.runtime.spec import Seat, Stat

__all__ = ["CallForm", "Capture", "Note", "Observation", "SeatCapture", "observe", "percentile_of"]

DISPERSION = 4.0
"""A point whose largest sample is this many times its median gets a note."""

CLIPPING = 1.01
"""A point whose largest sample is this many times its reduced value gets a note."""


@dataclass(frozen=True)
class Note:
    """Something worth telling about a point that is no refusal."""

    seat: str
    point: str
    kind: str
    value: float
    text: str


@dataclass
class Observation:
    """What was seen. Tensors in captures stay on the device they were on.

    samples       how many samples ran
    refusals      seat name -> why it can't be calibrated; such a seat has no amax
    outputs       what the host returned for each sample, with ``keep_outputs``
    notes         dispersion and clipping, for reports
    """

    percentile: float
    samples: int = 0
    refusals: dict[str, Refusal] = field(default_factory=dict)
    outputs: list[Any] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    _calls: dict[str, CallRecorder] = field(default_factory=dict)
    _points: dict[tuple[str, str], PointRecorder] = field(default_factory=dict)
    _captures: dict[str, CaptureRecorder] = field(default_factory=dict)

    def amax(self, seat: str, point: str) -> float:
        """The per-tensor statistic of a point, reduced over samples."""
        return float(self.statistic(seat, point).max())

    def statistic(self, seat: str, point: str) -> Tensor:
        """The statistic of a point, reduced over samples: float64, [1] or [channels].

        Raises Refusal ``calibration.not_measured`` for a point that nothing asked for.
        """
        if (seat, point) not in self._points:
            raise Refusal(
                "calibration.not_measured",
                f"point {point} was not measured; measured: {', '.join(self.points(seat)) or 'none'}",
                fix="the scheme must ask for every point that the impl scales by",
                seat=seat,
            )
        return percentile_of(self._points[seat, point].samples, self.percentile)

    def per_sample(self, seat: str, point: str) -> tuple[float, ...]:
        """The largest magnitude of each sample, in order."""
        return tuple(float(sample.max()) for sample in self._points[seat, point].samples)

    def points(self, seat: str) -> tuple[str, ...]:
        """The points of a seat that were measured."""
        return tuple(point for name, point in self._points if name == seat)

    def calls(self, seat: str) -> int:
        """How often the seat's module ran (for siblings: the first of them)."""
        return self._calls[seat].calls

    def rows(self, seat: str) -> tuple[int, ...]:
        """The row counts seen, ascending."""
        return tuple(sorted(self._calls[seat].rows))

    def form(self, seat: str) -> CallForm:
        """How the seat's module was called. Only for seats that ran."""
        return self._calls[seat].form()

    def captured(self, seat: str) -> list[SeatCapture]:
        """Whole calls that were kept; empty without ``capture=``."""
        recorder = self._captures.get(seat)
        return recorder.captures() if recorder else []


def observe(
    model: nn.Module,
    seats: Sequence[Seat],
    requests: Mapping[str, Mapping[str, Stat]],
    thunks: Iterable[Callable[[], Any]],
    *,
    percentile: float = 99.9,
    max_samples: int | None = None,
    capture: Capture | None = None,
    keep_outputs: bool = False,
) -> Observation:
    """Run each thunk once and record what ``requests`` ask of the seats' points.

    requests       seat name -> point -> what to measure there; a ``Stat`` without a
                   statistic asks for nothing
    percentile     across samples, 0 < p <= 100, interpolated as numpy does
    max_samples    at most this many thunks are pulled from the stream
    capture        keep whole calls of the first samples (boundary and seat)
    keep_outputs   keep what each thunk returned

    A seat that can't be calibrated is in ``refusals`` and stops nothing. Raises
    Refusal ``option.*`` or ``calibration.empty``; whatever a thunk raises passes through.
    """
    _check_options(percentile, max_samples)
    seen = Observation(percentile)
    recorders = _recorders(model, seats, requests, capture, seen)
    with _hooked(recorders), torch.no_grad():
        for thunk in islice(thunks, max_samples):
            output = thunk()
            if keep_outputs:
                seen.outputs.append(output)
            _end_sample(recorders)
            seen.samples += 1
    if seen.samples == 0:
        raise Refusal(
            "calibration.empty",
            "no sample was given: the stream of samples is empty",
            fix="pass at least one sample of the host's real traffic",
        )
    for recorder in recorders:
        problem = recorder.problem(seen.samples)
        if problem is not None:
            seen.refusals.setdefault(recorder.seat.name, problem)
    _judge_statistics(seen)
    return seen


@contextmanager
def _hooked(recorders: Sequence[Recorder]) -> Iterator[None]:
    """Every recorder's hooks, for the length of the block."""
    try:
        for recorder in recorders:
            recorder.attach()
        yield
        _close(recorders)
    except BaseException:
        _close(recorders)
        raise


def _close(recorders: Sequence[Recorder]) -> None:
    for recorder in recorders:
        recorder.close()


def _check_options(percentile: float, max_samples: int | None) -> None:
    if not 0 < percentile <= 100:
        raise Refusal(
            "option.percentile",
            f"percentile={percentile} is outside 0 < p <= 100",
            fix="pass 100 for the largest sample, or a value a little below it",
        )
    if max_samples is not None and max_samples < 1:
        raise Refusal(
            "option.max_samples",
            f"max_samples={max_samples} leaves nothing to calibrate on",
            fix="pass at least 1, or None for every sample",
        )


def _recorders(
    model: nn.Module,
    seats: Sequence[Seat],
    requests: Mapping[str, Mapping[str, Stat]],
    capture: Capture | None,
    seen: Observation,
) -> list[Recorder]:
    """The recorders of every seat whose places are there; the others are refused."""
    found: list[Recorder] = []
    for seat in seats:
        try:
            mine = _recorders_of(model, seat, requests.get(seat.name, {}), capture)
        except Refusal as refusal:
            refusal.seat = refusal.seat or seat.name
            seen.refusals[seat.name] = refusal
            continue
        for recorder in mine:
            if isinstance(recorder, CallRecorder):
                seen._calls[seat.name] = recorder
            elif isinstance(recorder, PointRecorder):
                seen._points[seat.name, recorder.point] = recorder
            elif isinstance(recorder, CaptureRecorder):
                seen._captures[seat.name] = recorder
        found += mine
    return found


def _recorders_of(
    model: nn.Module, seat: Seat, stats: Mapping[str, Stat], capture: Capture | None
) -> list[Recorder]:
    modules = seat_modules(model, seat)
    check_free(seat, modules)
    mine: list[Recorder] = [CallRecorder(seat, modules)]
    if seat.siblings is not None:
        mine.append(SiblingRecorder(seat, modules))
    for point, stat in stats.items():
        if stat.stat is None:
            continue
        place = seat.points.get(point)
        if place is None:
            raise Refusal(
                "calibration.no_place",
                f"the scheme measures {point}, and the binding does not say where it lies",
                fix=f"add `point {point} = …` to the seat in the binding",
                seat=seat.name,
            )
        mine.append(PointRecorder(seat, point, stat, submodule(model, place.path), place))
    if capture is not None:
        mine.append(CaptureRecorder(seat, model, modules, capture))
    return mine


def _end_sample(recorders: Sequence[Recorder]) -> None:
    """Close the sample: one transfer for each device, whatever the number of points."""
    by_device: dict[torch.device, list[tuple[PointRecorder, Tensor]]] = {}
    for recorder in recorders:
        recorder.end_sample()
        if isinstance(recorder, PointRecorder) and recorder.running is not None:
            pair = recorder, recorder.running
            by_device.setdefault(recorder.running.device, []).append(pair)
            recorder.running = None
    for group in by_device.values():
        values = torch.cat([running for _, running in group]).double().cpu()
        widths = [running.numel() for _, running in group]
        for (recorder, _), value in zip(group, torch.split(values, widths), strict=True):
            recorder.samples.append(value)


def percentile_of(samples: Sequence[Tensor], percentile: float) -> Tensor:
    """The percentile across samples, position by position, interpolated as numpy does."""
    ordered = torch.stack(list(samples)).sort(dim=0).values
    place = (len(samples) - 1) * percentile / 100
    low = int(place)
    high = min(low + 1, len(samples) - 1)
    return torch.lerp(ordered[low], ordered[high], place - low)


def _judge_statistics(seen: Observation) -> None:
    for name, point in seen._points:
        if name in seen.refusals:
            continue
        problem = _no_signal(seen, name, point)
        if problem is not None:
            seen.refusals[name] = problem
            continue
        seen.notes += _notes(seen, name, point)


def _no_signal(seen: Observation, seat: str, point: str) -> Refusal | None:
    if bool((seen.statistic(seat, point) > 0).all()):
        return None
    return Refusal(
        "calibration.zero",
        f"point {point} is all zero over {seen.samples} samples: no signal to scale by",
        fix="calibrate on real traffic that exercises this part of the host",
        seat=seat,
    )


def _notes(seen: Observation, seat: str, point: str) -> list[Note]:
    values = sorted(seen.per_sample(seat, point))
    largest, median = values[-1], values[len(values) // 2]
    found: list[Note] = []
    if median > 0 and largest / median > DISPERSION:
        ratio = largest / median
        text = f"the largest sample ({largest:.4g}) is {ratio:.1f} times the median ({median:.4g})"
        found.append(Note(seat, point, "dispersion", ratio, text))
    reduced = seen.amax(seat, point)
    if largest > CLIPPING * reduced:
        text = (
            f"percentile {seen.percentile:g} keeps {reduced:.4g} of a largest {largest:.4g}: "
            f"values above it saturate"
        )
        found.append(Note(seat, point, "clipped", largest / reduced, text))
    return found

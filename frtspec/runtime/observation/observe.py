"""Running the host and looking: statistics, calls, and a few whole samples.

Hooks go onto the host's modules for the length of one ``observe`` and come off in
every case. Statistics reduce on two levels: over every call inside a sample, then
across samples (``statistics``). What is kept is bounded, so a stream of any length fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.runtime.calibration.statistics import Amax, Collector, Histogram
from frtspec.runtime.eligibility.eligible import check_free
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts import routes
from frtspec.runtime.hosts.host import seat_modules, submodule
from frtspec.runtime.hosts.places import owner
from frtspec.runtime.observation import notes
from frtspec.runtime.observation.banks import bank_recorders, bank_size
from frtspec.runtime.observation.capture import Capture, CaptureRecorder, SeatCapture
from frtspec.runtime.observation.notes import Note
from frtspec.runtime.observation.pointrecorder import PointRecorder
from frtspec.runtime.observation.recorders import (
    CallForm,
    CallRecorder,
    Recorder,
    SiblingRecorder,
)
from frtspec.runtime.observation.routedcalls import RouteRecorder, RouteSeen
from frtspec.runtime.observation.values import Passed, ValueRecorder, value_recorders
from frtspec.runtime.seats.guard import Band
from frtspec.runtime.spec import Seat, Stat

__all__ = ["CallForm", "Capture", "Note", "Observation", "SeatCapture", "observe"]

Requests = Mapping[str, Sequence[Stat]]
"""Point -> the statistics wanted there."""


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
    _values: dict[tuple[str, str], ValueRecorder] = field(default_factory=dict)
    _captures: dict[str, CaptureRecorder] = field(default_factory=dict)
    _routes: dict[str, RouteRecorder] = field(default_factory=dict)

    def amax(self, seat: str, point: str) -> float:
        """The largest magnitude of a point, reduced over samples."""
        return float(self.amax_of(seat, point).max())

    def amax_of(self, seat: str, point: str, per: str = "tensor") -> Tensor:
        """The amax of a point per tensor [1] or per channel [C], reduced over samples:
        float64. What was measured per channel or block gives the tensor's as well.

        Raises Refusal ``calibration.not_measured`` where no statistic gives it.
        """
        stats = self.stats(seat, point)
        exact = next((s for s in stats if s.stat == "amax" and s.per == per), None)
        if exact is not None:
            return self.statistic(seat, point, exact)
        found = next((s for s in stats if s.stat == "amax"), None)
        if per != "tensor" or found is None:
            raise self._not_measured(seat, point, f"amax per {per}")
        collected = self._points[seat, point].collectors[found]
        assert isinstance(collected, Amax)
        return collected.overall(self.percentile)

    def amax_points(self, seat: str) -> list[str]:
        """The points of a seat at which an amax was measured."""
        points = self.points(seat)
        return [p for p in points if any(s.stat == "amax" for s in self.stats(seat, p))]

    @cached_property
    def amaxes(self) -> list[float]:
        """The amax of every point, per tensor, of every seat that can be calibrated; for
        when all samples ran."""
        seats = dict.fromkeys(seat for seat, _ in self._points if seat not in self.refusals)
        return [self.amax(seat, point) for seat in seats for point in self.amax_points(seat)]

    def statistic(self, seat: str, point: str, stat: Stat | None = None) -> Tensor:
        """A statistic of a point, over all samples: float64, on the CPU. Per tensor [1],
        per channel [C], per block [blocks], a histogram [bins].

        stat   which, where several are measured there; None: the only one

        Raises Refusal ``calibration.not_measured`` for what nothing asked for.
        """
        return self.collector(seat, point, stat).value(self.percentile)

    def collector(self, seat: str, point: str, stat: Stat | None = None) -> Collector:
        """What collected a statistic; arguments and errors are those of ``statistic``."""
        stats = self.stats(seat, point)
        if stat is None and len(stats) == 1:
            (stat,) = stats
        if stat not in stats:
            raise self._not_measured(seat, point, str(stat or "one statistic"))
        return self._points[seat, point].collectors[stat]

    def reduced_by(self, seat: str, point: str, stat: Stat) -> float | None:
        """The percentile that a statistic is reduced by across samples; None where none is."""
        found = self._points[seat, point].collectors[stat]
        if not isinstance(found, Amax):
            return None
        return self.percentile if stat.per == "tensor" else found.kept.reached(self.percentile)

    def stats(self, seat: str, point: str) -> tuple[Stat, ...]:
        """The statistics that were measured at a point."""
        recorder = self._points.get((seat, point))
        return tuple(recorder.collectors) if recorder is not None else ()

    def _not_measured(self, seat: str, point: str, what: str) -> Refusal:
        measured = [f"{p}: {stat}" for p in self.points(seat) for stat in self.stats(seat, p)]
        return Refusal(
            "calibration.not_measured",
            f"{what} of point {point} was not measured; measured: {', '.join(measured) or 'none'}",
            fix="the scheme must ask for what the impl needs at each point",
            seat=seat,
        )

    def per_sample(self, seat: str, point: str) -> tuple[float, ...]:
        """The largest magnitude of each sample that reached the point, in order; empty
        where no statistic keeps it."""
        for found in self._points[seat, point].collectors.values():
            if isinstance(found, Amax | Histogram):
                return tuple(found.largest)
        return ()

    def per_call(self, seat: str, point: str) -> tuple[float, ...]:
        """The largest magnitude of each call of a sample at the point, over samples; empty
        where calls were not looked at one by one, or every sample had one."""
        found = self._points[seat, point].per_call()
        return found if len(found) > 1 else ()

    def samples_of(self, seat: str, point: str) -> int:
        """How many samples the statistics of a point rest on."""
        return self._points[seat, point].samples

    def points(self, seat: str) -> tuple[str, ...]:
        """The points of a seat that were measured."""
        return tuple(point for name, point in self._points if name == seat)

    def observed(self, seat: str) -> bool:
        """Whether the seat's places were there, so that it was watched at all."""
        return seat in self._calls

    def calls(self, seat: str) -> int:
        """How often the seat's module ran (for siblings: the first of them)."""
        return self._calls[seat].calls

    def calls_per_sample(self, seat: str) -> tuple[int, ...]:
        """``calls``, sample by sample."""
        return tuple(self._calls[seat].per_sample)

    def hits(self, seat: str, point: str) -> tuple[int, ...]:
        """How often a measured point was reached, sample by sample."""
        return tuple(self._points[seat, point].hits)

    def rows(self, seat: str) -> tuple[int, ...]:
        """The row counts seen, ascending."""
        return tuple(sorted(self._calls[seat].rows))

    def calls_by_rows(self, seat: str) -> dict[int, int]:
        """Row count -> calls with it, ascending (for siblings: the first of them)."""
        return dict(sorted(self._calls[seat].rows.items()))

    def values(self, seat: str, name: str) -> list[Passed]:
        """What passed at a content or observation point, or at a value that a rule asks
        about, sample by sample; empty where nothing watched it."""
        recorder = self._values.get((seat, name))
        return [] if recorder is None else recorder.samples

    def form(self, seat: str) -> CallForm:
        """How the seat's module was called. Only for seats that ran."""
        return self._calls[seat].form()

    def routed(self, seat: str) -> RouteSeen:
        """How the routed function of a seat was called. Only for routed seats that ran."""
        return self._routes[seat].seen

    def captured(self, seat: str) -> list[SeatCapture]:
        """Whole calls that were kept; without ``capture=`` one of each seat with parts of the
        host or a bank to choose from, and none of others."""
        recorder = self._captures.get(seat)
        return recorder.captures() if recorder else []


def observe(
    model: nn.Module,
    seats: Sequence[Seat],
    requests: Mapping[str, Requests],
    thunks: Iterable[Callable[[], Any]],
    *,
    bands: Mapping[str, Sequence[Band]] | None = None,
    percentile: float = 99.9,
    max_samples: int | None = None,
    capture: Capture | None = None,
    keep_outputs: bool = False,
    banks: bool = False,
) -> Observation:
    """Run each thunk once and record what ``requests`` ask of the seats' points.

    requests       seat name -> point -> what to measure there
    bands          seat name -> the row counts that matter there; none: all do
    percentile     across samples, 0 < p <= 100, interpolated as numpy does
    max_samples    at most this many thunks are pulled from the stream
    capture        keep whole calls of the first samples (boundary and seat)
    keep_outputs   keep what each thunk returned
    banks          refuse seats with experts that no row went to

    A seat that can't be calibrated is in ``refusals`` and stops nothing. Raises
    Refusal ``option.*`` or ``calibration.empty``; whatever a thunk raises passes through.
    """
    _check_options(percentile, max_samples)
    seen = Observation(percentile)
    recorders = _recorders(model, seats, requests, bands or {}, capture, seen)
    recorders += bank_recorders(model, [s for s in seats if s.name in seen._calls]) if banks else []
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
    judge_statistics(seen)
    return seen


def judge_statistics(seen: Observation) -> None:
    """Refuses the seats whose statistics nothing can be made of, and notes what is worth telling."""
    for name, point in seen._points:
        if name in seen.refusals:
            continue
        problem = notes.no_signal(seen, name, point)
        if problem is not None:
            seen.refusals[name] = problem
            continue
        seen.notes += notes.worth_telling(seen, name, point)
    usable = [at for at in seen._points if at[0] not in seen.refusals]
    seen.notes += notes.ceilings(seen, usable)


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
    requests: Mapping[str, Requests],
    bands: Mapping[str, Sequence[Band]],
    capture: Capture | None,
    seen: Observation,
) -> list[Recorder]:
    """The recorders of every seat whose places are there; the others are refused."""
    found: list[Recorder] = []
    for seat in seats:
        try:
            asked = requests.get(seat.name, {})
            mine = _recorders_of(model, seat, asked, bands.get(seat.name, ()), capture)
        except Refusal as refusal:
            refusal.seat = refusal.seat or seat.name
            seen.refusals[seat.name] = refusal
            continue
        for recorder in mine:
            if isinstance(recorder, CallRecorder):
                seen._calls[seat.name] = recorder
            elif isinstance(recorder, PointRecorder):
                seen._points[seat.name, recorder.point] = recorder
            elif isinstance(recorder, ValueRecorder):
                seen._values[seat.name, recorder.name] = recorder
            elif isinstance(recorder, RouteRecorder):
                seen._routes[seat.name] = recorder
            elif isinstance(recorder, CaptureRecorder):
                seen._captures[seat.name] = recorder
        found += mine
    return found


def _recorders_of(
    model: nn.Module,
    seat: Seat,
    requests: Requests,
    bands: Sequence[Band],
    capture: Capture | None,
) -> list[Recorder]:
    modules = seat_modules(model, seat)
    check_free(seat, modules)
    if seat.routed is not None:
        for module in modules.values():
            routes.check(module, seat.routed)
    mine: list[Recorder] = [CallRecorder(seat, modules)]
    if seat.siblings is not None:
        mine.append(SiblingRecorder(seat, modules))
    if seat.routed is not None:
        mine.append(RouteRecorder(seat, model, modules))
    for point, stats in requests.items():
        place = seat.points.get(point)
        if place is None:
            raise _no_place(seat, point)
        module = submodule(model, owner(seat.path, place))
        by_call = capture is not None and capture.calls > 1
        mine.append(PointRecorder(seat, point, stats, module, place, bands, by_call=by_call))
    mine += value_recorders(model, seat)
    if capture is None and (seat.parts or bank_size(seat)):  # tried on a call of the host
        capture = Capture(samples=1)
    if capture is not None:
        mine.append(CaptureRecorder(seat, model, modules, capture, bands))
    return mine


def _no_place(seat: Seat, point: str) -> Refusal:
    if point in seat.placeless:
        return Refusal(
            "calibration.no_place",
            f"the scheme measures {point}, which this host shows nowhere: {seat.placeless[point]}",
            fix="use a scheme that does without this statistic",
            seat=seat.name,
        )
    return Refusal(
        "calibration.no_place",
        f"the scheme measures {point}, and the binding does not say where it lies",
        fix=f"add `point {point} = …` to the seat in the binding",
        seat=seat.name,
    )


def _end_sample(recorders: Sequence[Recorder]) -> None:
    """Close the sample: one transfer for each device, whatever the number of points."""
    by_device: dict[torch.device, list[tuple[PointRecorder, Collector, Tensor]]] = {}
    for recorder in recorders:
        recorder.end_sample()
        if isinstance(recorder, PointRecorder):
            for into, row in recorder.close_sample():
                by_device.setdefault(row.device, []).append((recorder, into, row))
    for group in by_device.values():
        values = torch.cat([row.double() for _, _, row in group]).cpu()
        widths = [row.numel() for _, _, row in group]
        for (recorder, into, row), value in zip(group, torch.split(values, widths), strict=True):
            recorder.keep(into, value.to(row.dtype).clone())

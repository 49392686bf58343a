"""From an observation to a calibration, and back onto another run of the same host."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import torch

from frtspec.runtime.calibration.data import (
    Calibration,
    CallData,
    Draft,
    Passed,
    PointData,
    SeatData,
    marks_of,
)
from frtspec.runtime.errors import Refusal
from frtspec.runtime.observation import values
from frtspec.runtime.observation.observe import Observation, judge_statistics
from frtspec.runtime.observation.pointrecorder import PointRecorder
from frtspec.runtime.observation.recorders import CallRecorder
from frtspec.runtime.seats.calls import Context
from frtspec.runtime.spec import HostBinding, SchemeSpec, Seat


def draft(
    seen: Observation,
    model: torch.nn.Module,
    binding: HostBinding,
    scheme: SchemeSpec,
    places: Sequence[Seat],
) -> Draft:
    """What an observation measured, without its key. ``places``: every seat of the host."""
    names = dict.fromkeys((*seen._calls, *seen.refusals))
    seats = {name: _seat(seen, name) for name in names}
    return Draft(model, binding, scheme, places, seen.samples, seats, marks_of(model))


def overlaid(look: Observation, saved: Calibration, percentile: float) -> Observation:
    """A saved calibration as the observation of a host that was looked at.

    look        at least one sample of the host as it is: its devices, its seats
    percentile  across samples, whatever the calibration was saved with

    Seats that either refuses, or that the calibration does not have, are in ``refusals``;
    that one sample is all zero somewhere is no reason.
    Raises Refusal ``calibration.steps`` where the host calls its seats another number of
    times a sample than when it was calibrated.
    """
    require_steps(look, saved)
    told = {n: r for n, r in look.refusals.items() if r.code != "calibration.zero"}
    seen = Observation(percentile, samples=saved.samples, refusals=told)
    for name, recorder in look._calls.items():
        data = saved.seats.get(name)
        if data is None:
            seen.refusals.setdefault(name, _missing(name, "this seat"))
        elif data.refusal is not None:
            seen.refusals.setdefault(name, _refusal(data.refusal))
        seen._calls[name] = recorder
        if data is not None and data.calls is not None:
            seen._calls[name] = _called(recorder, data.calls)
    for (name, point), measured in look._points.items():
        data = saved.seats.get(name)
        if name in seen.refusals or data is None:
            continue
        found = data.points.get(point)
        lacking = [s for s in measured.collectors if found is None or s not in found.statistics]
        if found is None or lacking:
            what = f"{', '.join(map(str, lacking))} at {point}"
            seen.refusals[name] = _missing(name, what)
            continue
        seen._points[name, point] = _measured(measured, found)
    for (name, value), kept in look._values.items():
        seen._values[name, value] = _valued(kept, saved.seats.get(name))
    seen._routes.update(look._routes)
    judge_statistics(seen)
    return seen


def require_steps(look: Observation, saved: Calibration) -> None:
    """Whether the host calls each seat as often a sample as when it was calibrated: scales
    that were taken over ten steps say nothing of four. Seats whose calls differ from sample
    to sample anyway are not held to a number."""
    for name in look._calls:
        data = saved.seats.get(name)
        steps = data.calls.steps if data is not None and data.calls is not None else None
        here = set(look.calls_per_sample(name))
        if steps is not None and here != {steps}:
            raise Refusal(
                "calibration.steps",
                f"{name} ran {steps} times in every calibrated sample and "
                f"{' or '.join(map(str, sorted(here)))} times here",
                fix="calibrate with as many steps as the host takes",
                seat=name,
            )


def _missing(seat: str, what: str) -> Refusal:
    return Refusal(
        "calibration.missing",
        f"the saved calibration has nothing of {what}",
        fix="calibrate again with the same structures= and scheme=",
        seat=seat,
    )


def _refusal(data: Mapping[str, object]) -> Refusal:
    return Refusal(
        str(data["code"]), str(data["what"]), fix=str(data["fix"]), seat=str(data["seat"])
    )


# ---------------------------------------------------------------- reading


def _seat(seen: Observation, name: str) -> SeatData:
    refusal = seen.refusals.get(name)
    if refusal is not None:
        told = {"code": refusal.code, "what": refusal.what, "fix": refusal.fix, "seat": name}
        return SeatData(told)
    recorder = seen._calls[name]
    calls = CallData(
        dict(recorder.counts),
        tuple(recorder.per_sample),
        dict(recorder.rows),
        tuple(
            (named(at.dtype), None if at.autocast is None else named(at.autocast), named(out))
            for at, out in recorder.out_dtypes.items()
        ),
        tuple(sorted(recorder.widths)),
        tuple(sorted(recorder.returns)),
        tuple(sorted(recorder.styles)),
        tuple(sorted(recorder.extra)),
    )
    points = {p: _point(item) for (seat, p), item in seen._points.items() if seat == name}
    passed = {v: _passed(item) for (seat, v), item in seen._values.items() if seat == name}
    return SeatData(None, calls, points, passed)


def _point(recorder: PointRecorder) -> PointData:
    states = {stat: each.state() for stat, each in recorder.collectors.items()}
    return PointData(tuple(recorder.hits), tuple(recorder.outside), states)


def _passed(recorder: values.ValueRecorder) -> tuple[Passed, ...]:
    return tuple(
        Passed(
            tuple(map(named, item.dtypes)),
            tuple(item.shapes),
            item.size,
            None
            if item.contents is None
            else tuple(value.detach().cpu() for value in item.contents),
        )
        for item in recorder.samples
    )


def named(dtype: torch.dtype) -> str:
    """``bfloat16``."""
    return str(dtype).removeprefix("torch.")


# ---------------------------------------------------------------- writing


def _called(look: CallRecorder, saved: CallData) -> CallRecorder:
    """The saved counts, with the devices and the form of a call as they are here too."""
    both = copy.copy(look)
    both.counts = {path: saved.counts.get(path, 0) for path in look.counts}
    both.per_sample, both.rows = list(saved.per_sample), dict(saved.rows)
    dtypes = {
        Context(_dtype(at), None if auto is None else _dtype(auto)): _dtype(out)
        for at, auto, out in saved.out_dtypes
    }
    both.out_dtypes = {**dtypes, **look.out_dtypes}
    both.widths = {*saved.widths, *look.widths}
    both.returns = {*saved.returns, *look.returns}
    both.styles = {*saved.styles, *look.styles}
    both.extra = {*saved.extra, *look.extra}
    return both


def _measured(look: PointRecorder, saved: PointData) -> PointRecorder:
    restored = PointRecorder(
        look.seat, look.point, tuple(look.collectors), look.module, look.place, look.bands
    )
    for stat, each in restored.collectors.items():
        each.absorb(saved.statistics[stat])
    restored.hits, restored.outside = list(saved.hits), list(saved.outside)
    return restored


def _valued(look: values.ValueRecorder, saved: SeatData | None) -> values.ValueRecorder:
    """What passed when the host was calibrated; what passes now where nothing is known."""
    passed = saved.values.get(look.name) if saved is not None else None
    if not passed:
        return look
    both = copy.copy(look)
    both.samples = [
        values.Passed(
            [_dtype(name) for name in item.dtypes],
            list(item.shapes),
            None if item.contents is None else list(item.contents),
            item.size,
        )
        for item in passed
    ]
    return both


def _dtype(name: str) -> torch.dtype:
    found = getattr(torch, name)
    assert isinstance(found, torch.dtype)
    return found

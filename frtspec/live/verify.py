"""Is a binding right about a live host? Everything it says, looked up and run.

Nothing is packed, swapped or timed. A host is resolved first (paths, slots, layouts, dims,
points, facts), then run with hooks that count; last each structure's reference is held
against what the host computed. Every problem of every seat is reported, not the first.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from frtspec.dims import DimError
from frtspec.live.verify_report import Fact, Point, Problem, Report, SeatReport, plain
from frtspec.live.verify_slots import check_slots, settle_by_reference
from frtspec.runtime.eligibility import eligible
from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating import gates
from frtspec.runtime.gating.reference import SeatReference
from frtspec.runtime.hosts import facts, host
from frtspec.runtime.hosts.census import counted
from frtspec.runtime.hosts.places import owner, place_text
from frtspec.runtime.observation import observe, samples
from frtspec.runtime.observation.recorders import CallForm
from frtspec.runtime.spec import Boundary, HostBinding, Place, Seat, Stat

CAPTURE = observe.Capture(samples=2, calls=1, max_rows=64)
"""What the reference is compared on."""

_PASSED_OVER = ("host.version", "host.package", "spec.imported")
"""Refusals of the whole host that leave something to look at."""


def verify(
    binding: HostBinding,
    model: nn.Module,
    forward: Any,
    *,
    observations: Iterable[Any] | None = None,
    max_samples: int | None = None,
    structures: Sequence[str] | None = None,
) -> Report:
    """Holds everything that a binding says against a live host.

    binding        as generated (``package.HOST``), or from ``live.inmemory``
    model          in eval mode; it is read and run, never changed
    forward        runs the host once: ``forward()``, ``forward(obs)`` with
                   ``observations``, or a list of thunks, one a sample
    max_samples    at most this many samples are run
    structures     only seats of these structures; all when None

    Never raises on what the host holds; whatever ``forward`` raises is a problem of the
    report. Raises Refusal ``option.*`` or ``samples.*`` for arguments that don't fit.
    """
    stream = samples.calibration(forward, observations, max_samples=max_samples)
    report = Report(
        binding.name,
        binding.contract_digest,
        type(model).__name__,
        binding.package,
        binding.versions,
        _installed(binding.package),
    )
    seats = _seats(binding, model, report)
    if structures is not None:
        seats = [seat for seat in seats if seat.structure.name in structures]
    with counted(model):
        _hold(model, seats, stream, report)
    return report


def _hold(model: nn.Module, seats: Sequence[Seat], stream: samples.Samples, report: Report) -> None:
    """What can be looked up of every seat, then what a run shows of those that are there."""
    usable: list[Seat] = []
    for seat in seats:
        found = SeatReport(seat.name, seat.target, seat.path, seat.form)
        report.seats.append(found)
        ready = _resolve(model, seat, found)
        if ready is not None:
            usable.append(ready)
    _run(model, usable, stream, report)


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _seats(binding: HostBinding, model: nn.Module, report: Report) -> list[Seat]:
    try:
        host.check_host(binding, model)
    except Refusal as refusal:
        report.problems.append(Problem.of(refusal))
        if refusal.code not in _PASSED_OVER:
            return []
    try:
        report.dims = dict(binding.dims(model))
        seats = list(binding.seats(model))
    except Refusal as refusal:
        report.problems.append(Problem.of(refusal))
        return []
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        config = type(getattr(model, "config", None)).__name__
        report.problems.append(
            Problem(
                "host.config",
                "config",
                f"the binding reads what the {config} of this host has not: {error}",
                "use the field's name in this version, with `??` for hosts that lack it",
            )
        )
        return []
    if not seats:
        report.problems.append(
            Problem(
                "verify.empty",
                "",
                f"no seat of {binding.name} is on this host: its conditions leave out every layer",
                "check the `where` and `when` of the binding against this config",
            )
        )
    return seats


# ---------------------------------------------------------------- what can be looked up


def _resolve(model: nn.Module, seat: Seat, report: SeatReport) -> Seat | None:
    """Everything that needs no run. Gives the seat with those points and that boundary
    that are there; None where its modules are not."""
    report.variants = plain(seat.variants)
    with_modules = _modules(model, seat, report)
    _collect(report, seat.path, lambda: eligible.check_variants(seat))
    check_slots(model, seat, report)
    _rules(seat, report)
    if not with_modules:
        return None
    points = {
        name: place
        for name, place in seat.points.items()
        if _there(model, f"point {name}", place, report)
    }
    for name, place in seat.points.items():
        if name not in points:
            report.points.append(Point(name, place_text(place), ()))
    return replace(seat, points=points, boundary=_boundary(model, seat, report))


def _modules(model: nn.Module, seat: Seat, report: SeatReport) -> bool:
    """Whether the seat's modules are there; each that is not is a problem."""
    before = len(report.problems)
    for path in seat.siblings.members if seat.siblings else (seat.path,):
        try:
            report.modules[path] = type(host.submodule(model, path)).__name__
        except Refusal as refusal:
            report.refuse(refusal, path)
    if len(report.problems) > before:
        return False
    modules = host.seat_modules(model, seat)
    _collect(report, seat.path, lambda: eligible.check_modules(model, seat, modules))
    return True


def _collect(report: SeatReport, path: str, check: Any) -> None:
    try:
        check()
    except Refusal as refusal:
        report.refuse(refusal, path)


def _rules(seat: Seat, report: SeatReport) -> None:
    for rule in seat.structure.requires:
        try:
            holds = rule.check(report.dims)
        except DimError:
            report.notes.append(f"{rule.text} is not decided: a dim of it is not determined")
            continue
        if not holds:
            sizes = ", ".join(f"{name}={size}" for name, size in report.dims.items())
            report.problems.append(
                Problem(
                    "structure.requires",
                    seat.path,
                    f"{seat.structure.key} requires {rule.text}; this host has {sizes}",
                    "this host's sizes lie outside what the structure describes",
                )
            )


def _there(model: nn.Module, what: str, place: Place, report: SeatReport) -> bool:
    path = owner(report.path, place)
    try:
        host.submodule(model, path)
    except Refusal as refusal:
        report.problems.append(
            Problem(
                refusal.code,
                path,
                f"{what} = {place_text(place)}: {refusal.what}",
                refusal.fix,
            )
        )
        return False
    return True


def _boundary(model: nn.Module, seat: Seat, report: SeatReport) -> Boundary | None:
    """The boundary, where every port of it is there."""
    if seat.boundary is None or seat.boundary.none is not None:
        return seat.boundary
    ports = list(seat.boundary.inputs.items())
    for name, place in seat.boundary.outputs.items():
        ports += [(name, item) for item in (place if isinstance(place, tuple) else (place,))]
    there = [_there(model, f"boundary {name}", place, report) for name, place in ports]
    return seat.boundary if all(there) else None


# ---------------------------------------------------------------- what a run shows


def _run(model: nn.Module, seats: Sequence[Seat], stream: samples.Samples, report: Report) -> None:
    """Counts calls and hits over the samples, then holds the reference against them."""
    by_name = {found.name: found for found in report.seats}
    requests = {seat.name: dict.fromkeys(seat.points, (Stat("amax"),)) for seat in seats}
    try:
        seen = observe.observe(model, seats, requests, stream, percentile=100.0, capture=CAPTURE)
    except Refusal:
        raise
    except Exception as error:  # noqa: BLE001 - the host's own; told as a problem of the host
        report.problems.append(
            Problem(
                "host.forward",
                "",
                f"the host's forward raised {type(error).__name__}: {error}",
                "make the forward run on the untouched host first",
            )
        )
        return
    report.samples = seen.samples
    for seat in seats:
        _seen(model, seat, seen, by_name[seat.name])


def _seen(model: nn.Module, seat: Seat, seen: observe.Observation, report: SeatReport) -> None:
    refusal = seen.refusals.get(seat.name)
    if refusal is not None:
        report.refuse(refusal, seat.path)
    form: CallForm | None = None
    if seen.observed(seat.name):
        report.calls = seen.calls_per_sample(seat.name)
        for name, place in seat.points.items():
            report.points.append(Point(name, place_text(place), seen.hits(seat.name, name)))
        if seen.calls(seat.name):
            called = form = seen.form(seat.name)
            _collect(report, seat.path, lambda: eligible.check_calls(seat, called))
    _facts(model, seat, form, report)
    _reference(model, seat, seen, report)
    settle_by_reference(report)


def _facts(model: nn.Module, seat: Seat, form: CallForm | None, report: SeatReport) -> None:
    for expect in seat.expects:
        try:
            found = facts.FACTS[expect.fact](model, seat, expect, form)
        except Refusal as refusal:
            report.refuse(refusal, ", ".join(expect.of) or seat.path)
            continue
        for place, value in found.items():
            holds = facts.agrees(expect, value)
            report.facts.append(Fact(expect.fact, place, expect.values, value, holds))
            if not holds:
                report.problems.append(
                    Problem(
                        "host.fact",
                        place,
                        f"expected {expect.fact} {' or '.join(expect.values)}, found {value}",
                        "this host differs from what the binding was written for: narrow its "
                        "range, or write a binding for this host",
                    )
                )


def _reference(model: nn.Module, seat: Seat, seen: observe.Observation, report: SeatReport) -> None:
    """The structure's reference with the host's weights, on calls that were kept."""
    if seat.structure.parts:
        report.notes.append("the reference holds parts of the host, and was not run")
        return
    if report.problems:
        return
    try:
        with torch.no_grad():
            result = gates.reference_agreement(SeatReference(seat, model), seen.captured(seat.name))
    except Refusal as refusal:
        report.refuse(refusal, seat.path)
        return
    except Exception as error:  # noqa: BLE001 - sizes that don't fit raise whatever torch raises
        report.problems.append(
            Problem(
                "gate.reference",
                seat.path,
                f"the reference can't be run on what the host computes here: "
                f"{type(error).__name__}: {error}",
                "the binding's places or dims are not this host's",
            )
        )
        return
    if result.holds:
        report.reference = max(result.metrics.values(), default=None)
        return
    report.problems.append(
        Problem(
            "gate.reference",
            seat.path,
            f"the host computes something else than {seat.target} here: {result.reason}",
            "check the seat's variants, params, slots and layouts against this host",
        )
    )


def problems(report: Report) -> Mapping[str, list[Problem]]:
    """Every problem by seat name; those of the host under the empty name."""
    found = {"": report.problems} if report.problems else {}
    return found | {seat.name: seat.problems for seat in report.seats if seat.problems}

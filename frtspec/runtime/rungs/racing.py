"""Racing the rungs of each seat on this box, for ``decisions=`` to read.

A race qualifies a rung and activates nothing: the next ``attach`` tries the winner first, and
probes and gates it like any other. Rungs run by themselves on rows of the calibrated shape and
magnitude, paired and interleaved as the latency gate pairs its arms.
"""

from __future__ import annotations

import logging
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import torch
from torch import nn

from frtspec.runtime.calibration import measuring
from frtspec.runtime.calibration.ranks import Ranks
from frtspec.runtime.errors import Refusal, TrailRow
from frtspec.runtime.gating import latency
from frtspec.runtime.gating.latency import Arm, Clock
from frtspec.runtime.hosts.host import seat_weights, solved_dims
from frtspec.runtime.isolation import isolated
from frtspec.runtime.options import BuildOptions, read
from frtspec.runtime.rungs import ladder
from frtspec.runtime.rungs.binding import bind
from frtspec.runtime.rungs.probe import probe_inputs
from frtspec.runtime.rungs.rungcache import Key, RungCache
from frtspec.runtime.seats.guard import Band
from frtspec.runtime.session import Session
from frtspec.runtime.spec import HostBinding, RungSpec

if TYPE_CHECKING:
    from frtspec.runtime.records import SeatRecord

log = logging.getLogger("frtspec.runtime")

_SWAPPED = ("swap", "siblings")
"""Forms of seats whose rungs run on rows alone."""


@dataclass(frozen=True)
class Race:
    """What came of one seat, or of one band of its rows.

    times_ms  label of a rung -> median of a call, in milliseconds, for those that ran
    winner    the rung that was recorded; empty where there was nothing to race
    trail     rungs that were left out, and why
    """

    seat: str
    rows: str
    times_ms: Mapping[str, float]
    winner: str
    reason: str
    trail: tuple[TrailRow, ...] = ()


def race(
    binding: HostBinding,
    model: nn.Module,
    forward: Any,
    *,
    rounds: int = 5,
    iters: int = 10,
    min_speedup: float = 1.02,
    **options: Unpack[BuildOptions],
) -> tuple[Race, ...]:
    """Races the admitted rungs of every seat and records each winner in ``decisions=``.

    rounds, iters  rounds of four legs, calls a leg
    min_speedup    over the first rung of the impl: one that is not surely this much faster
                   does not take its place
    options        those of ``build``; the model stays as it is

    Seats of one shape race once. Raises what ``build`` raises, Refusal ``option.decisions``
    where there is no file to record in, ``option.group`` for ranks, and ``store.locked``.
    """
    asked, sources = read("build", options)
    if sources.group is not None:
        raise Refusal(
            "option.group",
            "a race is of one process: other ranks on the device would be timed too",
            fix="leave group= out, and race on one rank while the others wait",
        )
    session = Session.open(binding, model, forward, asked, sources, Ranks())
    if session.rungs is None:
        raise Refusal(
            "option.decisions",
            "decisions=None names no file to record winners in",
            fix='pass a file, or "auto" for the one in the cache folder',
        )
    if session.open_records():
        measuring.calibrate(session, judge=False)
        bind(session)
    timing = partial(
        compare,
        rounds=rounds,
        iters=iters,
        min_speedup=min_speedup,
        clock=latency.device_clock(session.device),
    )
    found: list[Race] = []
    raced: set[Key] = set()
    for record in session.open_records():
        with isolated([record], "racing rungs"), torch.no_grad():
            found += _seat(session, record, session.rungs, timing, raced)
    settled = [record for record in session.records if not record.open]
    return (*found, *(Race(r.name, "", {}, "", f"{r.state}: {r.reason}") for r in settled))


def _seat(
    session: Session,
    record: SeatRecord,
    cache: RungCache,
    timing: Callable[..., tuple[str, dict[str, float], str]],
    raced: set[Key],
) -> list[Race]:
    """The races of one seat, band by band."""
    seat, bound = record.seat, record.bound
    assert bound is not None and session.calibrated is not None
    if seat.form not in _SWAPPED:
        return [Race(seat.name, "", {}, "", f"a seat of the form {seat.form} is not raced")]
    weights = seat_weights(session.model, seat)
    dims, seen, impl = solved_dims(seat, weights), session.calibrated, bound.impl
    climb = ladder._Climb(seat, impl, seen, session.device, dims, session.options.rungs)
    found: list[Race] = []
    for band, rungs in climb._bands():
        key = Key.of(seat, impl.SPEC, dims, band, session.device)
        if key in raced:
            continue
        raced.add(key)
        climb.trail = []
        arms = _admitted(climb, band, rungs, ladder._contraction(weights))
        if len(arms) < 2:
            reason = f"{', '.join(arms) or 'no rung'} alone is admitted: nothing to race"
            found.append(Race(seat.name, str(band), {}, "", reason, tuple(climb.trail)))
            continue
        winner, times, reason = timing(arms)
        cache.record(key, times, winner=winner, declared=[rung.label for rung in rungs])
        log.info("race of %s, rows %s: %s; %s", seat.name, band, winner, reason)
        found.append(Race(seat.name, str(band), times, winner, reason, tuple(climb.trail)))
    return found


def _admitted(
    climb: ladder._Climb, band: Band, rungs: Any, k: int
) -> dict[str, Callable[[], object]]:
    """A call of each rung that serves here, on rows as the host gives them. ``emulate`` is
    never raced: it is not there to be fast."""
    arms: dict[str, Callable[[], object]] = {}
    rung: RungSpec
    for rung in rungs:
        if rung.kind == "emulate" or not climb._asked_for(rung):
            continue
        try:
            form, _ = climb._admit(rung, band, k)
        except Refusal as refusal:
            climb.trail.append(TrailRow(rung.label, refusal.code, refusal.what, fix=refusal.fix))
            continue
        inputs = probe_inputs(climb.seat, climb.observation, form.band, climb.device)
        arms[rung.label] = partial(form.impl.run, *inputs)
    return arms


def compare(
    arms: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    iters: int,
    min_speedup: float,
    clock: Clock,
) -> tuple[str, dict[str, float], str]:
    """The winner, the times in ms and the reason. Each arm is paired with the first, which
    stays unless one is surely faster; of several, the one with the largest ratio wins."""
    (first, base), *others = arms.items()
    still = Arm(first, lambda: None, base)
    bases: list[float] = []
    times: dict[str, float] = {}
    told: list[str] = []
    best, gain = first, 1.0
    for name, call in others:
        result = latency.measure(
            still,
            Arm(name, lambda: None, call),
            rounds=rounds,
            iters=iters,
            min_speedup=min_speedup,
            clock=clock,
        )
        told.append(f"{name} against {first}: {result.verdict}, {result.reason}")
        if result.base_ms is None or result.treated_ms is None or result.speedup is None:
            continue
        bases.append(result.base_ms)
        times[name] = result.treated_ms
        if result.verdict == "win" and result.speedup > gain:
            best, gain = name, result.speedup
    if bases:
        times = {first: statistics.median(bases), **times}
    return best, times, "; ".join(told)

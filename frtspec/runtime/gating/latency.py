"""Whether a treated host is faster: paired rounds, and an interval that can't be talked up.

A round times the arms in the order base, treated, treated, base, or its mirror
image; which one comes first alternates after a seeded coin toss. Both arms of a
round so meet the same drift, and the round yields one ratio, base over treated.
The verdict rests on a bootstrap interval of the median ratio. ``win`` needs the
whole interval at or above ``min_speedup`` and above what either arm differs from
itself by in these rounds, the same against a baseline that is timed again at the
end, and the same against every other baseline that can run.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from frtspec.runtime.environment import device_is_lost

CONFIDENCE = 0.95
RESAMPLES = 2000
MIN_ROUNDS = 3
"""Fewer rounds give no interval to speak of."""

UNAVAILABLE = "baseline_unavailable"

Clock = Callable[[], float]


@dataclass(frozen=True)
class Arm:
    """One side of the comparison. ``enter`` makes the host take this form (not timed)."""

    name: str
    enter: Callable[[], object]
    call: Callable[[], object]


@dataclass(frozen=True)
class Against:
    """Another baseline that ran: its median (ms), its time over the treated one's, and the
    bootstrap interval of that."""

    name: str
    ms: float
    speedup: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Latency:
    """What was timed and what it says.

    verdict   win, loss, inconclusive, not_applicable, baseline_unavailable or skipped
    form      the execution form that was timed; the one that will be deployed
    ratios    base over treated, one a round; ``speedup`` is their median and
              ``interval`` its bootstrap interval at ``CONFIDENCE``
    *_ms      medians per call, in milliseconds; ``base_again_ms``: timed at the end
    self_spread  how far one arm is from itself in these rounds, as a ratio less one: what
              a gain has to exceed
    baselines arms that a spec names, each ``timed`` or ``baseline_unavailable: why``
    against   those of them that ran beside the host
    """

    verdict: str
    reason: str
    form: str = "eager"
    speedup: float | None = None
    interval: tuple[float, float] | None = None
    base_ms: float | None = None
    treated_ms: float | None = None
    base_again_ms: float | None = None
    p95_ms: tuple[float, float] | None = None
    ratios: tuple[float, ...] = ()
    rounds: int = 0
    iters: int = 0
    min_speedup: float | None = None
    self_spread: float | None = None
    baselines: dict[str, str] = field(default_factory=dict)
    against: tuple[Against, ...] = ()

    @property
    def timed(self) -> bool:
        return self.speedup is not None


def device_clock(device: torch.device) -> Clock:
    """Seconds, after everything queued on ``device`` is done."""
    if device.type != "cuda":
        return time.perf_counter

    def now() -> float:
        torch.cuda.synchronize(device)
        return time.perf_counter()

    return now


def unjudgeable(device: torch.device, rungs: Sequence[str], latency: str) -> Latency | None:
    """A verdict that needs no timing, or None when the arms can be timed."""
    if latency == "skip":
        return Latency(
            "skipped", "latency='skip': judged on accuracy alone, nothing is said about speed"
        )
    if device.type == "cpu":
        return Latency(
            "not_applicable", "the host is on a CPU, where these forms are not meant to be fast"
        )
    if "emulate" in rungs:
        return Latency(
            "not_applicable", "the emulate rung shows a format's arithmetic, not its speed"
        )
    return None


def measure(
    base: Arm,
    treated: Arm,
    *,
    rounds: int = 5,
    iters: int = 10,
    min_speedup: float = 1.02,
    clock: Clock = time.perf_counter,
    baselines: Mapping[str, Arm | str] | None = None,
    form: str = "eager",
    seed: int = 0,
) -> Latency:
    """Times both arms, ``rounds`` times two legs of ``iters`` calls each.

    clock       seconds; must wait for queued work
    baselines   further arms that the specs name, or why one can't run; each that runs is
                paired with the treated arm in rounds of its own
    form        in which both arms run, for the record

    Each leg has one call that isn't timed. What the treated arm raises passes through;
    a base arm that raises leaves nothing to compare with.
    """
    others = dict(baselines or {})
    told = {n: f"{UNAVAILABLE}: {arm}" for n, arm in others.items() if isinstance(arm, str)}
    fault = _fault(base)
    if fault:
        told |= {
            n: f"{UNAVAILABLE}: the host itself can't be timed" for n in others if n not in told
        }
        told[base.name] = fault
        reason = f"{base.name} {fault}"
        return Latency("baseline_unavailable", reason, form=form, baselines=told)
    pairs = _rounds(base, treated, rounds, iters, clock, seed)
    again = [_leg(base, iters, clock) for _ in range(2)]
    against = []
    for name, arm in others.items():
        if isinstance(arm, str):
            continue
        fault = _fault(arm)
        told[name] = f"{UNAVAILABLE}: {fault}" if fault else "timed"
        if not fault:
            against.append(_against(name, _rounds(arm, treated, rounds, iters, clock, seed), seed))
    result = _judge(pairs, again, against, iters, min_speedup, seed)
    return replace(result, form=form, baselines={base.name: "timed", **told})


def _fault(arm: Arm) -> str:
    """Why an arm can't run; empty when it can."""
    try:
        arm.enter()
        arm.call()
    except Exception as error:  # kept whole, as the reason
        if device_is_lost(error):
            raise
        return f"raised {type(error).__name__}: {error}"
    return ""


@dataclass(frozen=True)
class _Rounds:
    """Seconds per call: legs of each arm, and one pair of ratios a round."""

    base: list[float]
    treated: list[float]
    ratios: list[float]

    @property
    def self_spread(self) -> float:
        """The largest ratio between two legs of one arm in one round, less one. A round's ratio
        is of means of two legs, so this is brought to the same scale."""
        pairs = [arm[k : k + 2] for arm in (self.base, self.treated) for k in range(0, len(arm), 2)]
        logs = [abs(math.log(_over(*pair))) for pair in pairs]
        return math.exp(max(logs, default=0.0) / math.sqrt(2)) - 1


def _rounds(base: Arm, treated: Arm, rounds: int, iters: int, clock: Clock, seed: int) -> _Rounds:
    first = random.Random(seed).randrange(2)
    found = _Rounds([], [], [])
    for number in range(rounds):
        outer, inner = (base, treated) if (number + first) % 2 == 0 else (treated, base)
        spent = {id(base): 0.0, id(treated): 0.0}
        for arm in (outer, inner, inner, outer):
            leg = _leg(arm, iters, clock)
            (found.base if arm is base else found.treated).append(leg)
            spent[id(arm)] += leg
        found.ratios.append(_over(spent[id(base)], spent[id(treated)]))
    return found


def _against(name: str, pairs: _Rounds, seed: int) -> Against:
    ms = statistics.median(pairs.base) * 1e3
    return Against(name, ms, statistics.median(pairs.ratios), interval(pairs.ratios, seed=seed))


def _leg(arm: Arm, iters: int, clock: Clock) -> float:
    """Seconds per call."""
    arm.enter()
    arm.call()
    start = clock()
    for _ in range(iters):
        arm.call()
    return (clock() - start) / iters


def _judge(
    pairs: _Rounds,
    again: list[float],
    against: Sequence[Against],
    iters: int,
    min_speedup: float,
    seed: int,
) -> Latency:
    speedup = statistics.median(pairs.ratios)
    low, high = interval(pairs.ratios, seed=seed)
    treated_ms = statistics.median(pairs.treated) * 1e3
    again_ms = statistics.median(again) * 1e3
    result = Latency(
        "inconclusive",
        "",
        speedup=speedup,
        interval=(low, high),
        base_ms=statistics.median(pairs.base) * 1e3,
        treated_ms=treated_ms,
        base_again_ms=again_ms,
        p95_ms=(_p95(pairs.base) * 1e3, _p95(pairs.treated) * 1e3),
        ratios=tuple(pairs.ratios),
        rounds=len(pairs.ratios),
        iters=iters,
        min_speedup=min_speedup,
        self_spread=pairs.self_spread,
        against=tuple(against),
    )
    verdict, reason = _verdict(result, _over(again_ms, treated_ms))
    return replace(result, verdict=verdict, reason=reason)


def _verdict(found: Latency, against_again: float) -> tuple[str, str]:
    assert found.interval and found.min_speedup is not None and found.self_spread is not None
    (low, high), least = found.interval, found.min_speedup
    if found.rounds < MIN_ROUNDS:
        return "inconclusive", (
            f"{found.speedup:.3f}x, and {found.rounds} rounds give no interval:"
            f" {MIN_ROUNDS} are needed"
        )
    figure = f"{found.speedup:.3f}x, interval {low:.3f} to {high:.3f} over {found.rounds} rounds"
    if high < least:
        return "loss", f"no gain: {figure}; {least:g}x is required"
    if low < least:
        return "inconclusive", (
            f"{figure}: the interval holds both sides of the required {least:g}x"
        )
    if low < 1 + found.self_spread:
        return "inconclusive", (
            f"{figure}, but the same arm differs from itself by {found.self_spread:.1%} in"
            " these rounds: use more iters or a quieter device"
        )
    if against_again < least:
        return "inconclusive", (
            f"{figure}, but only {against_again:.3f}x against the baseline timed again after"
        )
    for other in found.against:
        told = (
            f"{figure}, but {other.speedup:.3f}x (interval {other.interval[0]:.3f} to"
            f" {other.interval[1]:.3f}) against {other.name}"
        )
        if other.interval[1] < least:
            return "loss", f"no gain over the best baseline: {told}"
        if other.interval[0] < least:
            return "inconclusive", told
    return "win", f"{figure}; {least:g}x is required"


def interval(ratios: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """The bootstrap interval of the median, the same for the same ratios and seed."""
    rng = random.Random(seed)
    medians = sorted(
        statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES)
    )
    cut = int((1 - CONFIDENCE) / 2 * RESAMPLES)
    return medians[cut], medians[RESAMPLES - 1 - cut]


def _p95(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]


def _over(base: float, treated: float) -> float:
    """``base / treated``; a clock that saw no time pass shows no gain."""
    return base / treated if base > 0.0 and treated > 0.0 else 1.0

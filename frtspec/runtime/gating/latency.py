"""Whether a treated host is faster: paired rounds, and an interval that can't be talked up.

A round times the arms in the order base, treated, treated, base, or its mirror
image; which one comes first alternates after a seeded coin toss. Both arms of a
round so meet the same drift, and the round yields one ratio, base over treated.
The verdict rests on a bootstrap interval of the median ratio. ``win`` needs the
whole interval at or above ``min_speedup``, and the same against a baseline that
is timed again at the end.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch

from frtspec.runtime.environment import device_is_lost

CONFIDENCE = 0.95
RESAMPLES = 2000
MIN_ROUNDS = 3
"""Fewer rounds give no interval to speak of."""

UNAVAILABLE = "baseline_unavailable: attach times the host in the eager form only"

Clock = Callable[[], float]


@dataclass(frozen=True)
class Arm:
    """One side of the comparison. ``enter`` makes the host take this form (not timed)."""

    name: str
    enter: Callable[[], object]
    call: Callable[[], object]


@dataclass(frozen=True)
class Latency:
    """What was timed and what it says.

    verdict   win, loss, inconclusive, not_applicable, baseline_unavailable or skipped
    form      the execution form that was timed; the one that will be deployed
    ratios    base over treated, one a round; ``speedup`` is their median and
              ``interval`` its bootstrap interval at ``CONFIDENCE``
    *_ms      medians per call, in milliseconds; ``base_again_ms``: timed at the end
    baselines arms that a spec names, each ``timed`` or why it is not available
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
    baselines: dict[str, str] = field(default_factory=dict)

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
    baselines: Sequence[str] = (),
    seed: int = 0,
) -> Latency:
    """Times both arms, ``rounds`` times two legs of ``iters`` calls each.

    clock       seconds; must wait for queued work
    baselines   other arms that the specs name: reported as what they are, unavailable

    Each leg has one call that isn't timed. What the treated arm raises passes through;
    a base arm that raises leaves nothing to compare with.
    """
    arms = {base.name: "timed", **dict.fromkeys(baselines, UNAVAILABLE)}
    try:
        base.enter()
        base.call()
    except Exception as error:  # kept whole, as the reason
        if device_is_lost(error):
            raise
        arms[base.name] = f"raised {type(error).__name__}: {error}"
        return Latency("baseline_unavailable", f"{base.name} {arms[base.name]}", baselines=arms)
    first = random.Random(seed).randrange(2)
    legs: dict[str, list[float]] = {base.name: [], treated.name: []}
    ratios = []
    for number in range(rounds):
        outer, inner = (base, treated) if (number + first) % 2 == 0 else (treated, base)
        spent = {base.name: 0.0, treated.name: 0.0}
        for arm in (outer, inner, inner, outer):
            leg = _leg(arm, iters, clock)
            legs[arm.name].append(leg)
            spent[arm.name] += leg
        ratios.append(_over(spent[base.name], spent[treated.name]))
    again = [_leg(base, iters, clock) for _ in range(2)]
    result = _judge(legs[base.name], legs[treated.name], again, ratios, iters, min_speedup, seed)
    return replace(result, baselines=arms)


def _leg(arm: Arm, iters: int, clock: Clock) -> float:
    """Seconds per call."""
    arm.enter()
    arm.call()
    start = clock()
    for _ in range(iters):
        arm.call()
    return (clock() - start) / iters


def _judge(
    base: list[float],
    treated: list[float],
    again: list[float],
    ratios: list[float],
    iters: int,
    min_speedup: float,
    seed: int,
) -> Latency:
    speedup = statistics.median(ratios)
    low, high = interval(ratios, seed=seed)
    base_ms, treated_ms = statistics.median(base) * 1e3, statistics.median(treated) * 1e3
    again_ms = statistics.median(again) * 1e3
    against_again = _over(again_ms, treated_ms)
    figure = f"{speedup:.3f}x, interval {low:.3f} to {high:.3f} over {len(ratios)} rounds"
    if len(ratios) < MIN_ROUNDS:
        verdict = "inconclusive"
        reason = (
            f"{speedup:.3f}x, and {len(ratios)} rounds give no interval: {MIN_ROUNDS} are needed"
        )
    elif high < min_speedup:
        verdict, reason = "loss", f"no gain: {figure}; {min_speedup:g}x is required"
    elif low < min_speedup:
        verdict = "inconclusive"
        reason = f"{figure}: the interval holds both sides of the required {min_speedup:g}x"
    elif against_again < min_speedup:
        verdict = "inconclusive"
        reason = f"{figure}, but only {against_again:.3f}x against the baseline timed again after"
    else:
        verdict, reason = "win", f"{figure}; {min_speedup:g}x is required"
    return Latency(
        verdict,
        reason,
        speedup=speedup,
        interval=(low, high),
        base_ms=base_ms,
        treated_ms=treated_ms,
        base_again_ms=again_ms,
        p95_ms=(_p95(base) * 1e3, _p95(treated) * 1e3),
        ratios=tuple(ratios),
        rounds=len(ratios),
        iters=iters,
        min_speedup=min_speedup,
    )


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

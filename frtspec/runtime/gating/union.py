"""Which of the units that hold alone hold together: a bounded search.

All of them first. Where that does not hold, the unit that costs most is dropped until the
rest holds; then each dropped unit is tried again on top of what holds, for the one dropped
first need not be the one at fault. Every trial is kept with its figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from frtspec.runtime.gating.units import Unit


class Verdict(Protocol):
    """What a trial says, as far as the search asks."""

    @property
    def verdict(self) -> str: ...

    @property
    def closeness(self) -> float: ...

    @property
    def speedup(self) -> float | None: ...


V = TypeVar("V", bound=Verdict)

SPENT = "max_trials"


@dataclass
class Found(Generic[V]):
    """What the search ends with.

    chosen   units that hold together (the trial of just this set was accepted, or it is one
             unit, accepted alone)
    dropped  unit -> the trial that speaks against it; None where no trial was left to tell
    trials   host trials that were spent
    """

    chosen: list[Unit]
    dropped: dict[str, V | None] = field(default_factory=dict)
    trials: int = 0


def search(
    alone: Sequence[tuple[Unit, V]],
    trial: Callable[[Sequence[Unit]], V | None],
    budget: int,
) -> Found[V]:
    """The largest set that the trials allowed.

    alone   units that were accepted by themselves, with that trial's outcome
    trial   runs a set of units on the host; None where no seat of the set was left
    budget  at most this many trials

    What cost accuracy drops the unit that alone was least close to the host; what cost
    speed drops the one that alone gained least.
    """
    by_name = {unit.name: outcome for unit, outcome in alone}
    found: Found[V] = Found([unit for unit, _ in alone])
    if len(found.chosen) < 2:
        return found
    dropped: list[Unit] = []
    tried: set[frozenset[str]] = set()
    accepted = False
    while len(found.chosen) > 1 and not accepted:
        if found.trials >= budget:
            break
        found.trials += 1
        tried.add(_names(found.chosen))
        outcome = trial(found.chosen)
        found.chosen = [unit for unit in found.chosen if unit.open]
        if outcome is None:
            break
        accepted = outcome.verdict == "accepted"
        if not accepted and len(found.chosen) > 1:
            victim = min(found.chosen, key=lambda u: _worth(by_name[u.name], outcome))
            found.chosen.remove(victim)
            found.dropped[victim.name] = outcome
            dropped.append(victim)
    if not accepted and len(found.chosen) > 1:
        _best_alone(found, by_name)
        return found
    _grow(found, dropped, tried, trial, budget)
    return found


def _names(units: Sequence[Unit]) -> frozenset[str]:
    return frozenset(unit.name for unit in units)


def _worth(alone: Verdict, outcome: Verdict) -> tuple[float, float]:
    """The lowest goes first. Gains that differ by less than a thousandth are the same."""
    speedup = 1.0 if alone.speedup is None else round(alone.speedup, 3)
    if outcome.verdict == "kept":
        return speedup, alone.closeness
    return alone.closeness, speedup


def _best_alone(found: Found[V], by_name: dict[str, V]) -> None:
    """No trial is left: the unit that gains most by itself, for that much is known."""
    best = max(found.chosen, key=lambda u: by_name[u.name].speedup or 1.0)
    for unit in found.chosen:
        if unit is not best:
            found.dropped[unit.name] = None
    found.chosen = [best]


def _grow(
    found: Found[V],
    dropped: Sequence[Unit],
    tried: set[frozenset[str]],
    trial: Callable[[Sequence[Unit]], V | None],
    budget: int,
) -> None:
    """Dropped units once more, on top of what holds; no set is tried twice."""
    for unit in dropped:
        wider = [*found.chosen, unit]
        if found.trials >= budget or _names(wider) in tried:
            continue
        found.trials += 1
        tried.add(_names(wider))
        outcome = trial(wider)
        if outcome is None or outcome.verdict != "accepted":
            found.dropped[unit.name] = outcome or found.dropped[unit.name]
            continue
        found.chosen = wider
        del found.dropped[unit.name]

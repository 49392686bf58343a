"""Back-off inside one unit: where it alone misses what the host requires, its most sensitive
seats go first, and no more of them than the trials show to be needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from frtspec.runtime.gating.units import Unit

if TYPE_CHECKING:
    from frtspec.runtime.records import SeatRecord


class Verdict(Protocol):
    """What a trial says, as far as the search asks."""

    @property
    def accurate(self) -> bool: ...


V = TypeVar("V", bound=Verdict)


@dataclass
class Kept(Generic[V]):
    """What the search ends with.

    dropped  how many of the groups go, from the first; None: no trial held
    outcome  the trial of the others
    trials   (groups left out, outcome), in the order they ran
    """

    dropped: int | None = None
    outcome: V | None = None
    trials: list[tuple[int, V]] = field(default_factory=list)


def search(count: int, trial: Callable[[int], V], budget: int) -> Kept[V]:
    """The fewest groups to leave out, where leaving out more never makes it worse: 1, 2, 4, …
    until the rest holds, then halving between the last two.

    count   groups, the most sensitive first; all of them together miss already
    trial   runs the host without so many of them
    budget  at most this many trials
    """
    found: Kept[V] = Kept()
    misses, holds = 0, count
    while misses + 1 < holds and len(found.trials) < budget:
        if found.dropped is None:
            drop = min(max(1, 2 * misses), count - 1)
        else:
            drop = (misses + holds) // 2
        outcome = trial(drop)
        found.trials.append((drop, outcome))
        if outcome.accurate:
            holds = found.dropped = drop
            found.outcome = outcome
        else:
            misses = drop
    return found


def groups(unit: Unit) -> list[list[SeatRecord]]:
    """What can go by itself: a seat, or seats that are tied (a chain stays whole). The one that
    its boundary gate found furthest comes first; of equal ones, the one that the host runs last."""
    found: dict[frozenset[str], list[SeatRecord]] = {}
    for record in unit.records:
        if record.open:
            alone = frozenset({record.name})
            key = next((tie for tie in unit.tied if record.name in tie), alone)
            found.setdefault(key, []).append(record)
    placed = enumerate(found.values())
    furthest = sorted(placed, key=lambda item: (-max(map(error, item[1])), -item[0]))
    return [group for _, group in furthest]


def error(record: SeatRecord) -> float:
    """How far the seat's form is from its structure's reference (rel_l2 over its boundary, else
    its seam; the worst call's); 0 where that was not measured."""
    result = record.gate("boundary", "seam")
    return 0.0 if result is None else result.metrics.get("rel_l2", 0.0)

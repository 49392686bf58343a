"""Figures of each call of a seat that a sample calls several times, such as in a loop of steps.

Every call answers for itself: pooled, one bad step would hide behind the good ones. The worst
call decides, metric by metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from torch import Tensor

from frtspec.runtime.gating import metrics

if TYPE_CHECKING:
    from frtspec.runtime.observation.capture import SeatCapture


@dataclass(frozen=True)
class CallFigures:
    """One call, the how many-th of its sample (from 0), and what was measured of it."""

    call: int
    metrics: Mapping[str, float]


@dataclass
class PerCall:
    """Value metrics, call by call."""

    by_call: dict[int, metrics.Values] = field(default_factory=dict)

    def add(
        self, call: int, reference: Mapping[str, Tensor], treated: Mapping[str, Tensor]
    ) -> bool:
        """One sample's call; whether it could be measured."""
        mine = self.by_call.setdefault(call, metrics.Values())
        mine.add(reference, treated)
        return mine.fault is None

    def scores(self) -> metrics.Scores:
        """The worst call's figures, metric by metric."""
        found = {call: values.scores() for call, values in sorted(self.by_call.items())}
        if not found:
            return metrics.Values().scores()
        first = next(iter(found.values()))
        if len(found) == 1:
            return first
        for call, scores in found.items():
            if scores.broken:
                return replace(scores, broken=f"call {call}: {scores.broken}")
        each = [scores.metrics for scores in found.values()]
        return replace(first, metrics={name: _worst(name, each) for name in first.metrics})

    def figures(self) -> tuple[CallFigures, ...]:
        """Each call's; empty where there is one call, whose figures are the result's."""
        if len(self.by_call) < 2:
            return ()
        rows = [(call, values.scores()) for call, values in sorted(self.by_call.items())]
        return tuple(CallFigures(call, dict(scores.metrics)) for call, scores in rows)


def _worst(name: str, each: Iterable[Mapping[str, float]]) -> float:
    values = [found[name] for found in each]
    return min(values) if name in metrics.HIGHER else max(values)


def worst_call(calls: Sequence[CallFigures], metric: str) -> int | None:
    """The call that is worst by a metric; None where there is one call alone."""
    rows = [row for row in calls if metric in row.metrics]
    if not rows:
        return None
    value = _worst(metric, [row.metrics for row in rows])
    return next(row.call for row in rows if row.metrics[metric] == value)


def told(captures: Sequence[SeatCapture], calls: Sequence[CallFigures]) -> tuple[str, ...]:
    """A note on how many calls of a sample were judged, where there are several."""
    most = max((capture.calls for capture in captures), default=1)
    judged = max(1, len(calls))
    if most == 1:
        return ()
    which = "every call" if judged == most else f"{judged} of {most} calls, first and last,"
    if judged == 1:
        which = f"the first of {most} calls"
    return (f"{which} of a sample judged by itself",)

"""What calibration found that is worth telling, and what nothing can be made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frtspec.runtime.errors import Refusal

if TYPE_CHECKING:
    from frtspec.runtime.observation.observe import Observation

DISPERSION = 4.0
"""A point whose largest sample is this many times its median gets a note."""

CLIPPING = 1.01
"""A point whose largest sample is this many times its reduced value gets a note."""

CEILING = 20.0
"""A point under one scale whose magnitude is this many times the median of all such points gets
a note."""


@dataclass(frozen=True)
class Note:
    """Something worth telling about a point that is no refusal."""

    seat: str
    point: str
    kind: str
    value: float
    text: str


def no_signal(seen: Observation, seat: str, point: str) -> Refusal | None:
    """Why nothing can be made of a point's statistics: it is all zero."""
    if all(bool((seen.statistic(seat, point, s) > 0).any()) for s in seen.stats(seat, point)):
        largest = seen.per_sample(seat, point)
        if not largest or max(largest) > 0:
            return None
    return Refusal(
        "calibration.zero",
        f"point {point} is all zero over {seen.samples_of(seat, point)} samples: "
        "no signal to scale by",
        fix="calibrate on real traffic that exercises this part of the host",
        seat=seat,
    )


def worth_telling(seen: Observation, seat: str, point: str) -> list[Note]:
    """What a user should know of a point's statistics."""
    found: list[Note] = []
    amaxes = [s for s in seen.stats(seat, point) if s.stat == "amax"]
    if amaxes:
        values = sorted(seen.per_sample(seat, point))
        found += _spread(seat, point, values[-1], values[len(values) // 2])
        found += _clipped(seen, seat, point, values[-1])
    for stat in amaxes:
        reached = seen.reduced_by(seat, point, stat)
        if reached is not None and reached > seen.percentile:
            text = (
                f"{stat} over {seen.samples_of(seat, point)} samples reduces by percentile "
                f"{reached:.6g} instead of {seen.percentile:g}: no more of them is kept"
            )
            found.append(Note(seat, point, "percentile", reached, text))
        dead = int((seen.statistic(seat, point, stat) == 0).sum())
        if dead:
            text = f"{dead} of {seen.statistic(seat, point, stat).numel()} are 0 ({stat})"
            found.append(Note(seat, point, "dead", float(dead), text))
    return found


def ceilings(seen: Observation, points: Iterable[tuple[str, str]]) -> list[Note]:
    """Points that are far above the others of the host: the step of their one scale is as far
    above, and what is small there is lost."""
    single = {
        (seat, point): seen.amax(seat, point)
        for seat, point in points
        if any((s.stat, s.per) == ("amax", "tensor") for s in seen.stats(seat, point))
    }
    if not single:
        return []
    median = sorted(single.values())[(len(single) - 1) // 2]
    found: list[Note] = []
    for (seat, point), value in single.items():
        if value > CEILING * median:
            text = (
                f"its magnitude ({value:.4g}) is {value / median:.1f} times the median "
                f"({median:.4g}) of the {len(single)} points with one scale: "
                "small values share that scale"
            )
            found.append(Note(seat, point, "ceiling", value / median, text))
    return found


def _spread(seat: str, point: str, largest: float, median: float) -> list[Note]:
    if median <= 0 or largest / median <= DISPERSION:
        return []
    ratio = largest / median
    text = f"the largest sample ({largest:.4g}) is {ratio:.1f} times the median ({median:.4g})"
    return [Note(seat, point, "dispersion", ratio, text)]


def _clipped(seen: Observation, seat: str, point: str, largest: float) -> list[Note]:
    reduced = seen.amax(seat, point)
    if largest <= CLIPPING * reduced:
        return []
    text = (
        f"percentile {seen.percentile:g} keeps {reduced:.4g} of a largest {largest:.4g}: "
        f"values above it saturate"
    )
    return [Note(seat, point, "clipped", largest / reduced, text)]

"""What a scheme decides by: amounts, and conditions that compare them.

A scheme may keep a seat *when* a condition holds. Amounts are what calibration
measured at the seat's points, row counts, sizes, the device. The functions here make
them, operators join them, and a comparison of two is a condition::

    keep_when=decisions.amax() > 20 * decisions.median_amax()

Each amount can say what it is and what it came to, so that the reason has both numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from frtspec.runtime.calibration.statistics import Histogram, percentile_of

if TYPE_CHECKING:
    from frtspec.runtime.observation.observe import Observation
    from frtspec.runtime.spec import Seat, Stat


@dataclass(frozen=True)
class Evidence:
    """What a decision looks at.

    capability  the CUDA compute capability; None without such a device
    seen        what calibration measured; None before it ran
    """

    seat: Seat
    capability: float | None
    seen: Observation | None = None

    @property
    def observation(self) -> Observation:
        if self.seen is None:
            raise RuntimeError("this condition is about what calibration measures")
        return self.seen


@dataclass(frozen=True)
class Value:
    """What an amount came to. ``shown``: in words, with where it was found."""

    number: float
    shown: str


@dataclass(frozen=True)
class Amount:
    """A number to be decided by. ``measured``: only calibration can tell it."""

    text: str
    find: Callable[[Evidence], Value] = field(repr=False)
    measured: bool = True
    rank: int = 3

    def __add__(self, other: Amount | float) -> Amount:
        return _joined(self, "+", other, 1, lambda a, b: a + b)

    def __sub__(self, other: Amount | float) -> Amount:
        return _joined(self, "-", other, 1, lambda a, b: a - b)

    def __mul__(self, other: Amount | float) -> Amount:
        return _joined(self, "*", other, 2, lambda a, b: a * b)

    def __truediv__(self, other: Amount | float) -> Amount:
        return _joined(self, "/", other, 2, lambda a, b: a / b if b else float("inf"))

    def __radd__(self, other: float) -> Amount:
        return number(other) + self

    def __rsub__(self, other: float) -> Amount:
        return number(other) - self

    def __rmul__(self, other: float) -> Amount:
        return number(other) * self

    def __rtruediv__(self, other: float) -> Amount:
        return number(other) / self

    def __gt__(self, other: Amount | float) -> Condition:
        return Comparison(self, ">", _amount(other))

    def __ge__(self, other: Amount | float) -> Condition:
        return Comparison(self, ">=", _amount(other))

    def __lt__(self, other: Amount | float) -> Condition:
        return Comparison(self, "<", _amount(other))

    def __le__(self, other: Amount | float) -> Condition:
        return Comparison(self, "<=", _amount(other))


def number(value: float) -> Amount:
    return Amount(f"{value:g}", lambda _: Value(float(value), f"{value:g}"), measured=False)


def _amount(value: Amount | float) -> Amount:
    return value if isinstance(value, Amount) else number(value)


def _joined(
    left: Amount,
    op: str,
    right: Amount | float,
    rank: int,
    apply: Callable[[float, float], float],
) -> Amount:
    right = _amount(right)
    first = f"({left.text})" if left.rank < rank else left.text
    second = f"({right.text})" if right.rank <= rank else right.text
    text = f"{first} {op} {second}"

    def find(evidence: Evidence) -> Value:
        found = apply(left.find(evidence).number, right.find(evidence).number)
        return Value(found, f"{text} = {found:.4g}")

    return Amount(text, find, left.measured or right.measured, rank)


# ---------------------------------------------------------------- amounts


def amax(point: str | None = None) -> Amount:
    """The reduced amax of a point; without one, the largest over the seat's points."""
    text = "amax" if point is None else f"amax({point})"

    def find(evidence: Evidence) -> Value:
        seen, seat = evidence.observation, evidence.seat.name
        points = seen.amax_points(seat) if point is None else [point]
        found = {p: seen.amax(seat, p) for p in points}
        at = max(found, key=lambda p: found[p])
        return Value(found[at], f"{text} {found[at]:.4g}" + ("" if point else f" at {at}"))

    return Amount(text, find)


def median_amax() -> Amount:
    """The median of the amax of every point of every seat that was calibrated."""
    text = "median(amax)"

    def find(evidence: Evidence) -> Value:
        found = evidence.observation.amaxes
        median = float(percentile_of(torch.tensor(found, dtype=torch.float64), 50))
        return Value(median, f"{text} {median:.4g}")

    return Amount(text, find)


def spread(point: str) -> Amount:
    """The largest channel (or block) of a point over its median one."""
    text = f"spread({point})"

    def find(evidence: Evidence) -> Value:
        seen, seat = evidence.observation, evidence.seat.name
        stat = _stat(evidence, point, lambda s: s.stat == "amax" and s.per != "tensor")
        channels = seen.statistic(seat, point, stat)
        median = float(percentile_of(channels, 50))
        ratio = float(channels.max()) / median if median else float("inf")
        return Value(ratio, f"{text} {ratio:.4g}")

    return Amount(text, find)


def rms(point: str) -> Amount:
    """The root of the mean square over all channels of a point."""
    text = f"rms({point})"

    def find(evidence: Evidence) -> Value:
        stat = _stat(evidence, point, lambda s: s.stat == "second_moment")
        moments = evidence.observation.statistic(evidence.seat.name, point, stat)
        found = float(moments.mean().sqrt())
        return Value(found, f"{text} {found:.4g}")

    return Amount(text, find)


def quantile(point: str, share: float) -> Amount:
    """The magnitude that this share of a point's values does not exceed."""
    text = f"quantile({point}, {share:g})"

    def find(evidence: Evidence) -> Value:
        stat = _stat(evidence, point, lambda s: s.stat == "histogram")
        histogram = evidence.observation.collector(evidence.seat.name, point, stat)
        assert isinstance(histogram, Histogram)
        found = histogram.quantile(share)
        return Value(found, f"{text} {found:.4g}")

    return Amount(text, find)


def dispersion(point: str) -> Amount:
    """The largest sample of a point over its median one."""
    text = f"dispersion({point})"

    def find(evidence: Evidence) -> Value:
        samples = torch.tensor(
            evidence.observation.per_sample(evidence.seat.name, point), dtype=torch.float64
        )
        median = float(percentile_of(samples, 50))
        ratio = float(samples.max()) / median if median else float("inf")
        return Value(ratio, f"{text} {ratio:.4g}")

    return Amount(text, find)


def most_rows(name: str) -> Amount:
    """The largest row count that calibration saw at the seat. ``name``: the rows' dim."""
    return _rows(f"max({name})", max)


def least_rows(name: str) -> Amount:
    """The smallest row count that calibration saw at the seat."""
    return _rows(f"min({name})", min)


def _rows(text: str, pick: Callable[[tuple[int, ...]], int]) -> Amount:
    def find(evidence: Evidence) -> Value:
        found = pick(evidence.observation.rows(evidence.seat.name))
        return Value(float(found), f"{text} {found}")

    return Amount(text, find)


def dim(name: str) -> Amount:
    """A size of the seat."""

    def find(evidence: Evidence) -> Value:
        found = evidence.seat.dims[name]
        return Value(float(found), f"{name} {found}")

    return Amount(name, find, measured=False)


def capability() -> Amount:
    """The compute capability of the CUDA device, 0 without one."""

    def find(evidence: Evidence) -> Value:
        if evidence.capability is None:
            return Value(0.0, "capability 0 (no CUDA device)")
        return Value(evidence.capability, f"capability {evidence.capability:g}")

    return Amount("capability", find, measured=False)


def _stat(evidence: Evidence, point: str, wanted: Callable[[Stat], bool]) -> Stat:
    stats = evidence.observation.stats(evidence.seat.name, point)
    return next(stat for stat in stats if wanted(stat))


# ---------------------------------------------------------------- conditions


@dataclass(frozen=True)
class Figure:
    """One comparison as it came out: both sides in words and as numbers."""

    left: str
    left_value: float
    op: str
    right: str
    right_value: float
    holds: bool


@dataclass(frozen=True)
class Finding:
    """A condition as it came out."""

    holds: bool
    reason: str
    figures: tuple[Figure, ...]


class Condition:
    """Something that holds for a seat or does not."""

    text: str
    measured: bool

    def find(self, evidence: Evidence) -> Finding:
        raise NotImplementedError


@dataclass(frozen=True)
class Comparison(Condition):
    left: Amount
    op: str
    right: Amount

    @property
    def text(self) -> str:  # type: ignore[override]
        return f"{self.left.text} {self.op} {self.right.text}"

    @property
    def measured(self) -> bool:  # type: ignore[override]
        return self.left.measured or self.right.measured

    def find(self, evidence: Evidence) -> Finding:
        left, right = self.left.find(evidence), self.right.find(evidence)
        holds = _HOLDS[self.op](left.number, right.number)
        figure = Figure(self.left.text, left.number, self.op, self.right.text, right.number, holds)
        link = self.op if holds else f"is not {self.op}"
        return Finding(holds, f"{left.shown} {link} {right.shown}", (figure,))


_HOLDS: Mapping[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
}


@dataclass(frozen=True)
class Together(Condition):
    """``word``: ``and`` (all hold) or ``or`` (one holds)."""

    word: str
    parts: tuple[Condition, ...]

    @property
    def text(self) -> str:  # type: ignore[override]
        return f" {self.word} ".join(
            f"({p.text})" if isinstance(p, Together) else p.text for p in self.parts
        )

    @property
    def measured(self) -> bool:  # type: ignore[override]
        return any(part.measured for part in self.parts)

    def find(self, evidence: Evidence) -> Finding:
        found = [part.find(evidence) for part in self.parts]
        holds = (all if self.word == "and" else any)(part.holds for part in found)
        told = [part for part in found if part.holds == holds]
        return Finding(
            holds,
            " and ".join(part.reason for part in told),
            tuple(figure for part in found for figure in part.figures),
        )


def all_of(*parts: Condition) -> Condition:
    return Together("and", parts)


def any_of(*parts: Condition) -> Condition:
    return Together("or", parts)

"""A calibration as data: what was measured, for which host, to be kept and used again.

It holds what the collectors hold, not the scales made of it: percentiles, decisions and
notes are worked out anew from it, and several calibrations merge as if one process had
seen every sample.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.runtime.calibration.key import Key, require_same
from frtspec.runtime.calibration.statistics import collector
from frtspec.runtime.errors import Refusal
from frtspec.runtime.observation.values import KEPT_SAMPLES
from frtspec.runtime.spec import HostBinding, SchemeSpec, Seat, Stat

State = Mapping[str, Tensor]
"""What a collector holds, by part; see ``Collector.state``."""


@dataclass(frozen=True)
class PointData:
    """The statistics of one point.

    hits, outside   calls of each sample inside and outside the bands that count
    """

    hits: tuple[int, ...]
    outside: tuple[int, ...]
    statistics: Mapping[Stat, State]


@dataclass(frozen=True)
class CallData:
    """How a seat's modules were called.

    counts      module path -> calls
    per_sample  calls of the first module, sample by sample
    rows        row count -> calls
    out_dtypes  (dtype in, autocast's or None, dtype out), as torch names them
    """

    counts: Mapping[str, int]
    per_sample: tuple[int, ...]
    rows: Mapping[int, int]
    out_dtypes: tuple[tuple[str, str | None, str], ...]
    widths: tuple[tuple[int, ...], ...]
    returns: tuple[str, ...]
    styles: tuple[str, ...]
    extra: tuple[str, ...]

    @property
    def steps(self) -> int | None:
        """Calls a sample, where every sample made as many."""
        several = set(self.per_sample)
        return several.pop() if len(several) == 1 else None


@dataclass(frozen=True)
class Passed:
    """What passed at a content or observation point in one sample: facts about each call,
    and the contents where they were kept."""

    dtypes: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    size: int
    contents: tuple[Tensor, ...] | None = None


@dataclass(frozen=True)
class SeatData:
    """What calibration knows of a seat. A seat that can't be calibrated has a refusal and no
    statistics. ``values`` are captures, which no percentile touches."""

    refusal: Mapping[str, Any] | None
    calls: CallData | None = None
    points: Mapping[str, PointData] = field(default_factory=dict)
    values: Mapping[str, tuple[Passed, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Calibration:
    """What was measured on one host.

    key       what it belongs to
    samples   how many samples ran
    seats     seat name -> what is known of it
    runs      how many runs or ranks it was merged of
    """

    key: Key
    samples: int
    seats: Mapping[str, SeatData]
    runs: int = 1

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the calibration to one file, atomically and under its lock; into a folder
        under the name that "auto" looks for. Returns the file.

        Raises Refusal ``store.locked``, and OSError as writing does.
        """
        from frtspec.runtime.calibration import file as calibration_file  # it reads into this class

        return calibration_file.save(self, Path(path))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Calibration:
        """Reads a saved calibration.

        Raises Refusal ``calibration.file`` (there is none), ``calibration.schema`` (of
        another version) or ``calibration.corrupt``; a corrupt file is renamed, not lost.
        """
        from frtspec.runtime.calibration import file as calibration_file

        return calibration_file.load(Path(path))

    @staticmethod
    def merge(first: Calibration, *others: Calibration) -> Calibration:
        """One calibration of all samples of several, made for the same host.

        Amaxes keep each sample's, second moments add their sums and counts, histograms
        their counts: what one run over all samples gives. A seat that one of them refuses
        is refused. Raises Refusal ``calibration.key`` with the keys that differ, or
        ``calibration.seats`` where they measured different seats.
        """
        merged = first
        for position, other in enumerate(others, start=2):
            merged = _merged(merged, other, f"calibration {position}")
        return merged


@dataclass(frozen=True)
class Draft:
    """A calibration whose key is not worked out yet: hashing every weight takes a while, and
    most calibrations are never saved."""

    model: nn.Module
    binding: HostBinding
    scheme: SchemeSpec
    places: Sequence[Seat]
    samples: int
    seats: Mapping[str, SeatData]
    marks: Mapping[str, tuple[int, int]]

    def seal(self, key: Key | None = None) -> Calibration:
        """Works the key out. Raises Refusal ``calibration.weights_changed`` where weights
        are not those that were calibrated any more."""
        changed = [n for n, mark in marks_of(self.model).items() if self.marks.get(n) != mark]
        if changed:
            raise Refusal(
                "calibration.weights_changed",
                f"{', '.join(changed[:3])} changed since the calibration"
                + (f" and {len(changed) - 3} more" if len(changed) > 3 else ""),
                fix="save before the weights change, or calibrate again",
            )
        key = key or Key.of(self.model, self.binding, self.scheme, self.places)
        return Calibration(key, self.samples, self.seats)


def marks_of(model: nn.Module) -> dict[str, tuple[int, int]]:
    """Which tensor each weight is, and its version."""
    return {
        name: (value.data_ptr(), 0 if value.is_inference() else value._version)
        for name, value in model.state_dict(keep_vars=True).items()
        if isinstance(value, Tensor)
    }


# ---------------------------------------------------------------- merging


def _merged(one: Calibration, other: Calibration, what: str) -> Calibration:
    require_same(other.key, one.key, what=what, other="in the first")
    if one.seats.keys() != other.seats.keys():
        only = sorted(one.seats.keys() ^ other.seats.keys())
        raise Refusal(
            "calibration.seats",
            f"{what} measured other seats: {', '.join(only)} is in one of the two only",
            fix="calibrate each with the same structures= and scheme=",
        )
    seats = {name: _seat(name, one.seats[name], other.seats[name], what) for name in one.seats}
    return Calibration(one.key, one.samples + other.samples, seats, one.runs + other.runs)


def _seat(name: str, one: SeatData, other: SeatData, what: str) -> SeatData:
    if one.refusal is not None:
        return one
    if other.refusal is not None:
        told = f"{other.refusal['what']} (in {what})"
        return SeatData({**other.refusal, "what": told})
    assert one.calls is not None and other.calls is not None
    points = {p: _point(name, p, data, other.points[p]) for p, data in one.points.items()}
    values = {p: _values(seen, other.values.get(p, ())) for p, seen in one.values.items()}
    return SeatData(None, _calls(one.calls, other.calls), points, values)


def _point(seat: str, name: str, one: PointData, other: PointData) -> PointData:
    statistics = {}
    for stat, state in one.statistics.items():
        if stat not in other.statistics or not _like(state, other.statistics[stat]):
            raise Refusal(
                "calibration.seats",
                f"point {name} has no {stat} of the same size in both",
                fix="calibrate each with the same scheme= on the same model",
                seat=seat,
            )
        joined = collector(stat)
        assert joined is not None
        joined.absorb(state)
        joined.absorb(other.statistics[stat])
        statistics[stat] = joined.state()
    return PointData(one.hits + other.hits, one.outside + other.outside, statistics)


_PER_SAMPLE = ("largest", "top")
"""Parts of a state whose first axis is samples."""


def _like(one: State, other: State) -> bool:
    def shape(name: str, value: Tensor) -> torch.Size:
        return value.shape[1:] if name in _PER_SAMPLE else value.shape

    return {n: shape(n, v) for n, v in one.items()} == {n: shape(n, v) for n, v in other.items()}


def _calls(one: CallData, other: CallData) -> CallData:
    def together(mine: tuple[Any, ...], theirs: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(dict.fromkeys((*mine, *theirs)))

    return CallData(
        _added(one.counts, other.counts),
        one.per_sample + other.per_sample,
        _added(one.rows, other.rows),
        together(one.out_dtypes, other.out_dtypes),
        together(one.widths, other.widths),
        together(one.returns, other.returns),
        together(one.styles, other.styles),
        together(one.extra, other.extra),
    )


def _added(one: Mapping[Any, int], other: Mapping[Any, int]) -> dict[Any, int]:
    return {k: one.get(k, 0) + other.get(k, 0) for k in dict.fromkeys((*one, *other))}


def _values(one: tuple[Passed, ...], other: tuple[Passed, ...]) -> tuple[Passed, ...]:
    """All samples; contents of the first few, as one run keeps them."""
    return tuple(
        seen if place < KEPT_SAMPLES else replace(seen, contents=None)
        for place, seen in enumerate((*one, *other))
    )

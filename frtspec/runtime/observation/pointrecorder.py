"""Measuring at one point: which calls count, and what can't be used."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from frtspec.runtime.calibration.statistics import Collector, collector
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.places import place_text
from frtspec.runtime.observation.recorders import Recorder
from frtspec.runtime.seats.calls import row_count
from frtspec.runtime.seats.guard import Band
from frtspec.runtime.spec import Place, Seat, Stat

CALLS = 32
"""Calls of a sample whose largest magnitude is kept apart; those after count as one."""


class PointRecorder(Recorder):
    """The statistics of one point, over every call of a sample and every sample.

    ``bands``: only calls with such row counts count; empty: all do. ``hits`` and
    ``outside`` count the calls of each sample inside and outside them; ``broken`` holds
    for each sample with a NaN or an Inf what it holds. ``by_call``: whether the largest
    magnitude of each call of a sample is kept too, the largest over samples.
    """

    def __init__(
        self,
        seat: Seat,
        point: str,
        stats: Sequence[Stat],
        module: nn.Module,
        place: Place,
        bands: Sequence[Band] = (),
        *,
        by_call: bool = False,
    ) -> None:
        super().__init__(seat)
        self.point, self.module, self.place, self.bands = point, module, place, bands
        self.collectors = {stat: self._collector(stat) for stat in stats}
        self.hits: list[int] = []
        self.outside: list[int] = []
        self.broken: dict[int, set[str]] = {}
        self._hits = self._outside = 0
        self.by_call = by_call
        self._each: list[Tensor] = []

    def _collector(self, stat: Stat) -> Collector:
        found = collector(stat)
        if found is None:
            raise Refusal(
                "calibration.statistic",
                f"point {self.point}: no collector for {stat}",
                fix="use amax per tensor, channel or block, second_moment per channel, or "
                "histogram per tensor",
                seat=self.seat.name,
            )
        return found

    @property
    def samples(self) -> int:
        """Samples that the statistics rest on."""
        return sum(hits > 0 for hits in self.hits)

    def attach(self) -> None:
        self.at(self.module, self.place, self._see)

    def _see(self, value: Tensor) -> None:
        if self.bands and not any(band.holds(row_count(value)) for band in self.bands):
            self._outside += 1
            return
        if self.by_call:
            self._see_call(value)
        self._hits += 1
        for each in self.collectors.values():
            each.see(value)

    def _see_call(self, value: Tensor) -> None:
        largest = value.abs().amax().float()
        place = min(self._hits, CALLS)
        if place == len(self._each):
            self._each.append(largest)
        else:
            self._each[place] = torch.maximum(self._each[place], largest)

    def per_call(self) -> tuple[float, ...]:
        """The largest magnitude of each call, over samples; the last is of that call and all
        after it."""
        return tuple(torch.stack(self._each).tolist()) if self._each else ()

    def close_sample(self) -> list[tuple[Collector, Tensor]]:
        """What the sample leaves for each collector, still on its device."""
        self.hits.append(self._hits)
        self.outside.append(self._outside)
        self._hits = self._outside = 0
        left = [(each, each.close()) for each in self.collectors.values()]
        return [(each, row) for each, row in left if row is not None]

    def keep(self, into: Collector, row: Tensor) -> None:
        """A closed sample's row, on the CPU."""
        kinds = {"NaN": row.isnan(), "Inf": row.isinf()}
        bad = {name for name, found in kinds.items() if bool(found.any())}
        if bad:
            self.broken.setdefault(len(self.hits) - 1, set()).update(bad)
        into.add(row)

    def problem(self, samples: int) -> Refusal | None:
        missed = [k for k, hits in enumerate(self.hits) if not hits and not self.outside[k]]
        where = f"point {self.point} ({place_text(self.place)})"
        if len(missed) == samples:
            return Refusal(
                "calibration.never_hit",
                f"{where} was never reached over {samples} samples",
                fix="check the place in the binding: the host may not call that module",
                seat=self.seat.name,
            )
        if missed:
            return Refusal(
                "calibration.uneven",
                f"{where} was reached in {samples - len(missed)} of {samples} samples; "
                f"missed in samples {', '.join(map(str, missed))}",
                fix="calibrate on samples that all take this path through the host",
                seat=self.seat.name,
            )
        if not any(self.hits):
            return Refusal(
                "calibration.rows",
                f"{where} was reached only with row counts outside "
                f"{' and '.join(map(str, self.bands))}",
                fix="calibrate on traffic with the row counts that the impl is for",
                seat=self.seat.name,
            )
        return self._not_finite()

    def _not_finite(self) -> Refusal | None:
        if not self.broken:
            return None
        found = set().union(*self.broken.values())
        kinds = " and ".join(name for name in ("NaN", "Inf") if name in found)
        return Refusal(
            "calibration.not_finite",
            f"point {self.point} ({place_text(self.place)}) holds {kinds} "
            f"in samples {', '.join(map(str, sorted(self.broken)))}",
            fix="find out why the untouched host computes it; no scale can be made of it",
            seat=self.seat.name,
        )

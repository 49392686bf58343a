"""Collectors: what is measured of the values that pass a point, streamed.

A collector sees every call inside a sample, closes the sample, and keeps what the
result needs and no more. Work stays on the values' device until a sample is closed;
nothing in ``see`` waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

from frtspec.runtime.spec import Stat

KEPT = 1 << 18
"""Numbers that one collector keeps across samples at most (1 MiB); of a wide statistic
at least ``LEAST_ROWS`` samples."""

LEAST_ROWS = 16

BINS = 2048
"""Bins of a histogram where the scheme states none."""

LEAST = -100
"""Exponent of the narrowest range of a histogram: below it float32 can't tell bins apart."""


class Collector(Protocol):
    """One statistic of one point."""

    def see(self, value: Tensor) -> None:
        """One call: values of any shape, channels last. Not empty."""

    def close(self) -> Tensor | None:
        """The end of a sample: what it leaves (1-D), to be handed to ``add`` on the CPU;
        None where no call came by."""

    def add(self, row: Tensor) -> None:
        """A closed sample, on the CPU."""

    def value(self, percentile: float) -> Tensor:
        """The statistic over every sample added: float64, on the CPU."""

    def state(self) -> dict[str, Tensor]:
        """All that the samples added left, on the CPU: what ``absorb`` takes."""

    def absorb(self, state: Mapping[str, Tensor]) -> None:
        """Adds the samples of another collector of the same statistic."""


class Amax:
    """The largest magnitude of each channel or block of channels, or of all of them.

    The largest over the calls inside a sample, then position by position the percentile
    across samples. ``largest`` has each sample's overall one. A block is ``size``
    neighbours of the last axis; the last block may be shorter.
    """

    def __init__(self, per: str, size: int | None = None) -> None:
        self.per, self.size = per, size
        self.largest: list[float] = []
        self.kept = Top()
        self._running: Tensor | None = None

    def see(self, value: Tensor) -> None:
        magnitude = value.abs()
        if self.per == "tensor":
            found = magnitude.amax().float().reshape(1)
        else:
            found = magnitude.reshape(-1, value.shape[-1]).amax(0).float()
            if self.size is not None:
                found = _blocks(found, self.size)
        self._running = found if self._running is None else torch.maximum(self._running, found)

    def close(self) -> Tensor | None:
        row, self._running = self._running, None
        return row

    def add(self, row: Tensor) -> None:
        self.largest.append(float(row.max()))
        if self.per != "tensor":
            self.kept.add(row)

    def value(self, percentile: float) -> Tensor:
        return self.overall(percentile) if self.per == "tensor" else self.kept.value(percentile)

    def overall(self, percentile: float) -> Tensor:
        """The amax of the whole tensor, whatever the granularity: [1]."""
        largest = torch.tensor(self.largest, dtype=torch.float64).reshape(-1, 1)
        return percentile_of(largest, percentile)

    def state(self) -> dict[str, Tensor]:
        largest = torch.tensor(self.largest, dtype=torch.float64)
        return (
            {"largest": largest}
            if self.per == "tensor"
            else {"largest": largest, **self.kept.state()}
        )

    def absorb(self, state: Mapping[str, Tensor]) -> None:
        self.largest += state["largest"].tolist()
        if self.per != "tensor":
            self.kept.absorb(state)


def _blocks(channels: Tensor, size: int) -> Tensor:
    short = -channels.numel() % size
    return torch.nn.functional.pad(channels, (0, short)).reshape(-1, size).amax(1)


class Top:
    """The largest values across samples, position by position, in bounded memory.

    A percentile near 100 needs the top of the samples only. As long as its place lies
    among those kept it is exact; below that the smallest known value stands in, which is
    the percentile ``reached``, larger than the one asked for.
    """

    def __init__(self) -> None:
        self.count = 0
        self._rows: list[Tensor] = []

    def add(self, row: Tensor) -> None:
        self._take([row], 1)

    def state(self) -> dict[str, Tensor]:
        """The rows kept, and of how many samples they are the top."""
        return {"top": torch.stack(self._rows), "count": torch.tensor([self.count])}

    def absorb(self, state: Mapping[str, Tensor]) -> None:
        """Adds the samples of another ``Top`` over as many positions."""
        self._take(list(state["top"]), int(state["count"]))

    def _take(self, rows: list[Tensor], count: int) -> None:
        self.count += count
        self._rows += rows
        most = self._most()
        if len(self._rows) > 2 * most:
            self._rows = list(torch.stack(self._rows).topk(most, dim=0).values)

    def _most(self) -> int:
        return max(LEAST_ROWS, KEPT // self._rows[0].numel())

    def _missing(self) -> int:
        """How many of the smallest values are not known any more. Once some were dropped,
        only the top of those kept is the top of all."""
        return 0 if self.count == len(self._rows) else self.count - self._most()

    def reached(self, percentile: float) -> float:
        """The percentile that ``value`` gives where ``percentile`` is asked for."""
        missing = self._missing()
        return max(percentile, 100 * missing / (self.count - 1)) if missing else percentile

    def value(self, percentile: float) -> Tensor:
        missing = self._missing()
        rows = torch.stack(self._rows)
        rows = rows.topk(self.count - missing, dim=0).values if missing else rows
        place = (self.count - 1) * self.reached(percentile) / 100
        return _at(rows.double(), place - missing)


def percentile_of(samples: Tensor, percentile: float) -> Tensor:
    """The percentile over the first axis, position by position, interpolated as numpy does."""
    return _at(samples, (len(samples) - 1) * percentile / 100)


def _at(samples: Tensor, place: float) -> Tensor:
    """The value at a place (from 0, between two where it is no whole number) in order."""
    ordered = samples.sort(dim=0).values
    low = min(max(int(place), 0), len(samples) - 1)
    high = min(low + 1, len(samples) - 1)
    return torch.lerp(ordered[low], ordered[high], max(place - low, 0.0))


class SecondMoment:
    """The mean of the squares of each channel, over every value of every sample, exact to
    float64. It is a sum over a count, so no percentile applies."""

    def __init__(self) -> None:
        self._running: Tensor | None = None
        self._total: Tensor | None = None

    def see(self, value: Tensor) -> None:
        rows = value.reshape(-1, value.shape[-1]).double()
        found = torch.cat([(rows * rows).sum(0), rows.new_full((1,), len(rows))])
        self._running = found if self._running is None else self._running + found

    def close(self) -> Tensor | None:
        row, self._running = self._running, None
        return row

    def add(self, row: Tensor) -> None:
        self._total = row.double() if self._total is None else self._total + row.double()

    def value(self, percentile: float) -> Tensor:
        assert self._total is not None
        return self._total[:-1] / self._total[-1]

    def state(self) -> dict[str, Tensor]:
        assert self._total is not None
        return {"total": self._total.clone()}

    def absorb(self, state: Mapping[str, Tensor]) -> None:
        self.add(state["total"])


class Histogram:
    """How many magnitudes fall into each of ``bins`` equal bins of [0, 2**e).

    ``e`` is the least that holds the largest magnitude seen. When a larger one comes, the
    range doubles and pairs of bins merge, so counts are exact and their order is of no
    matter. ``bins`` is a power of two.
    """

    def __init__(self, bins: int = BINS) -> None:
        if bins < 2 or bins & (bins - 1):
            raise ValueError(f"a histogram has a power of two of bins, not {bins}")
        self.bins = bins
        self.largest: list[float] = []
        self._running: tuple[Tensor, Tensor, Tensor] | None = None
        self._counts = torch.zeros(bins, dtype=torch.float64)
        self._exponent: Tensor | None = None

    def see(self, value: Tensor) -> None:
        magnitude = value.abs().reshape(-1)
        magnitude = magnitude if magnitude.dtype == torch.float64 else magnitude.float()
        largest = magnitude.amax()
        exponent = torch.frexp(torch.nan_to_num(largest, 0.0, 0.0)).exponent.clamp(min=LEAST)
        bin = torch.ldexp(magnitude, (self.bins.bit_length() - 1) - exponent)
        bin = torch.nan_to_num(bin, 0.0, 0.0).clamp(max=self.bins - 1).long()
        counts = torch.zeros(self.bins, dtype=torch.float64, device=value.device)
        counts = counts.scatter_add(0, bin, torch.ones_like(bin, dtype=torch.float64))
        if self._running is not None:
            before, at, peak = self._running
            counts, exponent = _joined((before, at), (counts, exponent))
            largest = torch.maximum(peak, largest)
        self._running = counts, exponent, largest

    def close(self) -> Tensor | None:
        if self._running is None:
            return None
        counts, exponent, largest = self._running
        self._running = None
        return torch.cat([counts, exponent.double().reshape(1), largest.double().reshape(1)])

    def add(self, row: Tensor) -> None:
        self.largest.append(float(row[-1]))
        self._take(row[:-2].double(), row[-2].int())

    def state(self) -> dict[str, Tensor]:
        assert self._exponent is not None
        largest = torch.tensor(self.largest, dtype=torch.float64)
        exponent = self._exponent.reshape(1)
        return {"counts": self._counts.clone(), "exponent": exponent, "largest": largest}

    def absorb(self, state: Mapping[str, Tensor]) -> None:
        self.largest += state["largest"].tolist()
        self._take(state["counts"], state["exponent"].reshape(()))

    def _take(self, counts: Tensor, exponent: Tensor) -> None:
        if self._exponent is not None:
            counts, exponent = _joined((self._counts, self._exponent), (counts, exponent))
        self._counts, self._exponent = counts, exponent

    def value(self, percentile: float) -> Tensor:
        """The counts; ``edge`` says what they count."""
        return self._counts

    @property
    def edge(self) -> float:
        """The upper end of the last bin."""
        assert self._exponent is not None
        return float(2.0 ** int(self._exponent))

    def quantile(self, share: float) -> float:
        """The upper edge of the bin in which this share (0 to 1) of the magnitudes is reached."""
        reached = self._counts.cumsum(0) >= share * self._counts.sum()
        return self.edge * (int(reached.int().argmax()) + 1) / self.bins


def _joined(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Two histograms of equal bins over the wider of their ranges."""
    exponent = torch.maximum(one[1], other[1])
    return _widened(*one, exponent) + _widened(*other, exponent), exponent


def _widened(counts: Tensor, exponent: Tensor, wanted: Tensor) -> Tensor:
    bins = torch.arange(len(counts), device=counts.device)
    shift = (wanted - exponent).clamp(0, 62)
    return torch.zeros_like(counts).scatter_add(0, bins >> shift, counts)


def collector(stat: Stat) -> Collector | None:
    """The collector of a statistic; None where none measures it."""
    match stat.stat, stat.per:
        case "amax", "tensor" | "channel":
            return Amax(stat.per)
        case "amax", "block" if stat.size:
            return Amax("block", stat.size)
        case "second_moment", "channel":
            return SecondMoment()
        case "histogram", "tensor":
            return Histogram(stat.bins or BINS)
        case _:
            return None

"""A table of what a projection gives for each step, and the module that reads it.

A step is found by a fingerprint, a few coordinates of the conditioning that tell the steps
apart best, and then compared whole: a value is handed out for the very bits that it was computed
from, so it is what the host would have computed. Any other conditioning is an unknown step, and
the host computes it. In a trace or a graph nothing can be asked of a value, so the host computes
there too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from frtspec.runtime.observation import capturefacts
from frtspec.runtime.seats.calls import version_of
from frtspec.runtime.seats.guard import Check, Failed
from frtspec.runtime.seats.seatmodule import SeatModule

UNKNOWN = Check("step", lambda guard, inputs, extra: None, traced=False)
"""The conditioning is none that the table has a row for."""


class Locator:
    """Finds which step a conditioning is. Shared by every table of one conditioning stream.

    conds  the distinct values, in order of first appearance; kept as they are
    """

    def __init__(self, conds: Sequence[Tensor]) -> None:
        self.conds = [cond.detach().clone() for cond in conds]
        self.places = capturefacts.telling(self.conds).to(self.conds[0].device)
        self._rows = {self._key(cond): row for row, cond in enumerate(self.conds)}

    def _key(self, cond: Tensor) -> tuple[float, ...]:
        return tuple(cond.reshape(-1)[self.places].tolist())

    def find(self, cond: Tensor) -> int | None:
        """The row of a step; None for one that is none of them."""
        first = self.conds[0]
        if cond.shape != first.shape or cond.dtype != first.dtype:
            return None
        row = self._rows.get(self._key(cond))
        return row if row is not None and torch.equal(cond, self.conds[row]) else None

    def same(self, conds: Sequence[Tensor]) -> bool:
        """Whether it is of just these values."""
        return len(conds) == len(self.conds) and all(
            a.dtype == b.dtype and a.device == b.device and torch.equal(a, b)
            for a, b in zip(conds, self.conds, strict=True)
        )

    @property
    def nbytes(self) -> int:
        return sum(cond.nbytes for cond in self.conds)


@dataclass(frozen=True)
class Table:
    """One projection's results, a row a step. ``versions`` show writes into them."""

    locator: Locator
    values: tuple[Tensor, ...]
    versions: tuple[int | None, ...]

    @classmethod
    def of(cls, locator: Locator, values: Sequence[Tensor]) -> Table:
        """Rows of its own memory, which nothing else writes to."""
        with torch.inference_mode(False):
            own = tuple(torch.empty_like(value).copy_(value.detach()) for value in values)
        return cls(locator, own, tuple(version_of(value) for value in own))

    def find(self, cond: Tensor) -> Tensor | str:
        """What the projection gives for a step, or why it is not here."""
        row = self.locator.find(cond)
        if row is None:
            steps = len(self.values)
            return f"an unknown step: none of the {steps} that calibration saw"
        if version_of(self.values[row]) != self.versions[row]:
            return f"something wrote into row {row} of the table"
        return self.values[row]

    @property
    def nbytes(self) -> int:
        return sum(value.nbytes for value in self.values)


class TableModule(SeatModule):
    """Stands in the place of a projection whose results are in a table."""

    def __init__(self, *parts: Any, table: Table) -> None:
        super().__init__(*parts)
        self.__dict__["_frt_table"] = table

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The row of this step, else what the host computes."""
        parts = self.__dict__["_frt"]
        if torch.compiler.is_compiling():
            return parts.host.forward(*args, **kwargs)
        inputs, extra = parts.read(args, kwargs)
        failed = parts.guard.failed(inputs, extra)
        if failed is None and inputs[0].is_cuda and torch.cuda.is_current_stream_capturing():
            return parts.host.forward(*args, **kwargs)
        if failed is None:
            found = self.__dict__["_frt_table"].find(inputs[0])
            if isinstance(found, Tensor):
                parts.counter.ran()
                return found
            failed = Failed(UNKNOWN, found)
        parts.counter.fell_back(failed)
        return parts.host.forward(*args, **kwargs)

"""Several processes that attach one model each, as one: what they measure is united, and
what one of them refuses all refuse.

Every rank takes the same exchanges in the same order. A rank that raises takes part in the
next exchange with its fault, so that the others don't wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from frtspec.runtime.calibration.data import Calibration, SeatData
from frtspec.runtime.calibration.key import Key, require_same
from frtspec.runtime.errors import Refusal
from frtspec.runtime.options import Options
from frtspec.runtime.records import SeatRecord


class RankRefusal(Refusal):
    """What all ranks raise together, so that none waits for another."""


class Ranks:
    """The processes of a ``torch.distributed`` group; of this process alone without one."""

    def __init__(self, group: Any = None) -> None:
        """``group``: a process group, or "world"; None: this process alone."""
        self.group, self.size, self.rank = None, 1, 0
        if group is None:
            return
        from torch import distributed

        if not distributed.is_available() or not distributed.is_initialized():
            raise Refusal(
                "option.group",
                "group= was given, and torch.distributed is not initialised",
                fix="call torch.distributed.init_process_group first, or leave group= out",
            )
        self.group = distributed.group.WORLD if isinstance(group, str) else group
        self.size = distributed.get_world_size(self.group)
        self.rank = distributed.get_rank(self.group)

    @property
    def several(self) -> bool:
        return self.size > 1

    @contextmanager
    def together(self) -> Iterator[None]:
        """A block that ends for all ranks when it ends for one."""
        try:
            yield
        except RankRefusal:
            raise
        except BaseException as error:
            if self.several:
                self._gather({"fault": f"{type(error).__name__}: {error}"})
            raise

    def agree(self, key: Key, options: Options) -> None:
        """Whether every rank has the same host, specs and options. Raises Refusal
        ``ranks.key`` or ``ranks.options`` on every rank."""
        rows = self.exchange("options", (key, options.to_json()))
        for rank, (other, chosen) in enumerate(rows):
            try:
                require_same(other, rows[0][0], what=f"rank {rank}", other="on rank 0")
            except Refusal as found:
                raise RankRefusal(
                    "ranks.key", found.what, fix=found.fix, shape=found.shape
                ) from None
            for name, value in chosen.items():
                if value != rows[0][1][name]:
                    raise RankRefusal(
                        "ranks.options",
                        f"{name} is {value!r} on rank {rank} and {rows[0][1][name]!r} on rank 0",
                        fix="pass the same options on every rank",
                    )

    def united(self, mine: Calibration) -> Calibration:
        """One calibration of the samples of every rank, the same on all of them. A seat that
        one rank can't calibrate is refused on all, with the rank named."""
        rows = self.exchange("calibration", mine)
        names = dict.fromkeys(name for each in rows for name in each.seats)
        found = [_told(rank, each, list(names)) for rank, each in enumerate(rows)]
        try:
            return Calibration.merge(*found)
        except Refusal as problem:
            raise RankRefusal(
                problem.code, f"across ranks: {problem.what}", fix=problem.fix, seat=problem.seat
            ) from None

    def same_outcome(self, records: Sequence[SeatRecord], chosen: Sequence[SeatRecord]) -> None:
        """Leaves only those of ``chosen`` open that every rank would activate, with the same
        impl and rung."""
        held = {id(record) for record in chosen if record.open}
        mine = {
            r.name: ("", r.form) if id(r) in held else (r.code or "not chosen", r.reason)
            for r in records
        }
        rows = self.exchange("outcome", mine)
        for record in records:
            if not record.open:
                continue
            for rank, states in enumerate(rows):
                code, told = states.get(record.name, ("missing", "there is no such seat"))
                if code:
                    record.refuse(_elsewhere(record, rank, f"it is not bound: {told} [{code}]"))
                    break
                if told != record.form:
                    record.refuse(
                        _elsewhere(record, rank, f"it is {told}, on rank {self.rank} {record.form}")
                    )
                    break

    def same_seats(self, bound: Sequence[str]) -> None:
        """Raises Refusal ``ranks.active`` on every rank where one could not activate what all
        had agreed on."""
        rows = self.exchange("active", sorted(bound))
        for rank, names in enumerate(rows):
            if names != rows[0]:
                only = ", ".join(sorted(set(names) ^ set(rows[0])))
                raise RankRefusal(
                    "ranks.active",
                    f"{only} was activated on one of rank 0 and rank {rank} only",
                    fix="see the log of both; nothing is attached anywhere",
                )

    def exchange(self, step: str, mine: Any) -> list[Any]:
        """What every rank gave for this step, by rank. Raises Refusal ``ranks.failed`` where
        one raised, ``ranks.step`` where they are not at the same step."""
        rows = self._gather({"step": step, "value": mine})
        failed = {rank: row["fault"] for rank, row in enumerate(rows) if "fault" in row}
        if failed:
            told = "; ".join(f"rank {rank}: {fault}" for rank, fault in failed.items())
            raise RankRefusal(
                "ranks.failed",
                f"another rank raised, so nothing is attached here: {told}",
                fix="mend it there; every rank attaches or none does",
            )
        steps = {rank: row["step"] for rank, row in enumerate(rows) if row["step"] != step}
        if steps:
            told = ", ".join(f"rank {rank} is at {other}" for rank, other in steps.items())
            raise RankRefusal(
                "ranks.step",
                f"rank {self.rank} is at {step}; {told}",
                fix="call attach on every rank alike",
            )
        return [row["value"] for row in rows]

    def _gather(self, mine: dict[str, Any]) -> list[Any]:
        if not self.several:
            return [mine]
        from torch import distributed

        rows: list[Any] = [None] * self.size
        distributed.all_gather_object(rows, mine, group=self.group)
        return rows


def _told(rank: int, calibration: Calibration, names: Sequence[str]) -> Calibration:
    """A rank's calibration whose refusals name it; what it did not measure is refused."""
    seats = {}
    for name in names:
        seat = calibration.seats.get(name, _unmeasured(name))
        if seat.refusal is not None:
            seat = SeatData({**seat.refusal, "what": f"on rank {rank}: {seat.refusal['what']}"})
        seats[name] = seat
    return Calibration(calibration.key, calibration.samples, seats, calibration.runs)


def _unmeasured(name: str) -> SeatData:
    return SeatData(
        {
            "code": "ranks.seat",
            "what": "the seat was settled before calibration",
            "fix": "a seat is bound on every rank or on none; see that rank's record",
            "seat": name,
        }
    )


def _elsewhere(record: SeatRecord, rank: int, what: str) -> Refusal:
    return Refusal(
        "ranks.seat",
        f"on rank {rank} {what}",
        fix="a seat is bound on every rank or on none; see that rank's record",
        seat=record.name,
        form=record.form or None,
    )

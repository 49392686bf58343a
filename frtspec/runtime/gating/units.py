"""Units: seats that are judged, activated and dropped together.

A structure is one unit. A chain that runs joined is one, with both its ends: codes that one
end writes are for the other alone. A function that a host looks up (a route) is one: the
adapter behind it serves every layer or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from frtspec.runtime.records import SeatRecord


class Joined(Protocol):
    """What ties seats into one: a chain that runs joined, or anything like it."""

    @property
    def seats(self) -> tuple[str, ...]: ...

    @property
    def state(self) -> str: ...


@dataclass
class Unit:
    """A named set of seats. ``kind``: structure, chain or route; ``records`` are in the
    host's order; ``tied`` are seats inside that stand or fall together."""

    name: str
    kind: str
    records: list[SeatRecord]
    tied: list[frozenset[str]] = field(default_factory=list)

    @property
    def open(self) -> bool:
        return any(record.open for record in self.records)


def units_of(
    records: Sequence[SeatRecord], joined: Iterable[Joined], sizes: Mapping[str, float]
) -> list[Unit]:
    """The units of the seats given, in the order they are judged in.

    joined  ties; those whose ``state`` is ``joined`` and whose seats are all given count
    sizes   seat name -> how much it stands for (multiply-adds, or parameters)

    The largest first, for that is where a gain is; of equal ones, the one that the host
    runs first. Neither the names nor the order of the specs decide.
    """
    place = {record.name: at for at, record in enumerate(records)}
    ties = [
        frozenset(tie.seats)
        for tie in joined
        if tie.state == "joined" and all(seat in place for seat in tie.seats)
    ]
    tied = _together(ties)
    found: dict[tuple[str, str], Unit] = {}
    for record in records:
        mine = tied.get(record.name)
        kind, name = _kind(record, mine, place)
        unit = found.setdefault((kind, name), Unit(name, kind, []))
        unit.records.append(record)
        if mine is not None and mine not in unit.tied:
            unit.tied.append(mine)

    def order(unit: Unit) -> tuple[float, int]:
        return -sum(sizes.get(r.name, 0) for r in unit.records), place[unit.records[0].name]

    return sorted(found.values(), key=order)


def _kind(
    record: SeatRecord, tie: frozenset[str] | None, place: Mapping[str, int]
) -> tuple[str, str]:
    if tie is not None:
        families = dict.fromkeys(_family(seat) for seat in sorted(tie, key=place.__getitem__))
        return "chain", " -> ".join(families)
    seat = record.seat
    if seat.routed is not None:
        return "route", f"{seat.structure.name} at {seat.routed.name}"
    return "structure", seat.structure.name


def _family(seat: str) -> str:
    """The name of a seat without its numbers."""
    return seat.partition("[")[0]


def _together(ties: Sequence[frozenset[str]]) -> dict[str, frozenset[str]]:
    """seat -> every seat that it is tied to, over any number of ties."""
    groups: list[frozenset[str]] = []
    for tie in ties:
        mine = frozenset(tie).union(*(group for group in groups if group & tie))
        groups = [group for group in groups if not group & mine] + [mine]
    return {seat: group for group in groups for seat in group}

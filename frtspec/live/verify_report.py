"""What ``verify`` found out about a binding on a live host, as data and as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from frtspec.runtime.errors import Refusal


@dataclass(frozen=True)
class Problem:
    """Something that does not hold.

    code   as refusals have it: ``host.path``, ``host.shape``, ``verify.layout`` …
    path   the module or parameter that it is about; empty for the whole seat
    what   both sides: what the binding says, and what the host has
    fix    what to do about it
    """

    code: str
    path: str
    what: str
    fix: str

    @staticmethod
    def of(refusal: Refusal, path: str = "") -> Problem:
        return Problem(refusal.code, path, refusal.what, refusal.fix)


@dataclass(frozen=True)
class Slot:
    """A weight slot. ``shape`` is the parameter's own, as the host stores it.

    proof   what shows the layout: ``shape``, the class that owns the parameter
            (``class Linear``), ``reference`` (the numbers agree), or ``vector`` where
            there is nothing to show. None: nothing shows it, or it is wrong
    """

    name: str
    path: str | None
    shape: tuple[int, ...] | None
    layout: str | None
    proof: str | None


@dataclass(frozen=True)
class Point:
    """A point, its place as the language writes it, and how often it was reached in each
    sample (empty where nothing ran)."""

    name: str
    place: str
    hits: tuple[int, ...]


@dataclass(frozen=True)
class Fact:
    """An ``expect`` at one place: what the binding says and what the host has."""

    fact: str
    place: str
    expected: tuple[str, ...]
    found: str
    holds: bool


@dataclass
class SeatReport:
    """One seat.

    modules    the modules it stands for: path -> class
    dims       what is known of the structure's dims on this host
    calls      how often it ran, sample by sample
    reference  largest rel_l2 between the structure's reference and the host; None where
               nothing could be compared
    """

    name: str
    target: str
    path: str
    form: str
    modules: dict[str, str] = field(default_factory=dict)
    dims: dict[str, int] = field(default_factory=dict)
    variants: dict[str, str] = field(default_factory=dict)
    slots: list[Slot] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    calls: tuple[int, ...] = ()
    reference: float | None = None
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems

    def refuse(self, refusal: Refusal, path: str = "") -> None:
        problem = Problem.of(refusal, path)
        if problem not in self.problems:
            self.problems.append(problem)

    def line(self) -> str:
        """The seat in one line."""
        modules = dict.fromkeys(self.modules.values())
        parts = [f"{self.target} at {self.path or 'the model'}"]
        if modules:
            parts.append(f"{counted(len(self.modules), 'module')} ({', '.join(modules)})")
        if self.dims:
            parts.append(" ".join(f"{name}={size}" for name, size in self.dims.items()))
        parts.append(_slots(self.slots))
        parts.append(_points(self.points))
        if self.facts:
            held = sum(fact.holds for fact in self.facts)
            parts.append(f"{held} of {counted(len(self.facts), 'fact')} hold")
        parts.append(f"calls {' '.join(map(str, self.calls)) or 'none'}")
        if self.reference is not None:
            parts.append(f"reference {self.reference:.1e} away")
        return f"{'ok  ' if self.ok else 'FAIL'} {self.name:<10} {'; '.join(filter(None, parts))}"


@dataclass
class Report:
    """A binding against one live host.

    found      the host package's installed version; ``declared`` the binding's range
    problems   of the host as a whole; seats have their own
    """

    binding: str
    contract_digest: str
    host: str
    package: str
    declared: str | None
    found: str | None
    samples: int = 0
    dims: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    seats: list[SeatReport] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems and bool(self.seats) and all(seat.ok for seat in self.seats)

    def seat(self, name: str) -> SeatReport:
        """Raises ``KeyError`` for a name that no seat has."""
        return {seat.name: seat for seat in self.seats}[name]

    def to_json(self) -> dict[str, Any]:
        """JSON-ready, nothing shortened; ``ok`` of the whole and of each seat."""
        data = {"ok": self.ok, **dataclasses.asdict(self)}
        for seat, row in zip(self.seats, data["seats"], strict=True):
            row["ok"] = seat.ok
        return data

    def text(self) -> str:
        """One line a seat, with each problem below it, and a line to close."""
        declared = f" (declared {self.declared})" if self.declared else ""
        lines = [f"{self.binding} on {self.host}, {self.package} {self.found or '?'}{declared}"]
        lines += _told(self.problems, "")
        for seat in self.seats:
            lines.append(seat.line())
            lines += _told(seat.problems, seat.name)
            lines += [f"       note: {note}" for note in seat.notes]
        bad = sum(not seat.ok for seat in self.seats)
        samples = f"over {counted(self.samples, 'sample')}"
        if self.ok:
            lines.append(f"{counted(len(self.seats), 'seat')} verified {samples}")
        else:
            lines.append(
                f"{bad} of {counted(len(self.seats), 'seat')} with problems {samples}"
                + (f"; {counted(len(self.problems), 'problem')} of the host" * bool(self.problems))
            )
        return "\n".join(lines) + "\n"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _told(problems: Sequence[Problem], seat: str) -> list[str]:
    lines = []
    for problem in problems:
        where = ", ".join(part for part in (seat, problem.path) if part)
        lines.append(f"     {where}{': ' if where else ''}{problem.what} [{problem.code}]")
        lines.append(f"       what to do: {problem.fix}")
    return lines


def _slots(slots: Sequence[Slot]) -> str:
    def one(slot: Slot) -> str:
        if slot.shape is None:
            return f"{slot.name} absent" if slot.path else f"{slot.name} made"
        size = "x".join(map(str, slot.shape))
        if slot.layout is None:
            return f"{slot.name} {size}"
        return f"{slot.name} {size} {slot.layout} by {slot.proof or 'nothing'}"

    return f"slots {', '.join(map(one, slots))}" if slots else ""


def _points(points: Sequence[Point]) -> str:
    def one(point: Point) -> str:
        return f"{point.name} hit {' '.join(map(str, point.hits)) or '0'}"

    return f"points {', '.join(map(one, points))}" if points else ""


def plain(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}

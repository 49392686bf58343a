"""Every way that a seat could be written: the numbers of a run decide between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from frtspec.live.scan import called
from frtspec.live.scan.draft import unwritable
from frtspec.live.scan.found import FoundSeat
from frtspec.live.scan.routed import ways
from frtspec.live.scan.seats import around, outer_role, unbounded
from frtspec.live.scan.tree import Tree, joined
from frtspec.live.scan.watch import Watched
from frtspec.runtime.hosts.patterns import Pattern
from frtspec.runtime.spec import Boundary, StructureSpec


def routes(structures: Sequence[StructureSpec]) -> list[tuple[StructureSpec, Pattern]]:
    """Patterns of functions that a host looks up."""
    return [(s, p) for s in structures for p in s.discover if p.route is not None]


@dataclass(frozen=True)
class Ways:
    """``seen``: None where the scan has no run."""

    tree: Tree
    structures: Sequence[StructureSpec]
    seen: Watched | None

    def all(self, seats: Sequence[FoundSeat]) -> list[list[FoundSeat]]:
        """The ways of each seat, and of what only the run shows."""
        return [*(self.of(seat) for seat in seats), *self._routed(), *self._called()]

    def of(self, seat: FoundSeat) -> list[FoundSeat]:
        """A boundary around a seam comes before none."""
        return self._around(seat) if seat.pattern.seam else [seat]

    def _routed(self) -> Iterator[list[FoundSeat]]:
        for path in dict.fromkeys(path for path, _ in (self.seen.routed if self.seen else ())):
            if self.tree.trouble(path) is None and self.seen is not None:
                yield from ways(self.tree, path, self.seen, routes(self.structures))

    def _called(self) -> Iterator[list[FoundSeat]]:
        """Modules that take several values, in every way that a pattern of theirs allows."""
        several = [(s, p) for s in self.structures for p in s.discover if p.needs_run]
        for path in self.seen.calls if self.seen else ():
            if not path or self.seen is None or self.tree.trouble_below(path) is not None:
                continue
            found = [
                seat
                for structure, pattern in several
                for seat in (called.seam_ways if pattern.seam else called.ways)(
                    self.tree, path, self.seen, structure, pattern
                )
                if unwritable(seat) is None
            ]
            if found:
                yield found

    def _around(self, seat: FoundSeat) -> list[FoundSeat]:
        if outer_role(seat.pattern) is None:
            return [unbounded(seat, self.tree, (), "the pattern names nothing around it")]
        if self.seen is None:
            return [
                unbounded(seat, self.tree, self._near(seat), "not proven: scanned without a run")
            ]
        before = self.seen.before.get(seat.path, ())
        enclosing = [p for p in _enclosing(seat.path) if self.seen.calls.get(p)]
        found = around(seat, self.tree, before, enclosing[:1])
        reason = (
            "its input is not the output of a norm around it"
            if not before
            else "no module around it is called, but for the model itself"
            if not enclosing
            else "the norm before it is none that the structure has"
        )
        return [*found, unbounded(seat, self.tree, self._near(seat), reason)]

    def _near(self, seat: FoundSeat) -> list[str]:
        """Norms beside the seat: those called like the role first."""
        role = outer_role(seat.pattern)
        parent = seat.path.rpartition(".")[0]
        module = self.tree.modules.get(parent)
        if role is None or module is None:
            return []
        hints = [name for names in role.called for name in names]
        names = [n for n in module._modules if joined(parent, n) in self.tree.modules]
        ranked = sorted(names, key=lambda n: hints.index(n) if n in hints else len(hints))
        return [
            joined(parent, n)
            for n in ranked
            if (leaf := self.tree.leaf(joined(parent, n))) and leaf.kind == role.kind
        ]


def _enclosing(path: str) -> Iterator[str]:
    """The modules around a module, innermost first; the model itself has no path."""
    while "." in path:
        path = path.rpartition(".")[0]
        yield path


def told(right: Sequence[FoundSeat], first: FoundSeat) -> FoundSeat:
    """The first of the ways that the host agrees with; it says what the run left open: a
    boundary that was tried in vain, variants that compute the same here."""
    seat = right[0]
    why = dict(seat.why)
    for axis, value in seat.variants.items():
        others = {way.variants.get(axis, value) for way in right if _same_place(way, seat)}
        if others - {value}:
            why[axis] = f"{' and '.join(sorted(others))} compute the same in this run"
    none = seat.boundary is not None and seat.boundary.none is not None
    if none and seat is not first:
        reason = f"around it the host computes something else than {seat.structure.key}"
        return replace(seat, why=why, boundary=Boundary(none=reason))
    return replace(seat, why=why)


def _same_place(one: FoundSeat, other: FoundSeat) -> bool:
    return one.pattern is other.pattern and one.boundary == other.boundary

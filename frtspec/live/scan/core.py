"""The scan: candidates by shape, proof by numbers, one run of the host, what is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

from frtspec.live.scan import held, match
from frtspec.live.scan.blocks import Blocks
from frtspec.live.scan.catalog import structures_of
from frtspec.live.scan.coverage import coverage
from frtspec.live.scan.draft import draft, unwritable
from frtspec.live.scan.found import FoundSeat
from frtspec.live.scan.leftover import left_out
from frtspec.live.scan.prove import Proven, Unproven, made_like, prove
from frtspec.live.scan.result import ScanResult
from frtspec.live.scan.routed import lookups
from frtspec.live.scan.seats import module_seat, siblings_seat
from frtspec.live.scan.tree import Tree, Trouble, joined
from frtspec.live.scan.verified import verified
from frtspec.live.scan.watch import Watched, watch
from frtspec.live.scan.ways import Ways, routes, told
from frtspec.runtime.hosts.patterns import Pattern
from frtspec.runtime.spec import StructureSpec

Rejected = dict[str, Trouble]


def scan(
    model: nn.Module,
    forward: Callable[[], Any] | None = None,
    *,
    package: str = "flashrt_gen",
    name: str | None = None,
) -> ScanResult:
    """Where the structures of a generated package sit on a model that nobody bound.

    model    in eval mode; it is read, and run where ``forward`` is given; never changed
    forward  runs the model once, with no arguments. With it every seat is proven by what the
             host computes; without it by a copy of its module on random input, and shared
             inputs are taken from names
    package  the generated package whose structures are looked for
    name     what the binding is called; default: after the model's class

    Whatever ``forward`` raises passes through. Every projection, convolution, norm and
    attention of the model is in a seat or in ``left_out`` with a reason.
    """
    structures = structures_of(package)
    run = _Scan(Tree(model), structures)
    run.modules()
    run.writable()
    if forward is not None:
        run.seen = watch(run.tree, forward, lookups(run.tree, routes(structures)))
        run.slow()
    run.siblings()
    run.leaves()
    run.check_run()
    run.writable()
    run.settle(forward)
    run.outermost()
    if forward is not None:
        run.blocks(forward)
    seats = run.in_order()
    text, families = draft(run.tree, seats, name)
    return ScanResult(
        binding=text,
        families=families,
        seats=tuple(seats),
        left_out=left_out(run.tree, seats, run.rejected, run.seen),
        coverage=coverage(run.tree, seats, run.seen),
        proven=forward is not None,
    )


@dataclass
class _Scan:
    tree: Tree
    structures: list[StructureSpec]
    seen: Watched | None = None
    seats: list[FoundSeat] = field(default_factory=list)
    rejected: Rejected = field(default_factory=dict)
    _proofs: dict[Any, Proven | Unproven] = field(default_factory=dict)

    # ------------------------------------------------------------ modules with things below

    def modules(self) -> None:
        """Regions that one module is: the larger one where one lies in another."""
        for path in self.tree.modules:
            if path and not self._inside(path):
                self._region(path)

    def _inside(self, path: str) -> bool:
        return any(path.startswith(f"{seat.path}.") for seat in self.seats)

    def _region(self, path: str) -> None:
        unproven: Unproven | None = None
        for structure, pattern in self._patterns(lambda r: r.where == "below" and not r.repeated):
            fillings = list(match.candidates(self.tree, path, structure, pattern))
            if not fillings:
                continue
            trouble = self.tree.trouble_below(path)
            if trouble is not None:
                at, why = trouble
                self.rejected[path] = Trouble(
                    why.code, f"{at}: {why.text}" if at != path else why.text
                )
                return
            result = self._proof(path, structure, pattern, fillings)
            if isinstance(result, Proven):
                self.seats.append(module_seat(self.tree, path, structure, pattern, result))
                self.rejected.pop(path, None)
                return
            unproven = _plainer(unproven, result)
        if unproven is not None:
            self.rejected[path] = Trouble(unproven.code, unproven.reason)

    def _patterns(self, wanted: Callable[[Any], bool]) -> Iterator[tuple[StructureSpec, Pattern]]:
        for structure in self.structures:
            for pattern in structure.discover:
                own = [role for role in pattern.roles if role.where != "around"]
                alone = not (pattern.route or pattern.needs_run or pattern.block)
                if alone and any(wanted(role) for role in own):
                    yield structure, pattern

    # ------------------------------------------------------------ what changes slowly

    def slow(self) -> None:
        """Modules that gave the same while the run went on take the place of what they would
        be else; regions that ran ahead of it hold their parts' seats, too."""
        assert self.seen is not None
        updates = [(s, p) for s in self.structures for p in s.discover if p.update]
        again = list(
            held.seats(
                self.tree, self.seen, updates, held.repeated(self.tree, self.seen), held.AGAIN
            )
        )
        paths = {seat.path for seat in again}
        self.seats = [seat for seat in self.seats if seat.path not in paths] + again
        taken = [seat.path for seat in self.seats]
        once = held.ahead(self.tree, self.seen, taken)
        self.seats += held.seats(self.tree, self.seen, updates, once, held.ONCE)

    # ------------------------------------------------------------ projections together

    def siblings(self) -> None:
        """Projections that share an input: as the run showed it, else by their names."""
        for structure, pattern in self._patterns(lambda role: role.repeated):
            for parent, names in self._groups(pattern):
                seat = self._together(parent, names, structure, pattern)
                if seat is not None:
                    self.seats.append(seat)

    def _groups(self, pattern: Pattern) -> Iterator[tuple[str, tuple[str, ...]]]:
        if self.seen is not None:
            for parent, counts in self.seen.groups.items():
                together = [names for names in counts if len(names) > 1]
                named = [name for names in counts for name in names]
                # One way of sharing at every call, else nothing is known of the next.
                if parent in self.tree.modules and len(named) == len(set(named)):
                    yield from ((parent, names) for names in together)
            return
        called = [names for role in pattern.roles for names in role.called]
        for path, module in self.tree.modules.items():
            for names in called:
                if all(name in module._modules for name in names):
                    yield path, tuple(names)
                    break

    def _together(
        self, parent: str, names: Sequence[str], structure: StructureSpec, pattern: Pattern
    ) -> FoundSeat | None:
        paths = [joined(parent, name) for name in names]
        free = [p for p in paths if p in self.tree.modules and not self._taken(p)]
        free = [p for p in free if self.tree.trouble(p) is None]
        widths = {
            leaf.weights[0].shape[-1]
            for p in free
            if (leaf := self.tree.leaf(p)) and leaf.weights and leaf.weights[0] is not None
        }
        if len(free) < 2 or len(free) > 8 or len(widths) != 1:
            return None
        seat = siblings_seat(
            self.tree, parent, [p.rpartition(".")[2] for p in free], structure, pattern
        )
        if seat is None:
            for path in free:
                self.rejected.setdefault(
                    path,
                    Trouble("biases", "of the projections with its input only some have a bias"),
                )
        return seat

    def _taken(self, path: str) -> bool:
        return any(
            path == module or (path.startswith(f"{module}.") and not seat.pattern.update)
            for seat in self.seats
            for module in seat.modules()
        )

    # ------------------------------------------------------------ single modules

    def leaves(self) -> None:
        """Projections and norms that stand alone."""
        alone = [p for p in self.tree.modules if p and self.tree.leaf(p) is not None]
        for path in [path for path in alone if not self._taken(path)]:
            self._leaf(path)

    def _leaf(self, path: str) -> None:
        for structure, pattern in self._patterns(lambda role: role.where == "at"):
            fillings = list(match.candidates(self.tree, path, structure, pattern))
            if not fillings:
                continue
            trouble = self.tree.trouble(path)
            if trouble is not None:
                self.rejected[path] = trouble
                return
            result = self._proof(path, structure, pattern, fillings)
            if isinstance(result, Proven):
                self.seats.append(module_seat(self.tree, path, structure, pattern, result))
                return
            self.rejected.setdefault(path, Trouble(result.code, result.reason))

    def _proof(
        self, path: str, structure: StructureSpec, pattern: Pattern, fillings: list[match.Filled]
    ) -> Proven | Unproven:
        """A proof holds for every module of the same make: layers are proven once."""
        key = (id(pattern), made_like(self.tree.modules[path]))
        known = self._proofs.get(key)
        if known is None:
            known = prove(self.tree, path, structure, pattern, fillings)
            self._proofs[key] = known
        if isinstance(known, Unproven):
            return known
        filled = fillings[known.number]
        return replace(known, filled=filled, dims={**known.dims, **filled.dims})

    # ------------------------------------------------------------ what the run showed

    def check_run(self) -> None:
        """Drops seats whose module never ran, or whose weights others read."""
        if self.seen is None:
            return
        kept = []
        for seat in self.seats:
            trouble = _in_run(seat, self.tree, self.seen)
            if trouble is None:
                kept.append(seat)
            else:
                for path in seat.modules():
                    self.rejected[path] = trouble
        self.seats = kept

    def writable(self) -> None:
        """Drops seats of which a path can't be written; their parts may still be seats."""
        for seat in list(self.seats):
            path = unwritable(seat)
            if path is not None:
                self.seats.remove(seat)
                what = f"`{path}` is no path of the language: one starts with a letter"
                for module in seat.modules():
                    self.rejected[module] = Trouble("no_path", what)

    def settle(self, forward: Callable[[], Any] | None) -> None:
        """Of the ways each seat could be written, the first that the host agrees with: a
        boundary around a seam before none. Without a run, the first."""
        options = Ways(self.tree, self.structures, self.seen).all(self.seats)
        if forward is None:
            self.seats = [tried[0] for tried in options]
            return
        problems = verified(self.tree.model, options, forward)
        self.seats = []
        for tried, found in zip(options, problems, strict=True):
            right = [way for way, problem in zip(tried, found, strict=True) if problem is None]
            if right:
                self.seats.append(told(right, tried[0]))
                continue
            if tried[0].pattern.needs_run:
                continue  # its parts are seats of their own
            for path in tried[-1].modules():
                self.rejected.setdefault(path, Trouble("disagrees", found[-1] or ""))

    def outermost(self) -> None:
        """Drops seats inside a module that another seat stands for."""
        whole = [s.path for s in self.seats if s.pattern.needs_run]
        self.seats = [
            seat
            for seat in self.seats
            if not any(module.startswith(f"{path}.") for path in whole for module in seat.modules())
        ]

    def blocks(self, forward: Callable[[], Any]) -> None:
        """Seats on whole blocks, beside those on what they are made of."""
        assert self.seen is not None
        found = Blocks(self.tree, self.structures, self.seen, self.rejected).all(forward)
        found = [seat for seat in found if self._path_written(seat)]
        ways = [[seat] for seat in found]
        problems = verified(self.tree.model, ways, forward) if found else []
        for seat, problem in zip(found, problems, strict=True):
            if problem[0] is None:
                self.seats.append(seat)
            else:
                self.rejected[seat.path] = Trouble("disagrees", problem[0])

    def _path_written(self, seat: FoundSeat) -> bool:
        path = unwritable(seat)
        if path is not None:
            what = f"`{path}` is no path of the language: one starts with a letter"
            self.rejected[seat.path] = Trouble("no_path", what)
        return path is None

    def in_order(self) -> list[FoundSeat]:
        """Seats in the order of the model."""
        order = {path: k for k, path in enumerate(self.tree.modules)}
        return sorted(self.seats, key=lambda seat: order[seat.modules()[0]])


def _plainer(before: Unproven | None, now: Unproven) -> Unproven:
    """Of two reasons the one that says more."""
    ranks = ("no_pattern", "opaque", "activation", "disagrees")
    if before is None or ranks.index(now.code) > ranks.index(before.code):
        return now
    return before


def _in_run(seat: FoundSeat, tree: Tree, seen: Watched) -> Trouble | None:
    for path in seat.modules():
        below = [p for p in tree.modules if p == path or p.startswith(f"{path}.")]
        used = next((p for p in below if p in seen.functional), None)
        if not seen.calls.get(path):
            if used:
                return Trouble(
                    "functional",
                    f"its forward is never called; {used} is read by {seen.functional[used]}",
                )
            return Trouble("uncalled", "its forward was never called in the run")
        if used:
            return Trouble(
                "functional", f"the weight of {used} is also read by {seen.functional[used]}"
            )
        if seen.returns.get(path) != "tensor":
            return Trouble(
                "returns", f"it returns a {seen.returns.get(path)}, and a seat returns a tensor"
            )
    return None

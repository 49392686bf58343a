"""Seats on functions that a host looks up when it runs: attention, rotary embedding.

No module stands for what they compute, so only a run shows it: which functions each module
calls, with what sizes. Every choice of variants is a way to write the seat; the numbers of
the run decide between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import nn

from frtspec.dims import DimError, solve
from frtspec.live.scan.found import FoundSeat
from frtspec.live.scan.seats import held_by
from frtspec.live.scan.tree import Leaf, Tree, joined
from frtspec.live.scan.watch import Shape, Watched
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts import places, routes
from frtspec.runtime.hosts.patterns import Pattern, RoleAt
from frtspec.runtime.seats.calls import Signature
from frtspec.runtime.spec import (
    Boundary,
    InputOf,
    OutputOf,
    Place,
    Routed,
    RoutedInput,
    RoutedOutput,
    StructureSpec,
    Weight,
)

Patterns = Sequence[tuple[StructureSpec, Pattern]]


def lookups(tree: Tree, patterns: Patterns) -> list[tuple[str, Routed]]:
    """(module, function that it looks up) for every function of the patterns."""
    wanted = {p.route.name: p.route for _, p in patterns if p.route is not None}
    found = []
    answers: dict[tuple[type, type, str], bool] = {}
    for path, module in tree.modules.items():
        for route in wanted.values():
            key = (type(module), type(getattr(module, "processor", None)), route.name)
            if key not in answers:
                answers[key] = _looks_up(module, route)
            if answers[key]:
                found.append((path, route))
    return found


def _looks_up(module: nn.Module, route: Routed) -> bool:
    try:
        routes.check(module, route)
    except (Refusal, TypeError, ValueError):
        return False
    return True


def ways(tree: Tree, path: str, seen: Watched, patterns: Patterns) -> Iterator[list[FoundSeat]]:
    """For each structure that can sit on a function of the module at ``path``, every way to
    write its seat."""
    by_structure: dict[str, list[FoundSeat]] = {}
    for structure, pattern in patterns:
        if pattern.route is None or (path, pattern.route.name) not in seen.routed:
            continue
        made = _Maker(tree, path, seen, structure, pattern).seats()
        by_structure.setdefault(structure.name, []).extend(made)
    yield from (found for found in by_structure.values() if found)


@dataclass
class _Maker:
    tree: Tree
    path: str
    seen: Watched
    structure: StructureSpec
    pattern: Pattern

    def seats(self) -> list[FoundSeat]:
        leaves = self.leaves()
        if leaves is None:
            return []
        ports = {name: self.place(at, leaves) for name, at in self.pattern.ports.items()}
        points = {name: self.place(at, leaves) for name, at in self.pattern.points.items()}
        if None in ports.values() or None in points.values():
            return []
        there = {name: at for name, at in ports.items() if at is not None}
        slots = self.slots(leaves)
        dims = self.dims(there, slots)
        if slots is None or dims is None:
            return []
        return [
            FoundSeat(
                structure=self.structure,
                pattern=self.pattern,
                path=self.path,
                variants=variants,
                params=params,
                dims=dims,
                slots=slots,
                points={name: at for name, at in points.items() if at is not None},
                claims=frozenset(),
                boundary=Boundary(
                    path=self.path,
                    inputs={n: at for n, at in there.items() if n in self.structure.inputs},
                    outputs={n: at for n, at in there.items() if n in self.structure.outputs},
                ),
                proof="the run",
            )
            for variants in self.variants(leaves)
            for params in self.params(leaves)
        ]

    def leaves(self) -> dict[str, Leaf] | None:
        """The pattern's roles among the module's children, by the names they have; None
        where one is missing."""
        found: dict[str, Leaf] = {}
        module = self.tree.modules[self.path]
        for role in self.pattern.roles:
            names = [n for several in role.called for n in several if n in module._modules]
            leaf = self.tree.leaf(joined(self.path, names[0])) if names else None
            if leaf is None or leaf.kind != role.kind:
                return None
            found[role.name] = leaf
        return found

    def place(self, at: RoleAt, leaves: Mapping[str, Leaf]) -> Place | None:
        route = self.pattern.route
        assert route is not None
        if at.routed and at.kind == "output":
            return RoutedOutput(route.name, at.item, at.layout)
        if at.routed:
            return RoutedInput(route.name, at.arg or "", at.item, at.layout)
        where = self.path if at.role is None else leaves[at.role].path
        if at.kind == "output":
            return OutputOf(where, at.item, at.layout)
        if at.arg is None:
            return InputOf(where, None, at.item, at.layout)
        known = (*Signature.of(self.tree.modules[where]).names, *self.seen.arguments.get(where, ()))
        names = [n for n in (*self.pattern.called.get(at.arg, ()), at.arg) if n in known]
        return InputOf(where, names[0], at.item, at.layout) if names else None

    def slots(self, leaves: Mapping[str, Leaf]) -> dict[str, Weight] | None:
        found: dict[str, Weight] = {}
        for role in self.pattern.roles:
            held = held_by(role, leaves[role.name])
            if held is None:
                return None
            found |= held
        return found

    def dims(
        self, ports: Mapping[str, Place], slots: Mapping[str, Weight] | None
    ) -> dict[str, int] | None:
        """The sizes that the pattern names, as the run showed them."""
        shapes, sizes = {}, {}
        for name, at in ports.items():
            shape = self.seen.shape(self.path, at)
            laid = None if shape is None else _laid_out(shape, at.layout, self.structure, name)
            if laid is not None:
                shapes[name], sizes[name] = self.structure.shapes[name], laid
        for slot, weight in (slots or {}).items():
            assert weight.path is not None
            shapes[slot] = self.structure.shapes[slot]
            sizes[slot] = tuple(self.tree.model.get_parameter(weight.path).shape)
        try:
            values = solve(shapes, sizes).values
        except DimError:
            return None
        return {dim: values[dim] for dim in self.pattern.dims if dim in values}

    def params(self, leaves: Mapping[str, Leaf]) -> Iterator[dict[str, float]]:
        """Numbers that a role gives; any other as the structure has it, or as one that the
        seat's module holds."""
        given = {**self.structure.params, **_given(self.pattern, leaves)}
        told = {role.gives for role in self.pattern.roles}
        free = [name for name in self.structure.params if name not in told]
        held = [v for v in vars(self.tree.modules[self.path]).values() if type(v) is float]
        options = [tuple(dict.fromkeys((given[name], *held))) for name in free]
        for values in product(*options):
            yield {**given, **dict(zip(free, values, strict=True))}

    def variants(self, leaves: Mapping[str, Leaf]) -> Iterator[dict[str, str]]:
        told: dict[str, str] = dict(self.pattern.variants)
        for role in self.pattern.roles:
            for axis, facts in role.tells.items():
                for fact in sorted(leaves[role.name].facts):
                    if fact in facts:
                        told[axis] = facts[fact]
        axes = {
            axis: (told[axis],) if axis in told else values
            for axis, values in self.structure.variants.items()
        }
        for values in product(*axes.values()):
            chosen = dict(zip(axes, values, strict=True))
            if self.pattern.excluded is None or not self.pattern.excluded(chosen):
                yield chosen


def _given(pattern: Pattern, leaves: Mapping[str, Leaf]) -> dict[str, float]:
    return {
        role.gives: number
        for role in pattern.roles
        if role.gives is not None and (number := leaves[role.name].number) is not None
    }


def _laid_out(
    shape: Shape, layout: str | None, structure: StructureSpec, port: str
) -> Shape | None:
    """A shape of the host as the structure has it; None where that takes sizes not known."""
    try:
        value = torch.empty(shape, device="meta")
        return tuple(places.laid_out(value, layout, structure.shapes[port], {}).shape)
    except (DimError, RuntimeError, IndexError):
        return None

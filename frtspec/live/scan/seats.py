"""Proven fillings as seats: slots, points, facts to expect, what tells each variant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from torch import Tensor

from frtspec.dims import solve
from frtspec.live.scan.found import FoundSeat
from frtspec.live.scan.prove import Proven, numbers
from frtspec.live.scan.tree import Leaf, Tree, joined
from frtspec.runtime.hosts.patterns import Pattern, Role, RoleAt
from frtspec.runtime.spec import (
    Boundary,
    Expect,
    InputOf,
    OutputOf,
    Place,
    StructureSpec,
    Weight,
)

_EXPECTABLE = ("silu", "gelu_tanh", "gelu_erf", "relu")


def module_seat(
    tree: Tree, path: str, structure: StructureSpec, pattern: Pattern, proven: Proven
) -> FoundSeat:
    """A seat on one module, without what lies around it."""
    leaves = proven.filled.leaves
    inner = {r.name: leaves[r.name] for r in pattern.roles if r.name in leaves}
    points = {name: place(at, path, inner) for name, at in pattern.points.items()}
    boundary = None
    if pattern.ports and not pattern.around:
        boundary = ports_at(structure, pattern, path, inner)
    return FoundSeat(
        structure=structure,
        pattern=pattern,
        path=path,
        variants={**pattern.variants, **proven.variants},
        params={**structure.params, **numbers(pattern, leaves)},
        dims=proven.dims,
        slots=proven.filled.slots,
        points=points,
        claims=frozenset(w.path for w in proven.filled.slots.values() if w.path),
        boundary=boundary,
        expects=expects(tree, path, pattern, inner),
        proof=f"a copy with random weights: relative distance {proven.distance:.0e}",
        why=why(pattern, leaves, proven.variants, path),
    )


def expects(
    tree: Tree, path: str, pattern: Pattern, leaves: Mapping[str, Leaf]
) -> tuple[Expect, ...]:
    rows = [Expect("class", (type(tree.modules[path]).__name__,))]
    bare = [
        leaf.path
        for role in pattern.roles
        if (leaf := leaves.get(role.name)) is not None
        and role.kind == "linear"
        and leaf.weights[1] is None
    ]
    if bare and bare != [path]:
        rows.append(Expect("bias", ("none",), tuple(bare)))
    for leaf in leaves.values():
        named = [fact for fact in leaf.facts if fact in _EXPECTABLE]
        if leaf.kind == "activation" and named:
            rows.append(Expect("activation", (named[0],), (leaf.path,)))
    return (*rows, Expect("returns", ("tensor",)))


def why(
    pattern: Pattern, leaves: Mapping[str, Leaf], variants: Mapping[str, str], path: str
) -> dict[str, str]:
    found: dict[str, str] = {}
    for role in pattern.roles:
        leaf = leaves.get(role.name)
        if leaf is None:
            continue
        for axis, facts in role.tells.items():
            told = next((f for f in sorted(leaf.facts) if f in facts), None)
            if axis in variants and told is not None:
                found[axis] = f"as {leaf.relative(path)} computes it"
    return found


def place(at: RoleAt, path: str, leaves: Mapping[str, Leaf]) -> Place:
    where = path if at.role is None or at.role not in leaves else leaves[at.role].path
    return OutputOf(where) if at.kind == "output" else InputOf(where, at.arg)


def ports_at(
    structure: StructureSpec, pattern: Pattern, path: str, leaves: Mapping[str, Leaf]
) -> Boundary:
    rows = {name: place(at, path, leaves) for name, at in pattern.ports.items()}
    return Boundary(
        path=path,
        inputs={name: at for name, at in rows.items() if name in structure.inputs},
        outputs={name: at for name, at in rows.items() if name in structure.outputs},
    )


# ---------------------------------------------------------------- siblings


def siblings_seat(
    tree: Tree, parent: str, names: Sequence[str], structure: StructureSpec, pattern: Pattern
) -> FoundSeat | None:
    """Projections of one parent as one seat; None where they can't be one (biases differ)."""
    role = pattern.roles[0]
    leaves = [tree.leaf(joined(parent, name)) for name in names]
    if any(leaf is None or leaf.kind != role.kind for leaf in leaves):
        return None
    held = [leaf for leaf in leaves if leaf is not None]
    slots: dict[str, tuple[Weight, ...]] = {}
    for place_, holding in enumerate(role.holds):
        weights = [leaf.weights[place_] for leaf in held]
        if all(weight is None for weight in weights):
            continue
        if any(weight is None for weight in weights):
            return None
        slots[holding.slots[0]] = tuple(
            Weight(joined(leaf.path, leaf.names[place_]), "out_in" if _matrix(weight) else None)
            for leaf, weight in zip(held, weights, strict=True)
        )
    variants = _presence(structure, role, slots)
    if variants is None:
        return None
    members = tuple(leaf.path for leaf in held)
    return FoundSeat(
        structure=structure,
        pattern=pattern,
        path=parent,
        variants=variants,
        params=dict(structure.params),
        dims=_sibling_dims(structure, slots, held),
        slots=slots,
        points={name: InputOf(members[0]) for name in pattern.points},
        claims=frozenset(w.path for row in slots.values() for w in row if w.path),
        members=members,
    )


def _matrix(weight: Tensor | None) -> bool:
    return weight is not None and weight.dim() > 1


def _presence(structure: StructureSpec, role: Role, slots: Iterable[str]) -> dict[str, str] | None:
    """The first choice of variants in which exactly these slots exist."""
    axes = list(structure.variants)
    there = set(slots)

    def choose(chosen: dict[str, str], rest: list[str]) -> dict[str, str] | None:
        if rest:
            tries = ({**chosen, rest[0]: v} for v in structure.variants[rest[0]])
            return next((found for t in tries if (found := choose(t, rest[1:]))), None)
        fits = all(
            (holding.slots[0] in there) == holding.exists(chosen) or holding.when is None
            for holding in role.holds
        )
        return chosen if fits else None

    return choose({}, axes)


def _sibling_dims(
    structure: StructureSpec, slots: Mapping[str, tuple[Weight, ...]], leaves: Sequence[Leaf]
) -> dict[str, int]:
    first = next(iter(slots))
    sizes = [
        tuple(reversed(leaf.weights[0].shape)) for leaf in leaves if leaf.weights[0] is not None
    ]
    solution = solve({first: structure.shapes[first]}, {first: sizes})
    return dict(solution.values)


# ---------------------------------------------------------------- around a seam


def around(
    seat: FoundSeat, tree: Tree, before: Sequence[str], enclosing: Sequence[str]
) -> list[FoundSeat]:
    """The seat with each boundary that could lie around it, the likeliest first.

    before     norms whose output is the seat's input
    enclosing  the modules around the seat that are called, innermost first
    """
    out: list[FoundSeat] = []
    for outer in enclosing:
        for norm in before:
            if norm.startswith(f"{outer}." if outer else ""):
                told = with_norm(seat, tree, norm)
                if told is not None:
                    out.append(_bounded(told, tree, norm, outer))
    return out


def with_norm(seat: FoundSeat, tree: Tree, norm: str) -> FoundSeat | None:
    """The seat with what a norm around it tells: variants and params outside the seam."""
    role = outer_role(seat.pattern)
    leaf = tree.leaf(norm)
    if role is None or leaf is None or leaf.kind != role.kind:
        return None
    variants, why = dict(seat.variants), dict(seat.why)
    for axis, facts in role.tells.items():
        told = next((fact for fact in sorted(leaf.facts) if fact in facts), None)
        if told is None:
            return None
        variants[axis] = facts[told]
        why[axis] = f"as {norm.rpartition('.')[2]} computes it"
    present = _presence_around(seat.structure, role, leaf, variants)
    if present is None:
        return None
    params = dict(seat.params)
    if role.gives is not None and leaf.number is not None:
        params[role.gives] = leaf.number
    return replace(seat, variants={**present, **variants}, params=params, why=why)


def _presence_around(
    structure: StructureSpec, role: Role, leaf: Leaf, variants: Mapping[str, str]
) -> dict[str, str] | None:
    """Variants not chosen yet, so that exactly those slots exist that the norm has."""
    slots = {
        holding.slots[0]
        for holding, weight in zip(role.holds, leaf.weights, strict=False)
        if weight is not None
    }

    def fits(chosen: Mapping[str, str]) -> bool:
        return all(
            (h.slots[0] in slots) == h.exists(chosen) or (h.optional and h.exists(chosen))
            for h in role.holds
        )

    open_axes = [axis for axis in structure.variants if axis not in variants]
    chosen: dict[str, str] = dict(variants)

    def choose(rest: list[str]) -> bool:
        if not rest:
            return fits(chosen)
        for value in structure.variants[rest[0]]:
            chosen[rest[0]] = value
            if choose(rest[1:]):
                return True
        del chosen[rest[0]]
        return False

    return dict(chosen) if choose(open_axes) else None


def outer_role(pattern: Pattern) -> Role | None:
    return next((role for role in pattern.roles if role.where == "around"), None)


def held_by(role: Role, leaf: Leaf) -> dict[str, Weight] | None:
    """The slots of a role as its leaf holds them; None where one has no weight."""
    found: dict[str, Weight] = {}
    for holding, weight, name in zip(role.holds, leaf.weights, leaf.names, strict=False):
        if weight is None:
            return None
        found[holding.slots[0]] = Weight(joined(leaf.path, name))
    return found


def _bounded(seat: FoundSeat, tree: Tree, norm: str, outer: str) -> FoundSeat:
    role = outer_role(seat.pattern)
    leaf = tree.leaf(norm)
    assert role is not None and leaf is not None
    slots = {
        holding.slots[0]: Weight(joined(norm, name))
        for holding, weight, name in zip(role.holds, leaf.weights, leaf.names, strict=False)
        if weight is not None
    }
    boundary = ports_at(seat.structure, seat.pattern, outer, {role.name: leaf})
    return replace(seat, boundary=replace(boundary, slots=slots))


def unbounded(seat: FoundSeat, tree: Tree, nearby: Sequence[str], reason: str) -> FoundSeat:
    """The seat without a boundary; variants outside the seam as a nearby norm tells them,
    else the first value, which the seam does not read."""
    for norm in nearby:
        told = with_norm(seat, tree, norm)
        if told is not None:
            return replace(told, boundary=Boundary(none=reason))
    variants, why = dict(seat.variants), dict(seat.why)
    for axis, values in seat.structure.variants.items():
        if axis not in variants:
            variants[axis] = seat.pattern.variants.get(axis, values[0])
            if axis not in seat.pattern.variants:
                why[axis] = "not told: the seam does not read it"
    return replace(seat, variants=variants, why=why, boundary=Boundary(none=reason))

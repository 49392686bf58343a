"""Which of a module's things can be which role: by kind, count and sizes alone.

Every parameter below a candidate has to have a role: a module that holds more than the
pattern (an adapter, a scale) is something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations, product
from math import prod

from torch import Tensor

from frtspec.dims import DimError, solve
from frtspec.live.scan.tree import Leaf, Tree, joined
from frtspec.runtime.hosts.patterns import Held, Pattern, Role
from frtspec.runtime.spec import StructureSpec, Weight

MOST_PARAMETERS = 8
MOST_MODULES = 16
"""A candidate with more below it is no region of one structure."""


@dataclass(frozen=True)
class Filled:
    """Roles filled with leaves: ``slots`` as a binding has them with their in_out ``sizes``,
    ``dims`` that follow."""

    leaves: Mapping[str, Leaf]
    slots: Mapping[str, Weight]
    dims: Mapping[str, int]
    sizes: Mapping[str, tuple[int, ...]]


def candidates(
    tree: Tree, path: str, structure: StructureSpec, pattern: Pattern
) -> Iterator[Filled]:
    """Every way to fill the pattern's roles at and below the module at ``path``.

    Only sizes are looked at here; gate and up, or two square matrices, can change places.
    """
    own = [role for role in pattern.roles if role.where != "around"]
    if any(role.repeated for role in own):
        return
    if any(role.where == "at" for role in own):
        yield from _at(tree, path, structure, own)
        return
    leaves = below(tree, path)
    if leaves is None:
        return
    kinds: dict[str, list[Role]] = {}
    for role in own:
        kinds.setdefault(role.kind, []).append(role)
    by_kind: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        by_kind.setdefault(leaf.kind, []).append(leaf)
    if {k for k in by_kind if k != "activation"} != {k for k in kinds if k != "activation"}:
        return
    choices = [_choices(roles, by_kind.get(kind, [])) for kind, roles in kinds.items()]
    for chosen in product(*choices):
        filled = {name: leaf for part in chosen for name, leaf in part.items()}
        yield from solved(structure, own, filled)


def _at(tree: Tree, path: str, structure: StructureSpec, own: list[Role]) -> Iterator[Filled]:
    leaf = tree.leaf(path)
    if leaf is not None and len(own) == 1 and leaf.kind == own[0].kind:
        yield from solved(structure, own, {own[0].name: leaf})


def below(tree: Tree, path: str) -> list[Leaf] | None:
    """What a module is made of, each of a known kind; None where something is not, or
    where there is too much or nothing."""
    module = tree.modules[path]
    held = tree.parameters_below(path)
    if not 0 < len(held) <= MOST_PARAMETERS:
        return None
    inner = [joined(path, name) for name, _ in module.named_modules() if name]
    if len(inner) > MOST_MODULES:
        return None
    found: list[Leaf] = []
    seen: set[str] = set()
    for at in inner:
        first = tree.shared.get(at, at)
        leaf = tree.leaf(first)
        if leaf is not None:
            found.append(leaf)
            seen |= {
                joined(at, n)
                for n, w in zip(leaf.names, leaf.weights, strict=True)
                if w is not None
            }
    for at in (path, *inner):
        if at in tree.modules:
            found += [_function(tree, name, value) for name, value in tree.functions(at)]
    found += [
        Leaf(name, "parameter", value, (value,), ("",))
        for name, value in held.items()
        if name not in seen
    ]
    return found


def _function(tree: Tree, path: str, value: object) -> Leaf:
    assert callable(value)
    name = tree.activation(value)
    return Leaf(path, "activation", value, (), (), frozenset({name} if name else ()))


def _choices(roles: list[Role], leaves: list[Leaf]) -> list[dict[str, Leaf]]:
    """Ways to give the roles of one kind a leaf each. All leaves with weights are used;
    of several activations each is tried, and none where there is none."""
    if roles[0].kind == "activation":
        leaves = [leaf for leaf in leaves if "identity" not in leaf.facts]
        if not leaves:
            return [{}]  # it is written inline: numbers have to tell it
    elif len(leaves) != len(roles):
        return []
    return [
        {role.name: leaf for role, leaf in zip(roles, chosen, strict=True)}
        for chosen in permutations(leaves, len(roles))
    ]


def solved(
    structure: StructureSpec, roles: list[Role], leaves: dict[str, Leaf]
) -> Iterator[Filled]:
    """The slots and dims of one filling, for each layout that the sizes allow."""
    options: list[list[dict[str, tuple[Weight, tuple[int, ...]]]]] = []
    for role in roles:
        if role.name not in leaves:
            continue
        for held, weight, name in _weights(role, leaves[role.name]):
            if weight is None:
                if not (held.optional or held.when is not None):
                    return
                continue
            options.append(list(_layouts(role, leaves[role.name], held, weight, name)))
    if not options:
        return  # nothing has a size
    for chosen in product(*options):
        parts = {slot: pair for part in chosen for slot, pair in part.items()}
        shapes = {slot: structure.shapes[slot] for slot in parts}
        try:
            solution = solve(shapes, {slot: size for slot, (_, size) in parts.items()})
        except DimError:
            continue
        wanted = {s for shape in shapes.values() for axis in shape for s in axis.symbols()}
        dims = {name: value for name, value in solution.values.items() if name in wanted}
        slots = {slot: weight for slot, (weight, _) in parts.items()}
        yield Filled(leaves, slots, dims, {slot: size for slot, (_, size) in parts.items()})


def _weights(role: Role, leaf: Leaf) -> list[tuple[Held, Tensor | None, str]]:
    rows = []
    for place, name in enumerate(leaf.names):
        weight = leaf.weights[place]
        if place < len(role.holds):
            rows.append((role.holds[place], weight, name))
        elif weight is not None:
            # A parameter that the role has no slot for: no filling.
            rows.append((Held(()), None, name))
    return rows


def _layouts(
    role: Role, leaf: Leaf, held: Held, weight: Tensor, name: str
) -> Iterator[dict[str, tuple[Weight, tuple[int, ...]]]]:
    """Ways that a parameter can hold its slots: layout, and the order of chunks."""
    shape = tuple(weight.shape)
    path = joined(leaf.path, name)
    if leaf.kind == "conv" and len(shape) > 1:
        rows = (shape[0], prod(shape[1:]))
        yield {held.slots[0]: (Weight(path, "out_in", "flat"), _in_out(rows, "out_in"))}
        return
    layouts: tuple[str | None, ...] = (None,)
    if len(shape) > 1:
        layouts = ("out_in",) if role.kind != "parameter" else ("out_in", "in_out")
    for layout in layouts:
        if len(held.slots) == 1:
            yield {held.slots[0]: (Weight(path, layout), _in_out(shape, layout))}
            continue
        if shape[0] % len(held.slots):
            continue
        part = (shape[0] // len(held.slots), *shape[1:])
        for order in permutations(held.slots):
            names = tuple(_short(slot) for slot in order)
            yield {
                slot: (
                    Weight(path, layout, "chunks", (_short(slot), *names)),
                    _in_out(part, layout),
                )
                for slot in held.slots
            }


def _short(slot: str) -> str:
    """What a chunk is called: ``gate`` of ``w_gate``."""
    return slot.partition("_")[2] or slot


def _in_out(shape: tuple[int, ...], layout: str | None) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if layout == "out_in" else shape

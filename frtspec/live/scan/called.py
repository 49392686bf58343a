"""Seats on modules that are called with more than one value, such as adaptive norms.

A copy on random input would need to know what each argument is. A run shows it: every way to
fill the pattern is written down, and the numbers of the run decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations, product

from frtspec.dims import DimError, Shape, solve
from frtspec.live.scan import match
from frtspec.live.scan.found import FoundSeat
from frtspec.live.scan.match import Filled
from frtspec.live.scan.prove import Twin, choices, computes, numbers
from frtspec.live.scan.seats import expects, place, ports_at, why
from frtspec.live.scan.tree import Tree
from frtspec.live.scan.watch import Watched
from frtspec.runtime.hosts.patterns import Pattern, RoleAt
from frtspec.runtime.seats.calls import Signature
from frtspec.runtime.spec import Boundary, Expect, InputOf, OutputOf, Place, StructureSpec, Weight

PARTS = (1, 2)
"""A projection for two norms holds both their styles; the first half is the one of the norm."""


def ways(
    tree: Tree, path: str, seen: Watched, structure: StructureSpec, pattern: Pattern
) -> Iterator[FoundSeat]:
    """Every way to write a seat of the pattern on the module at ``path``."""
    for filled in match.candidates(tree, path, structure, pattern):
        ports = {n: _place(tree, path, at, pattern, seen) for n, at in pattern.ports.items()}
        shapes = {n: seen.shape(path, at) for n, at in ports.items() if at is not None}
        there = {n: at for n, at in ports.items() if at is not None and shapes[n] is not None}
        required = [n for n in pattern.ports if n not in structure.optional or n in ("x", "y")]
        if not set(required) <= there.keys():
            continue
        fitted = _fitted(structure, filled, {"x": shapes["x"] or ()})
        points = {n: _place(tree, path, at, pattern, seen) for n, at in pattern.points.items()}
        if fitted is None or None in points.values():
            continue
        slots, dims = fitted
        leaves = filled.leaves
        facts = tuple(e for e in expects(tree, path, pattern, leaves) if e.fact != "returns")
        for variants in choices(structure, pattern, filled):
            yield FoundSeat(
                structure=structure,
                pattern=pattern,
                path=path,
                variants={**pattern.variants, **variants},
                params={**structure.params, **numbers(pattern, leaves)},
                dims=dims,
                slots=slots,
                points={n: at for n, at in points.items() if at is not None},
                claims=frozenset(w.path for w in slots.values() if w.path),
                boundary=Boundary(
                    path=path,
                    inputs={n: at for n, at in there.items() if n in structure.inputs},
                    outputs={n: at for n, at in there.items() if n in structure.outputs},
                ),
                expects=(*facts, Expect("returns", (seen.returns[path],))),
                proof="the run",
                why=why(pattern, leaves, variants, path),
            )


def _place(tree: Tree, path: str, at: RoleAt, pattern: Pattern, seen: Watched) -> Place | None:
    """A place at the module itself; an argument by the first of its names that it has."""
    if at.kind == "output":
        return OutputOf(path, at.item, at.layout)
    if at.arg is None:
        return InputOf(path, None, at.item, at.layout)
    known = (*Signature.of(tree.modules[path]).names, *seen.arguments.get(path, ()))
    names = [n for n in (*pattern.called.get(at.arg, ()), at.arg) if n in known]
    return InputOf(path, names[0], at.item, at.layout) if names else None


def _fitted(
    structure: StructureSpec, filled: Filled, given: Mapping[str, tuple[int, ...]]
) -> tuple[dict[str, Weight], dict[str, int]] | None:
    """The slots and dims that fit the width of the input: of the whole parameters, or of
    their first halves."""
    sizes = dict(filled.sizes)
    for parts in PARTS:
        slots = dict(filled.slots)
        if parts > 1:
            slots = {s: replace(w, view="part", args=(0, parts)) for s, w in slots.items()}
        actual = {s: (*size[:-1], size[-1] // parts) for s, size in sizes.items()}
        try:
            found = solve(
                {name: structure.shapes[name] for name in (*actual, *given)}, {**actual, **given}
            )
        except DimError:
            continue
        free = {symbol for axis in structure.shapes["x"] if axis.rows for symbol in axis.symbols()}
        return slots, {dim: v for dim, v in found.values.items() if dim not in free}
    return None


# ---------------------------------------------------------------- seams of several values


def seam_ways(
    tree: Tree, path: str, seen: Watched, structure: StructureSpec, pattern: Pattern
) -> Iterator[FoundSeat]:
    """Every way to write a seat of a seam whose module takes several values, such as experts
    behind their router. The module around it is the boundary: a copy of that one tells the
    variants outside the seam."""
    outer = path.rpartition(".")[0]
    if not seen.calls.get(outer) or seen.returns.get(path) != "tensor":
        return
    for filled in match.candidates(tree, path, structure, pattern):
        for dims in _open_dims(path, seen, pattern, filled):
            for slots in _around(tree, path, outer, structure, pattern, dims):
                yield from _seam_seats(tree, path, outer, structure, pattern, filled, dims, slots)


def _open_dims(
    path: str, seen: Watched, pattern: Pattern, filled: Filled
) -> Iterator[dict[str, int]]:
    """The dims of a filling with those that only an argument shows: its last axis."""
    others = list(seen.arguments.get(path, {}).values())[1:]
    sizes = sorted({shape[-1] for shape in others if isinstance(shape, tuple) and shape})
    for values in product(sizes, repeat=len(pattern.dims)):
        yield {**filled.dims, **dict(zip(pattern.dims, values, strict=True))}


def _around(
    tree: Tree,
    path: str,
    outer: str,
    structure: StructureSpec,
    pattern: Pattern,
    dims: Mapping[str, int],
) -> Iterator[dict[str, Weight]]:
    """The slots outside the seam, among the parameters beside the seat: by their sizes."""
    beside = {
        name: value
        for name, value in tree.parameters_below(outer).items()
        if not name.startswith(f"{path}.")
    }
    slots = [r.holds[0].slots[0] for r in pattern.roles if r.where == "around" and r.holds]
    for names in permutations(beside, len(slots)):
        options = []
        for slot, name in zip(slots, names, strict=True):
            shape = tuple(beside[name].shape)
            laid = {"out_in": shape[::-1], "in_out": shape} if len(shape) == 2 else {None: shape}
            wanted = structure.shapes[slot]
            options.append(
                [
                    (slot, Weight(name, lay))
                    for lay, size in laid.items()
                    if _fits(wanted, size, dims)
                ]
            )
        yield from (dict(chosen) for chosen in product(*options))


def _fits(wanted: Shape, size: tuple[int, ...], dims: Mapping[str, int]) -> bool:
    try:
        return dict(solve({"w": wanted}, {"w": size}, dims).values) == dict(dims)
    except DimError:
        return False


def _seam_seats(
    tree: Tree,
    path: str,
    outer: str,
    structure: StructureSpec,
    pattern: Pattern,
    filled: Filled,
    dims: Mapping[str, int],
    slots: Mapping[str, Weight],
) -> Iterator[FoundSeat]:
    ports = ports_at(structure, pattern, outer, filled.leaves)
    twin = Twin.of(tree.modules[outer])
    for inner in choices(structure, pattern, filled):
        open_axes = {a: v for a, v in structure.variants.items() if a not in inner}
        for values in product(*open_axes.values()):
            chosen = {**dict(zip(open_axes, values, strict=True)), **pattern.variants, **inner}
            whole = {**filled.slots, **slots}
            if twin is None or not computes(twin, outer, structure, whole, chosen, dims):
                continue
            yield FoundSeat(
                structure=structure,
                pattern=pattern,
                path=path,
                variants=chosen,
                params=dict(structure.params),
                dims=dims,
                slots=filled.slots,
                points={n: place(at, path, filled.leaves) for n, at in pattern.points.items()},
                claims=frozenset(w.path for w in filled.slots.values() if w.path),
                boundary=replace(ports, slots=dict(slots)),
                expects=expects(tree, path, pattern, filled.leaves),
                proof="the run",
                why=why(pattern, filled.leaves, chosen, path),
            )

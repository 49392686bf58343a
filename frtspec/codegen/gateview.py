"""What the gate template needs: sizes that fit, and the cases over variants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from frtspec.codegen import condsrc, dimsrc
from frtspec.codegen.homes import Homes
from frtspec.codegen.names import free, structure_module
from frtspec.codegen.pysrc import imports, pyrepr
from frtspec.codegen.structview import boundary_bounds
from frtspec.codegen.unsupported import Unsupported
from frtspec.dims import DimError, Shape, instance
from frtspec.ir.decl import Impl, Port, Slot, Structure
from frtspec.sema.combos import may_be_absent, optional_items

_WIDTHS = ((64, 96, 48, 80, 32, 112, 16, 128), (160, 96, 128, 64, 48, 32, 16, 8, 4, 2))
_ROWS = (5, 33)
_TRIES = 20_000


@dataclass(frozen=True)
class GateView:
    """``sizes``: one mapping of dims a row; ``loop``: the lines that list the cases."""

    name: str
    version: int
    module: str
    bounds: str
    imports: tuple[str, ...]
    sizes: tuple[str, ...]
    axes: tuple[str, ...]
    loop: tuple[str, ...]
    impls: tuple[str, ...]
    params: tuple[str, ...]
    uses_product: bool


def gate_view(structure: Structure, impls: Sequence[Impl], homes: Homes) -> GateView:
    """The view of a structure's gate harness. Raises ``Unsupported`` when no sizes fit."""
    lines = ["from frtspec.runtime import Bound, BoundImpl, harness"]
    lines.append(f"from {homes.path(structure)} import SPEC")
    lines += [f"from {homes.path(impl)} import {homes.impl_class(impl)}" for impl in impls]
    axes = tuple(variant.name for variant in structure.variants)
    return GateView(
        name=structure.name,
        version=structure.version,
        module=f"{homes.package}.gates.{structure_module(structure)}",
        bounds=boundary_bounds(structure),
        imports=imports(lines),
        sizes=tuple(pyrepr(sizes) for sizes in fitting_sizes(structure)),
        axes=tuple(free(axis) for axis in axes),
        loop=tuple(_loop(structure)),
        impls=tuple(homes.impl_class(impl) for impl in impls),
        params=tuple(param.name for param in structure.params if param.default is None),
        uses_product=bool(axes),
    )


# ---------------------------------------------------------------- cases


def _loop(structure: Structure) -> list[str]:
    """The lines that add the cases of one combination of variants to ``found``."""
    names = {variant.name: free(variant.name) for variant in structure.variants}
    lines: list[str] = []
    if structure.variants:
        local = ", ".join(names.values())
        target = f"({local},)" if len(names) == 1 else local
        lines.append(f"for {target} in product(*SPEC.variants.values()):")
    body = [f"if {condsrc.condition(cond, names)}:\n    continue" for cond in structure.excluded]
    pad = "    " if structure.variants else ""
    body += ["needed: list[str] = []", "free: list[str] = []"] if optional_items(structure) else []
    groups: dict[tuple[str, str], list[str]] = {}
    for item in optional_items(structure):
        kind = "free" if may_be_absent(structure, item) else "needed"
        cond = "" if item.when is None else condsrc.condition(item.when, names).text
        groups.setdefault((kind, cond), []).append(item.name)
    for (kind, cond), given in groups.items():
        add = f"{kind} += {pyrepr(given)}"
        body.append(f"if {cond}:\n    {add}" if cond else add)
    variants = "{" + ", ".join(f"{pyrepr(axis)}: {name}" for axis, name in names.items()) + "}"
    choices = "harness.subsets(needed, free)" if optional_items(structure) else "[()]"
    body.append(f"variants = {variants}" if names else "variants: dict[str, str] = {}")
    body.append(f"for given in {choices}:")
    body.append("    found += [harness.Case(variants, given, sizes) for sizes in SIZES]")
    lines += [pad + line for text in body for line in text.split("\n")]
    return lines


# ---------------------------------------------------------------- sizes


def fitting_sizes(structure: Structure) -> list[dict[str, int]]:
    """Two choices of sizes that satisfy every shape and every ``require``.

    Different dims get different sizes wherever the rules allow it, so that a swapped
    axis shows. Raises ``Unsupported`` when no small sizes fit.
    """
    return [_fit(structure, widths, rows) for widths, rows in zip(_WIDTHS, _ROWS, strict=True)]


def _fit(structure: Structure, widths: Sequence[int], rows: int) -> dict[str, int]:
    shapes = list(_instances(structure))
    every = dimsrc.symbols(shapes, structure.requires)
    symbols = [symbol for symbol in every if not symbol.startswith("sum(")]
    folded = {s for shape in shapes for axis in shape if axis.rows for s in axis.symbols()}
    for candidate in islice(_candidates(symbols, folded, widths, rows), _TRIES):
        if _fits(structure, shapes, candidate):
            return candidate
    raise Unsupported(
        f"gate cases for {structure.name}, whose sizes are hard to satisfy,", structure.origin.span
    )


def _instances(structure: Structure) -> Iterator[Shape]:
    """Every shape; a repeated value's for each position of a middling count."""
    counts = {index.name: min(max(3, index.lo), index.hi) for index in structure.indexes}
    values: list[Port | Slot] = [*structure.inputs, *structure.slots, *structure.outputs]
    for value in values:
        if value.shape is None:
            continue
        if value.index is None:
            yield value.shape
        else:
            yield from (instance(value.shape, k) for k in range(counts[value.index]))


def _candidates(
    symbols: Sequence[str], folded: set[str], widths: Sequence[int], rows: int
) -> Iterator[dict[str, int]]:
    """Assignments in a fixed order: all different first, then with repeats."""

    def choose(position: int, chosen: dict[str, int], distinct: bool) -> Iterator[dict[str, int]]:
        if position == len(symbols):
            yield dict(chosen)
            return
        symbol = symbols[position]
        options = (rows,) if symbol in folded else widths
        for size in options:
            if distinct and symbol not in folded and size in chosen.values():
                continue
            yield from choose(position + 1, {**chosen, symbol: size}, distinct)

    yield from choose(0, {}, True)
    yield from choose(0, {}, False)


def _fits(structure: Structure, shapes: Sequence[Shape], sizes: Mapping[str, int]) -> bool:
    try:
        axes = [option.value(sizes) for shape in shapes for a in shape for option in a.alternatives]
        return min(axes, default=1) > 0 and all(rule.check(sizes) for rule in structure.requires)
    except DimError:
        return False

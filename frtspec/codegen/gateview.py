"""What the gate template needs: sizes that fit, and the cases over variants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frtspec.codegen import condsrc
from frtspec.codegen.casesizes import fitting_sizes
from frtspec.codegen.homes import Homes
from frtspec.codegen.names import free, structure_module
from frtspec.codegen.pysrc import imports, pyrepr
from frtspec.codegen.structview import boundary_bounds
from frtspec.codegen.unsupported import Unsupported
from frtspec.ir.decl import Impl, Inner, Structure
from frtspec.sema.combos import Combo, may_be_absent, optional_items
from frtspec.sema.composition import settled


@dataclass(frozen=True)
class GateView:
    """``sizes``: one mapping of dims a row; ``loop``: the lines that list the cases;
    ``inner``: how the structures in slots are set, one choice each."""

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
    inner: tuple[tuple[str, ...], ...]


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
        inner=tuple(_inner_cases(structure)),
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


def _inner_cases(structure: Structure) -> list[tuple[str, ...]]:
    """Two settings of the inner structures: the first values of what their pins leave, with
    every optional weight, and the last values, with none."""
    inner = [(slot.name, slot.inner) for slot in structure.slots if slot.inner is not None]
    if not inner:
        return []
    return [
        tuple(f"{pyrepr(name)}: {_inner_case(what, last)}" for name, what in inner)
        for last in (False, True)
    ]


def _inner_case(inner: Inner, last: bool) -> str:
    if any(slot.inner is not None for slot in inner.slots):
        span = inner.whole.origin.span
        raise Unsupported(f"a case of `{inner.name}`, made of structures itself", span)
    choices = list(settled(inner))
    variants = choices[-1 if last else 0]
    combo = Combo(tuple(variants.items()), frozenset(port.name for port in inner.inputs))
    given = tuple(
        slot.name
        for slot in inner.slots
        if combo.holds(slot.when) and not (last and may_be_absent(inner.whole, slot))
    )
    return f"harness.InnerCase({pyrepr(variants)}, {pyrepr(given)})"

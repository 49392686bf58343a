"""Combinations of variants and of what is given: what each structure is checked in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import prod

from frtspec.ir.decl import Port, Slot, Structure
from frtspec.ir.expr import AllOf, AnyOf, AxisIs, Cond, IsPresent, Not
from frtspec.ir.walk import tests

MOST = 2048
"""A structure with more combinations has to exclude some."""


@dataclass(frozen=True)
class Combo:
    """One value per variant axis, and which optional inputs and slots are given."""

    variants: tuple[tuple[str, str], ...]
    present: frozenset[str]

    def holds(self, cond: Cond | None) -> bool:
        """Whether a condition is true here (None always is)."""
        match cond:
            case None:
                return True
            case AxisIs(axis=axis, values=values):
                return dict(self.variants).get(axis) in values
            case IsPresent(name=name):
                return name in self.present
            case Not(cond=inner):
                return not self.holds(inner)
            case AllOf(conds=conds):
                return all(self.holds(c) for c in conds)
            case AnyOf(conds=conds):
                return any(self.holds(c) for c in conds)

    def exists(self, item: Port | Slot) -> bool:
        """Whether a port or slot exists in this combination (given or not)."""
        return self.holds(item.when)

    def text(self) -> str:
        """``activation is gelu, with cond_scale``."""
        axes = [f"{axis} is {value}" for axis, value in self.variants]
        given = [f"with {', '.join(sorted(self.present))}"] if self.present else []
        return ", ".join(axes + given)


def optional_items(structure: Structure) -> list[Port | Slot]:
    """Inputs and slots that are not there in every call: ``x?``, or with a ``when``."""
    items: list[Port | Slot] = [*structure.inputs, *structure.slots]
    return [item for item in items if item.optional or item.when is not None]


def asked_for(structure: Structure) -> set[str]:
    """Names that the reference asks about with ``present``."""
    return {t.name for t in tests(structure.reference) if isinstance(t, IsPresent)}


def may_be_absent(structure: Structure, item: Port | Slot) -> bool:
    """Whether an item may be missing where its ``when`` holds.

    An optional item with a ``when`` that nothing asks about and that has no default is
    given exactly where its ``when`` holds.
    """
    if not item.optional:
        return False
    default = item.default if isinstance(item, Port) else None
    return item.when is None or default is not None or item.name in asked_for(structure)


def count(structure: Structure) -> int:
    """How many combinations there are at most, before exclusions."""
    free = [i for i in optional_items(structure) if may_be_absent(structure, i)]
    return prod(len(v.values) for v in structure.variants) * (1 << len(free))


def combos(structure: Structure) -> tuple[Combo, ...]:
    """Every combination that exists, in the order of declaration; the first ``MOST``."""
    return tuple(combo for combo, _ in zip(_all(structure), range(MOST), strict=False))


def _all(structure: Structure) -> Iterator[Combo]:
    items = optional_items(structure)
    axes = [[(v.name, value) for value in v.values] for v in structure.variants]
    free_names = {i.name for i in items if may_be_absent(structure, i)}
    for values in product(*axes):
        plain = Combo(values, frozenset())
        there = [item for item in items if plain.exists(item)]
        sure = {item.name for item in there if item.name not in free_names}
        free = [item.name for item in there if item.name in free_names]
        subsets = chain.from_iterable(combinations(free, k) for k in range(len(free) + 1))
        for subset in subsets:
            combo = Combo(values, frozenset(sure | set(subset)))
            if not any(combo.holds(cond) for cond in structure.excluded):
                yield combo

"""What a seat's variants leave possible: which slots, points and ports exist on it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from frtspec.ir.decl import Point, Port, Slot, Structure
from frtspec.ir.expr import AxisIs, Cond, IsPresent
from frtspec.ir.walk import conditions
from frtspec.sema.combos import Combo, may_be_absent
from frtspec.syntax import ast


@dataclass(frozen=True)
class Settings:
    """``values``: variant axis -> the values it may take on this seat; an axis that the
    seat failed to set is missing, and nothing is said about what depends on it.
    ``imported``: the seat may leave out what its source does not say."""

    structure: Structure
    values: Mapping[str, tuple[str, ...]]
    imported: bool = False

    def may_hold(self, cond: Cond | None, absent: Collection[str] = ()) -> bool:
        """Whether a condition is true for some of the values, and some things given; those
        in ``absent`` are not."""
        tests = list(conditions(cond))
        axes = sorted({t.axis for t in tests if isinstance(t, AxisIs)})
        names = sorted({t.name for t in tests if isinstance(t, IsPresent)})
        choices = [[(axis, value) for value in self.values.get(axis, ())] for axis in axes]
        given = [[(name, yes) for yes in (True, False)[name in absent :]] for name in names]
        for values in product(*choices):
            for present in product(*given):
                there = frozenset(name for name, yes in present if yes)
                if Combo(values, there).holds(cond):
                    return True
        return False

    def open(self, item: Slot | Port | Point) -> bool:
        """Whether it is not known if an item exists."""
        tests = conditions(item.when)
        return any(isinstance(t, AxisIs) and t.axis not in self.values for t in tests)

    def ruled_out(self, item: Slot | Port | Point) -> bool:
        """Whether an item cannot be there on this seat."""
        return not self.open(item) and not self.may_hold(item.when)

    def needed(self, item: Slot | Port | Point, absent: Collection[str] = ()) -> bool:
        """Whether the seat has to say where an item is, which it has not for what goes with
        something ``absent``."""
        if self.imported or self.open(item) or not self.may_hold(item.when, absent):
            return False
        return isinstance(item, Point) or not may_be_absent(self.structure, item)


def settings(
    structure: Structure, nodes: Iterable[ast.VariantSet], imported: bool = False
) -> Settings:
    """What the ``variant`` lines of a seat leave possible."""
    axes = {v.name: v.values for v in structure.variants}
    values: dict[str, tuple[str, ...]] = {
        v.name: (v.default,) for v in structure.variants if v.default is not None
    }
    for node in nodes:
        chosen = tuple(dict.fromkeys(_named(node.value)))
        if chosen and all(name in axes.get(node.axis.id, ()) for name in chosen):
            values[node.axis.id] = chosen
        else:
            values.pop(node.axis.id, None)
    return Settings(structure, values, imported)


def _named(value: ast.Expr) -> list[str]:
    """Values that an expression can choose."""
    match value:
        case ast.Name(id="refuse"):
            return []
        case ast.Name(id=name):
            return [name]
        case ast.Match(arms=arms):
            return [name for arm in arms for name in _named(arm.value)]
        case _:
            return []

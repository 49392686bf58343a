"""What a reference checks before it computes: variants, counts, what goes with what."""

from __future__ import annotations

from collections.abc import Sequence

from frtspec.codegen import condsrc
from frtspec.codegen.pysrc import call, indented, pyrepr
from frtspec.ir.decl import IndexVar, Port, Slot, Structure
from frtspec.ir.expr import Cond


def contract(structure: Structure) -> list[str]:
    """The checks of a whole reference, in the order of its arguments."""
    lines = known_variants(structure, [variant.name for variant in structure.variants])
    for index in structure.indexes:
        lines += _count(structure, index)
    for cond in structure.excluded:
        text = f"no form exists where {condsrc.spoken(cond)}"
        lines += _refusal(cond, f"raise ValueError({pyrepr(text)})")
    return lines + _absences(structure)


def known_variants(structure: Structure, axes: Sequence[str]) -> list[str]:
    """Every axis has a value that the structure knows."""
    if not axes:
        return []
    given = {name: name for name in axes}
    return [call("ops.check_variants", pyrepr(structure.name), "VARIANTS", **given).text]


def _values(structure: Structure) -> list[Port | Slot]:
    return [*structure.inputs, *structure.slots]


def _count(structure: Structure, index: IndexVar) -> list[str]:
    """A repeated value has as many entries as its index allows."""
    names = [value.name for value in _values(structure) if value.index == index.name]
    if not names:
        return []
    text = f"{structure.name} takes {index.lo} to {index.hi} of {names[0]}, found "
    return [
        f"if not {index.lo} <= len({names[0]}) <= {index.hi}:",
        f'    raise ValueError(f"{text}{{len({names[0]})}}")',
    ]


def _absences(structure: Structure) -> list[str]:
    """What exists only under some condition is refused elsewhere."""
    groups: dict[str, list[str]] = {}
    conditions: dict[str, Cond] = {}
    for value in _values(structure):
        if value.when is not None:
            because = condsrc.spoken(value.when)
            groups.setdefault(because, []).append(value.name)
            conditions[because] = value.when
    lines = []
    for because, names in groups.items():
        given = {name: name for name in names}
        check = call("ops.check_absent", pyrepr(structure.name), pyrepr(because), **given)
        lines += _refusal(condsrc.negated(conditions[because]), check.text)
    return lines


def _refusal(cond: Cond, line: str) -> list[str]:
    return [f"if {condsrc.condition(cond, {})}:", *indented([line])]

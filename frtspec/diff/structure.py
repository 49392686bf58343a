"""Facts about two versions of a structure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import partial
from typing import Any

from frtspec.diff import gates, points, sizes
from frtspec.diff.facts import Found, by_field, named, same
from frtspec.diff.flow import Shared, shared
from frtspec.diff.rename import renamed, renaming
from frtspec.dims import shape_text
from frtspec.ir.decl import Structure

OTHER = "contract.changed"
FLOW = frozenset({"reference", "points", "seams"})


def compare(old: Structure, new: Structure, found: Found) -> None:
    """Every fact between two structures, of one version or of two."""
    names = renaming(old, new)
    for before, after in names.items():
        found.add("dim.renamed", f"dim {after}", f"dim `{before}` is called `{after}`", old, new)
    old = renamed(old, names) if names else old
    both = shared(old, new)
    by_field(
        old,
        new,
        found,
        {
            "dims": _dims,
            "indexed_dims": _dims,
            "indexes": _indexes,
            "params": params,
            "inputs": partial(_ports, both),
            "outputs": partial(_outputs, both),
            "slots": partial(_slots, both),
            "parts": _parts,
            "variants": _variants,
            "excluded": _excluded,
            "rules": lambda old, new, found: sizes.rules(old.rules, new.rules, found),
            "gates": lambda old, new, found: gates.compare(old.gates, new.gates, found),
        },
        OTHER,
        FLOW,
    )
    if not all(same(getattr(old, name), getattr(new, name)) for name in FLOW):
        points.compare(old, new, both, found)


# ---------------------------------------------------------------- sizes and numbers


def _dims(old: Structure, new: Structure, found: Found) -> None:
    mine = {*old.dims, *(f"{n}[{i}]" for n, i in old.indexed_dims)}
    theirs = {*new.dims, *(f"{n}[{i}]" for n, i in new.indexed_dims)}
    for name in sorted(theirs - mine):
        _once(found, "dim.declared", f"dim {name}", f"dim `{name}` is new", old, new)
    for name in sorted(mine - theirs):
        _once(found, "dim.removed", f"dim {name}", f"dim `{name}` is gone", old, new)


def _once(found: Found, rule: str, item: str, detail: str, old: Any, new: Any) -> None:
    if not any(fact.rule == rule and fact.item == item for fact in found.facts):
        found.add(rule, item, detail, old, new)


def _indexes(old: Structure, new: Structure, found: Found) -> None:
    mine, theirs = named(old.indexes), named(new.indexes)
    for name in dict.fromkeys((*mine, *theirs)):
        a, b = mine.get(name), theirs.get(name)
        if a is None or b is None:
            told = f"index `{name}` is {'new' if a is None else 'gone'}"
            found.add("index.changed", f"index {name}", told, a, b)
        elif (a.lo, a.hi) != (b.lo, b.hi):
            told = f"`{a.lo}..={a.hi}` became `{b.lo}..={b.hi}`"
            wider = b.lo <= a.lo and b.hi >= a.hi
            narrower = b.lo >= a.lo and b.hi <= a.hi
            rule = "dim.loosened" if wider else "dim.tightened" if narrower else "dim.changed"
            found.add(rule, f"index {name}", told, a, b)


def params(old: Any, new: Any, found: Found) -> None:
    """Numbers that a seat or a scheme sets."""
    mine, theirs = named(old.params), named(new.params)
    for name in dict.fromkeys((*mine, *theirs)):
        a, b = mine.get(name), theirs.get(name)
        if a is None and b is not None:
            rule = "param.added.required" if b.default is None else "param.added.optional"
            found.add(rule, f"param {name}", f"param `{name}` is new", None, b)
        elif a is not None and b is None:
            found.add("param.removed", f"param {name}", f"param `{name}` is gone", a, None)
        elif a is not None and b is not None and not same(a, b):
            told = f"`{_number(a.default)}` became `{_number(b.default)}`"
            if a.default == b.default:
                told = "what it may be set to is not what it was"
            found.add("param.changed", f"param {name}", told, a, b)


def _number(value: Any) -> str:
    return "no default" if value is None else str(value)


# ---------------------------------------------------------------- ports and slots


def _ports(both: Shared, old: Structure, new: Structure, found: Found) -> None:
    mine, theirs = named(old.inputs), named(new.inputs)
    for name, port in theirs.items():
        if name not in mine:
            free = port.optional or both.cond(port.when) is False
            rule = "port.added.optional" if free else "port.added.required"
            found.add(rule, f"input {name}", f"input `{name}` is new", None, port)
    for name, port in mine.items():
        if name not in theirs:
            found.add("port.removed", f"input {name}", f"input `{name}` is gone", port, None)
    _kept(both, mine, theirs, "input", "port", found)
    order = [name for name in mine if name in theirs], [name for name in theirs if name in mine]
    if order[0] != order[1]:
        told = f"({', '.join(order[0])}) became ({', '.join(order[1])})"
        found.add("port.reordered", "inputs", told, old, new)


def _outputs(both: Shared, old: Structure, new: Structure, found: Found) -> None:
    mine, theirs = named(old.outputs), named(new.outputs)
    for name, port in theirs.items():
        if name not in mine:
            found.add("port.out.added", f"output {name}", f"output `{name}` is new", None, port)
    for name, port in mine.items():
        if name not in theirs:
            found.add("port.out.removed", f"output {name}", f"output `{name}` is gone", port, None)
    _kept(both, mine, theirs, "output", "port", found)
    order = [name for name in mine if name in theirs], [name for name in theirs if name in mine]
    if order[0] != order[1]:
        told = f"({', '.join(order[0])}) became ({', '.join(order[1])})"
        found.add("port.out.reordered", "outputs", told, old, new)


def _slots(both: Shared, old: Structure, new: Structure, found: Found) -> None:
    mine, theirs = named(old.slots), named(new.slots)
    for name, slot in theirs.items():
        if name not in mine:
            free = slot.optional or both.cond(slot.when) is False
            rule = "slot.added.optional" if free else "slot.added.required"
            found.add(rule, f"slot {name}", f"slot `{name}` is new", None, slot, _like(slot, mine))
    for name, slot in mine.items():
        if name not in theirs:
            found.add("slot.removed", f"slot {name}", f"slot `{name}` is gone", slot, None)
    _kept(both, mine, theirs, "slot", "slot", found)


def _like(slot: Any, gone: dict[str, Any]) -> str | None:
    near = [n for n, other in gone.items() if other.shape and same(other.shape, slot.shape)]
    return f"`{near[0]}` has the same shape" if len(near) == 1 and slot.shape else None


def _kept(
    both: Shared, mine: dict[str, Any], theirs: dict[str, Any], word: str, rule: str, found: Found
) -> None:
    """What differs between two ports or slots of one name."""
    for name, b in theirs.items():
        a = mine.get(name)
        if a is None or same(a, b):
            continue
        before, item = len(found.facts), f"{word} {name}"
        if a.optional != b.optional:
            told = f"`{name}` {'became optional' if b.optional else 'has to be given now'}"
            found.add(f"{rule}.{'optional' if b.optional else 'required'}", item, told, a, b)
        if not same(a.shape, b.shape) or a.dtype != b.dtype or a.index != b.index:
            found.add(f"{rule}.dims", item, f"`{_type(a)}` became `{_type(b)}`", a, b)
        if not same(getattr(a, "inner", None), getattr(b, "inner", None)):
            found.add("slot.inner", item, f"`{_inner(a)}` became `{_inner(b)}`", a, b)
        if both.cond(a.when) != both.cond(b.when):
            found.add(f"{rule}.when", item, f"`{name}` is there under other conditions", a, b)
        fields = {f.name for f in dataclasses.fields(a)}
        for what in ("scale", "default", "updates", "aliases"):
            if what in fields and getattr(a, what) != getattr(b, what):
                told = f"{what}: `{getattr(a, what)}` became `{getattr(b, what)}`"
                found.add("port.changed", item, told, a, b)
        if len(found.facts) == before:
            told = f"`{name}` differs only where the older side can't be asked"
            found.add(f"{rule}.when.added", item, told, a, b)


def _type(item: Any) -> str:
    shape = shape_text(item.shape) if item.shape is not None else "a structure"
    index = f"[{item.index}] " if item.index else ""
    return f"{index}{shape} : {item.dtype or 'host'}"


def _inner(slot: Any) -> str:
    if slot.inner is None:
        return "a weight"
    seam = f".{slot.inner.seam}" if slot.inner.seam else ""
    return f"{slot.inner.name}{seam} version {slot.inner.version} ({slot.inner.digest[:12]})"


def _parts(old: Structure, new: Structure, found: Found) -> None:
    mine, theirs = named(old.parts), named(new.parts)
    for name in dict.fromkeys((*mine, *theirs)):
        a, b = mine.get(name), theirs.get(name)
        if not same(a, b):
            word = "new" if a is None else "gone" if b is None else "called otherwise"
            found.add("part.changed", f"part {name}", f"part `{name}` is {word}", a, b)


# ---------------------------------------------------------------- variants


def _variants(old: Structure, new: Structure, found: Found) -> None:
    mine, theirs = named(old.variants), named(new.variants)
    for name, axis in theirs.items():
        item = f"variant {name}"
        if name in mine:
            _values(mine[name], axis, found)
        elif axis.default is None:
            told = f"axis `{name}` is new and has no default"
            found.add("variant.axis.added.required", item, told, None, axis)
        else:
            told = f"axis `{name}` is new; `{axis.default}` where a seat says nothing"
            found.add("variant.axis.added.default", item, told, None, axis)
    for name, axis in mine.items():
        if name not in theirs:
            told = f"axis `{name}` is gone"
            found.add("variant.axis.removed", f"variant {name}", told, axis, None)


def _values(old: Any, new: Any, found: Found) -> None:
    for value in _without(new.values, old.values):
        told = f"`{value}` is new"
        found.add("variant.value.added", f"variant {new.name} {value}", told, old, new)
    for value in _without(old.values, new.values):
        kept = value in new.retired
        rule = "variant.value.retired" if kept else "variant.value.removed"
        told = f"`{value}` is {'retired' if kept else 'gone'}"
        found.add(rule, f"variant {new.name} {value}", told, old, new)
    for value in _without(old.retired, (*new.retired, *new.values)):
        told = f"the retired name `{value}` is free again"
        found.add("variant.value.freed", f"variant {new.name} {value}", told, old, new)
    for value in _without(new.retired, (*old.retired, *old.values)):
        told = f"the name `{value}` is taken"
        found.add("variant.value.reserved", f"variant {new.name} {value}", told, old, new)
    if old.default != new.default:
        told = f"the default `{old.default}` became `{new.default}`"
        rule = "variant.default.added" if old.default is None else "variant.default.changed"
        found.add(rule, f"variant {new.name}", told, old, new)


def _without(items: Iterable[str], others: Iterable[str]) -> list[str]:
    taken = set(others)
    return [item for item in items if item not in taken]


def _excluded(old: Structure, new: Structure, found: Found) -> None:
    gone = [c for c in old.excluded if not any(same(c, o) for o in new.excluded)]
    come = [c for c in new.excluded if not any(same(c, o) for o in old.excluded)]
    if come:
        told = "combinations that existed exist no more"
        found.add("variant.combinations.narrowed", "combinations", told, old, new)
    if gone:
        told = "combinations exist that did not"
        found.add("variant.combinations.widened", "combinations", told, old, new)

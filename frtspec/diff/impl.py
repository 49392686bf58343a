"""Facts about two versions of an impl: its numbers, and the ladder that serves it."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

from frtspec.diff import gates, sizes
from frtspec.diff.facts import Found, by_field, named, same
from frtspec.diff.structure import OTHER, params
from frtspec.ir.decl import Impl, Rung


def compare(old: Impl, new: Impl, found: Found) -> None:
    """Every fact between two impls of one structure."""
    by_field(
        old,
        new,
        found,
        {
            "params": params,
            "packs": partial(_numbers, "packs", "pack"),
            "scales": partial(_numbers, "scales", "scale"),
            "numerics": _numerics,
            "wire": _numerics,
            "admits": partial(_served, "admits", "impl.admits"),
            "only": partial(_served, "only", "impl.only"),
            "needs": _needs,
            "gates": lambda old, new, found: gates.compare(old.gates, new.gates, found),
            "rungs": _rungs,
            "bands": _bands,
        },
        OTHER,
    )


def _numbers(field: str, word: str, old: Impl, new: Impl, found: Found) -> None:
    mine, theirs = named(getattr(old, field)), named(getattr(new, field))
    for name in dict.fromkeys((*mine, *theirs)):
        a, b = mine.get(name), theirs.get(name)
        if not same(a, b):
            told = "is new" if a is None else "is gone" if b is None else "is made otherwise"
            found.add("impl.numerics", f"{word} {name}", f"{word} `{name}` {told}", a, b)


def _numerics(old: Impl, new: Impl, found: Found) -> None:
    if any(fact.item == "numerics" for fact in found.facts):
        return
    told = "what it accumulates in, stores or hands on is not what it was"
    found.add("impl.numerics", "numerics", told, old, new)


def _served(field: str, rule: str, old: Impl, new: Impl, found: Found) -> None:
    """Dtypes admitted, or values served, by name; a name that is not listed is free."""
    mine, theirs = dict(getattr(old, field)), dict(getattr(new, field))
    for name in dict.fromkeys((*mine, *theirs)):
        a, b = mine.get(name), theirs.get(name)
        if a is not None and (b is None or set(a) < set(b)):
            found.add(f"{rule}.widened", f"{field} {name}", _sets(a, b), old, new)
        elif a is None or b is None or set(a) != set(b):
            found.add(f"{rule}.narrowed", f"{field} {name}", _sets(a, b), old, new)


def _sets(a: Any, b: Any) -> str:
    shown = ["anything" if s is None else f"({', '.join(s)})" for s in (a, b)]
    return f"{shown[0]} became {shown[1]}"


def _needs(old: Impl, new: Impl, found: Found) -> None:
    sizes.compare(
        [("needs", None, need.rule, old) for need in old.needs],
        [("needs", None, need.rule, new) for need in new.needs],
        found,
    )


# ---------------------------------------------------------------- the ladder


def rung_key(rung: Rung) -> str:
    """What tells a rung from the others of its ladder: its kind and package."""
    return rung.kind if rung.package is None else f'{rung.kind} "{rung.package}"'


def _rungs(old: Impl, new: Impl, found: Found) -> None:
    ladder(old.rungs, new.rungs, "", (old, new), found)


def _bands(old: Impl, new: Impl, found: Found) -> None:
    mine = {f"{b.dim} from {b.lo}": b for b in old.bands}
    theirs = {f"{b.dim} from {b.lo}": b for b in new.bands}
    for name in dict.fromkeys((*mine, *theirs)):
        a, b = mine.get(name), theirs.get(name)
        if a is None or b is None or (a.hi, a.otherwise_host) != (b.hi, b.otherwise_host):
            word = "new" if a is None else "gone" if b is None else "cut otherwise"
            found.add("band.changed", f"band {name}", f"the band of {name} is {word}", a, b)
        if a is not None and b is not None:
            ladder(a.rungs, b.rungs, f"band {name} ", (a, b), found)


def ladder(
    old: tuple[Rung, ...], new: tuple[Rung, ...], at: str, places: tuple[Any, Any], found: Found
) -> None:
    """Facts about an ordered ladder. ``emulate`` runs only when it is asked for by name, so
    nothing stands behind it."""
    mine, theirs = _keyed(old), _keyed(new)
    real = [key for key in theirs if theirs[key].kind != "emulate"]
    last = max((real.index(key) for key in real if key in mine), default=-1)
    for key, rung in theirs.items():
        if key in mine:
            _rung(mine[key], rung, f"{at}rung {key}", found)
            continue
        tail = rung.kind == "emulate" or real.index(key) > last
        rule = "ladder.rung.added.tail" if tail else "ladder.rung.added.top"
        told = f"rung {key} is new, {'behind' if tail else 'before'} those there were"
        found.add(rule, f"{at}rung {key}", told, places[0], rung)
    for key, rung in mine.items():
        if key not in theirs:
            told = f"rung {key} is gone"
            found.add("ladder.rung.removed", f"{at}rung {key}", told, rung, places[1])
    order = [k for k in mine if k in theirs], [k for k in theirs if k in mine]
    if order[0] != order[1]:
        told = f"({', '.join(order[0])}) became ({', '.join(order[1])})"
        found.add("ladder.rung.reordered", f"{at}rungs", told, *places)


def _keyed(rungs: tuple[Rung, ...]) -> dict[str, Rung]:
    """The n-th rung of one package is told by its number among these."""
    out: dict[str, Rung] = {}
    for rung in rungs:
        key, number = rung_key(rung), 2
        while key in out:
            key, number = f"{rung_key(rung)} ({number})", number + 1
        out[key] = rung
    return out


def _rung(a: Rung, b: Rung, item: str, found: Found) -> None:
    if same(a, b):
        return
    before = len(found.facts)
    if a.version != b.version:
        told = f"{item} went from version {a.version} to {b.version}"
        found.add("hub.revision", item, told, a, b)
    if not same(a.envelope, b.envelope):
        sizes.compare(
            [(f"{item} envelope", None, rule, a) for rule in a.envelope],
            [(f"{item} envelope", None, rule, b) for rule in b.envelope],
            found,
        )
        found.facts[before:] = [_of_envelope(fact) for fact in found.facts[before:]]
    rest = dataclasses.replace(a, version=b.version, envelope=b.envelope)
    if not same(rest, b) or len(found.facts) == before:
        found.add("ladder.rung.changed", item, f"{item} is called otherwise", a, b)


def _of_envelope(fact: Any) -> Any:
    """Sizes that a kernel takes are no contract: whoever lies outside falls to the next rung."""
    if not fact.rule.startswith("dim."):
        return fact
    return dataclasses.replace(fact, rule="ladder.rung.envelope")

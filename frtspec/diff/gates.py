"""Facts about gates: what is promised, and how strictly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from frtspec.diff.facts import Found, same
from frtspec.ir.decl import MetricBound


def compare(old: Iterable[Any], new: Iterable[Any], found: Found) -> None:
    """``old`` and ``new``: gates of structures, impls or pipelines, one of each kind."""
    mine, theirs = {g.kind: g for g in old}, {g.kind: g for g in new}
    for kind in dict.fromkeys((*mine, *theirs)):
        a, b, item = mine.get(kind), theirs.get(kind), f"gate {kind}"
        if a is None:
            found.add("gate.added", item, f"the {kind} gate is new", None, b)
        elif b is None:
            found.add("gate.removed", item, f"the {kind} gate is gone", a, None)
        elif not same(a, b):
            before = len(found.facts)
            metrics(a.metrics, b.metrics, item, (a, b), found)
            _against(a, b, item, found)
            for field in ("on", "per", "including"):
                if getattr(a, field, None) != getattr(b, field, None):
                    told = f"{field} `{getattr(a, field)}` became `{getattr(b, field)}`"
                    found.add("gate.changed", item, told, a, b)
            if len(found.facts) == before:
                found.add("gate.changed", item, f"the {kind} gate is not what it was", a, b)


def _against(a: Any, b: Any, item: str, found: Found) -> None:
    for name in a.against:
        if name not in b.against:
            told = f"`{name}` is no baseline any more"
            found.add("gate.baseline.removed", f"{item} {name}", told, a, b)
    for name in b.against:
        if name not in a.against:
            told = f"`{name}` is a baseline too"
            found.add("gate.baseline.added", f"{item} {name}", told, a, b)


def metrics(
    old: Iterable[MetricBound],
    new: Iterable[MetricBound],
    item: str,
    places: tuple[Any, Any],
    found: Found,
) -> None:
    """Facts about the bounds of one gate; ``places``: of the gate on both sides."""
    mine, theirs = {m.metric: m for m in old}, {m.metric: m for m in new}
    for name in dict.fromkeys((*mine, *theirs)):
        a, b = mine.get(name), theirs.get(name)
        what = f"{item} {name}"
        if a is None and b is not None:
            found.add("gate.metric.added", what, f"`{bound(b)}` is new", places[0], b)
        elif b is None and a is not None:
            found.add("gate.metric.removed", what, f"`{bound(a)}` is gone", a, places[1])
        elif a is not None and b is not None and not same(a, b):
            rule = "gate.tightened" if _stricter(a, b) else "gate.loosened"
            found.add(rule, what, f"`{bound(a)}` became `{bound(b)}`", a, b)


def bound(metric: MetricBound) -> str:
    """As the language writes it."""
    return metric.metric if metric.op is None else f"{metric.metric} {metric.op} {metric.bound}"


def _stricter(a: MetricBound, b: MetricBound) -> bool:
    if a.bound is None or b.bound is None:
        return a.bound is None
    return b.bound > a.bound if b.op == ">=" else b.bound < a.bound

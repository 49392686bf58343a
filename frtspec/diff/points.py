"""Facts about the reference: what it computes, and where its points and seams lie in it."""

from __future__ import annotations

from typing import Any

from frtspec.diff import gates
from frtspec.diff.facts import Found, named, same
from frtspec.diff.flow import Flow, Numbers, Shared, flow
from frtspec.ir.decl import Point, Seam, Structure


def compare(old: Structure, new: Structure, both: Shared, found: Found) -> None:
    """Facts about references, points and seams."""
    numbers: Numbers = {}
    now = {p.name: p for p in new.points}
    pairs = {p.was: p.name for p in new.points if p.was is not None and p.was not in now}
    pairs = {a: b for a, b in pairs.items() if any(p.name == a for p in old.points)}
    mine, theirs = flow(old, numbers, both, pairs), flow(new, numbers, both)
    before = len(found.facts)
    _points(old, new, pairs, (mine, theirs), both, found)
    _seams(old, new, pairs, (mine, theirs), found)
    moved = [
        key for key in mine.outputs if theirs.outputs.get(key) not in (None, mine.outputs[key])
    ]
    if moved:
        names = ", ".join(sorted({f"`{name}`" for name, _ in moved}))
        a, b = _first(old, moved[0][0]), _first(new, moved[0][0])
        found.add("reference.changed", "reference", f"it computes other {names}", a, b)
    elif not same(old.reference, new.reference) and not _explained(found, before):
        added = not _only_shared(old, new)
        rule = "reference.extended" if added else "reference.equivalent"
        told = (
            "it computes more, and the same where both can be asked"
            if added
            else ("it is written otherwise and computes the same")
        )
        found.add(rule, "reference", told, _body(old), _body(new))


def _explained(found: Found, before: int) -> bool:
    """Whether a point that moved is why the reference is another text."""
    return any(fact.rule.startswith("point.") for fact in found.facts[before:])


def _only_shared(old: Structure, new: Structure) -> bool:
    names = ("variants", "inputs", "slots", "outputs")
    return all(same(getattr(old, name), getattr(new, name)) for name in names)


def _body(structure: Structure) -> Any:
    return structure.reference[0].span.to(structure.reference[-1].span)


def _first(structure: Structure, name: str) -> Any:
    found = (s for s in structure.reference if getattr(s, "name", None) == name)
    return next(found, structure.reference[-1])


# ---------------------------------------------------------------- points


def _points(
    old: Structure,
    new: Structure,
    pairs: dict[str, str],
    flows: tuple[Flow, Flow],
    both: Shared,
    found: Found,
) -> None:
    mine, theirs = named(old.points), named(new.points)
    back = {b: a for a, b in pairs.items()}
    for name, b in theirs.items():
        a = mine.get(back.get(name, name))
        if a is None:
            free = both.cond(b.when) is False
            rule = "point.added.optional" if free else "point.added"
            help = _hint(b, mine, theirs, flows)
            found.add(rule, f"point {name}", f"point `{name}` is new", None, b, help)
            continue
        if name in back:
            told = f"point `{a.name}` is called `{name}`"
            found.add("point.renamed", f"point {name}", told, a, b)
        if a.kind != b.kind:
            told = f"`{name}` was a point of kind {a.kind} and is one of kind {b.kind}"
            found.add("point.kind", f"point {name}", told, a, b)
        if both.cond(a.when) != both.cond(b.when):
            told = f"`{name}` is there under other conditions"
            found.add("point.when", f"point {name}", told, a, b)
        _place(a, b, flows, found)
    for name, a in mine.items():
        if name not in theirs and name not in pairs:
            found.add("point.removed", f"point {name}", f"point `{name}` is gone", a, None)


def _hint(point: Point, mine: Any, theirs: Any, flows: tuple[Flow, Flow]) -> str | None:
    """Whether it looks like a point that is gone."""
    place = flows[1].points.get(point.name)
    gone = [
        name
        for name in mine
        if name not in theirs and place is not None and flows[0].points.get(name) == place
    ]
    if not gone:
        return None
    return f"it stands where `{gone[0]}` stood: write `was {gone[0]}` behind it"


def _place(a: Point, b: Point, flows: tuple[Flow, Flow], found: Found) -> None:
    """Whether the value under the name is the one it was."""
    old, new = flows
    if a.name not in old.points or b.name not in new.points:
        if (a.name in old.points) != (b.name in new.points):
            told = f"`{b.name}` is defined in the reference on one side only"
            found.add("point.moved", f"point {b.name}", told, a, b)
        return
    before, after = old.points[a.name], new.points[b.name]
    if before == after:
        return
    if before in new.every or after in old.every:
        told = f"`{b.name}` names another place of the dataflow"
        found.add("point.moved", f"point {b.name}", told, a, b)
    elif old.local[a.name] != new.local[b.name]:
        told = f"`{b.name}` is worked out otherwise"
        found.add("point.redefined", f"point {b.name}", told, a, b)


# ---------------------------------------------------------------- seams


def _seams(
    old: Structure, new: Structure, pairs: dict[str, str], flows: tuple[Flow, Flow], found: Found
) -> None:
    mine, theirs = named(old.seams), named(new.seams)
    for name, seam in theirs.items():
        if name not in mine:
            found.add("seam.added", f"seam {name}", f"seam `{name}` is new", None, seam)
            continue
        other = mine[name]
        ends = [tuple(pairs.get(n, n) for n in side) for side in (other.sources, other.targets)]
        if tuple(ends) != (seam.sources, seam.targets):
            told = f"`{_ends(other)}` became `{_ends(seam)}`"
            found.add("seam.moved", f"seam {name}", told, other, seam)
        gates.metrics(other.gates, seam.gates, f"seam {name}", (other, seam), found)
    for name, seam in mine.items():
        if name not in theirs:
            found.add("seam.removed", f"seam {name}", f"seam `{name}` is gone", seam, None)


def _ends(seam: Seam) -> str:
    return f"from {', '.join(seam.sources)} to {', '.join(seam.targets)}"

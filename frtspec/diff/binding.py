"""Facts about two texts of a binding: where things are on a host, and what is pinned."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from frtspec.diff.facts import Found, by_field, named, same
from frtspec.ir.decl import Binding, BoundPipeline, HostRef, Seat
from frtspec.syntax import ast


def compare(old: Binding, new: Binding, found: Found) -> None:
    """Every fact between two bindings of one name."""
    by_field(
        old,
        new,
        found,
        {"hosts": _hosts, "dims": _dims, "groups": _groups, "pipelines": _pipelines},
        "binding.changed",
    )


# ---------------------------------------------------------------- hosts


def _hosts(old: Binding, new: Binding, found: Found) -> None:
    mine, theirs = {h.package: h for h in old.hosts}, {h.package: h for h in new.hosts}
    for name in dict.fromkeys((*mine, *theirs)):
        a, b, item = mine.get(name), theirs.get(name), f"host {name}"
        if a is None:
            found.add("binding.host.widened", item, f"package `{name}` is new", old, new)
        elif b is None:
            found.add("binding.host.narrowed", item, f"package `{name}` is gone", old, new)
        else:
            _host(a, b, item, (old, new), found)


def _host(a: HostRef, b: HostRef, item: str, at: tuple[Any, Any], found: Found) -> None:
    if a.versions != b.versions:
        wider, narrower = _reach(a.versions, b.versions)
        told = f"`{a.versions}` became `{b.versions}`"
        if wider or not narrower:
            found.add("binding.host.widened", f"{item} versions", told, *at)
        if narrower:
            found.add("binding.host.narrowed", f"{item} versions", told, *at)
    for name in b.classes:
        if name not in a.classes:
            found.add("binding.host.widened", f"{item} {name}", f"class `{name}` is new", *at)
    for name in a.classes:
        if name not in b.classes:
            found.add("binding.host.narrowed", f"{item} {name}", f"class `{name}` is gone", *at)
    if a.module != b.module:
        told = f"module `{a.module}` became `{b.module}`"
        found.add("binding.changed", item, told, *at)


def _reach(old: str | None, new: str | None) -> tuple[bool, bool]:
    """Whether versions are accepted that were not, and the other way round: tried at every
    version that either names, and right beside it."""
    try:
        sets = SpecifierSet(old or ""), SpecifierSet(new or "")
    except InvalidSpecifier:
        return True, True
    named_there = {s.version.removesuffix(".*") for both in sets for s in both}
    tried = {v for name in named_there for v in (name, f"{name}.1", f"{name}.99999")}
    tried |= {_before(name) for name in named_there} | {"0", "999999"}
    inside = [{v for v in tried if s.contains(v, prereleases=True)} for s in sets]
    return bool(inside[1] - inside[0]), bool(inside[0] - inside[1])


def _before(version: str) -> str:
    """A version right under another: ``5.12.99999`` under ``5.13``."""
    parts = [int(p) if p.isdigit() else 0 for p in version.split(".")]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    parts[-1] = max(parts[-1] - 1, 0)
    return ".".join(map(str, [*parts, 99999]))


# ---------------------------------------------------------------- seats


def _dims(old: Binding, new: Binding, found: Found) -> None:
    mine, theirs = dict(old.dims), dict(new.dims)
    for name in dict.fromkeys((*mine, *theirs)):
        if not same(mine.get(name), theirs.get(name)):
            told = f"dim `{name}` is worked out otherwise"
            found.add("binding.seat.changed", f"dim {name}", told, old, new)


def _groups(old: Binding, new: Binding, found: Found) -> None:
    mine, theirs = _seats(old), _seats(new)
    for name, (seat, loops) in theirs.items():
        if name not in mine:
            found.add("binding.seat.added", f"seat {name}", f"seat `{name}` is new", None, seat)
        else:
            if not same(mine[name][1], loops):
                told = f"seat `{name}` is repeated otherwise"
                found.add("binding.seat.changed", f"seat {name}", told, mine[name][0], seat)
            _seat(mine[name][0], seat, found)
    for name, (seat, _) in mine.items():
        if name not in theirs:
            found.add("binding.seat.removed", f"seat {name}", f"seat `{name}` is gone", seat, None)
    links = [
        [(group.chains, group.groups) for group in side.groups if group.chains or group.groups]
        for side in (old, new)
    ]
    if not same(*links):
        found.add("binding.link", "chains", "chains or groups are not what they were", old, new)
    order = [n for n in mine if n in theirs], [n for n in theirs if n in mine]
    if order[0] != order[1]:
        found.add("binding.seat.changed", "seats", "seats stand in another order", old, new)


def _seats(binding: Binding) -> dict[str, tuple[Seat, Any]]:
    """By name; the n-th seat of one name, under another condition, by its number."""
    out: dict[str, tuple[Seat, Any]] = {}
    for group in binding.groups:
        for seat in group.seats:
            key, number = seat.name, 2
            while key in out:
                key, number = f"{seat.name} ({number})", number + 1
            out[key] = seat, group.loops
    return out


def _seat(a: Seat, b: Seat, found: Found) -> None:
    if same(a, b):
        return
    item = f"seat {b.name}"
    pins = [(*s.structure, s.seam) for s in (a, b)]
    if pins[0] != pins[1]:
        told = f"`{_pin(pins[0])}` became `{_pin(pins[1])}`"
        found.add("binding.pin", item, told, a, b)
    mine, theirs = dict(_paths(a)), dict(_paths(b))
    for where in dict.fromkeys((*mine, *theirs)):
        before, after = mine.get(where), theirs.get(where)
        if before != after and before is not None and after is not None:
            told = f"{where}: `{before}` became `{after}`"
            found.add("binding.path", f"{item} {where}", told, a, b)
    if not same(*(_without_paths(s) for s in (a, b))):
        told = f"seat `{b.name}` is set otherwise"
        found.add("binding.seat.changed", item, told, a, b)


def _pin(pin: tuple[str, int, str | None]) -> str:
    return f"{pin[0]}{f'.{pin[2]}' if pin[2] else ''} version {pin[1]}"


def _paths(seat: Seat) -> Iterable[tuple[str, str]]:
    """Every path of a seat, by what it is the path of."""
    yield "path", seat.path.text
    for view in (*seat.slots, *seat.siblings):
        if view.path is not None:
            index = "" if view.index is None else f"[{view.index}]"
            yield f"slot {view.slot}{index}", view.path.text
    places = [("point", seat.points)]
    if seat.boundary is not None:
        places += [("input", seat.boundary.inputs), ("output", seat.boundary.outputs)]
        yield "boundary", seat.boundary.path.text if seat.boundary.path else ""
    for word, listed in places:
        for name, place in listed:
            yield f"{word} {name}", place.path.text if place.path else ""
    for part in seat.parts:
        yield f"part {part.part}", ", ".join(path.text for path in part.paths)


def _without_paths(value: Any) -> Any:
    """The seat without its paths and its pin."""
    if isinstance(value, ast.HostPath):
        return "path"
    if isinstance(value, tuple):
        return tuple(_without_paths(item) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        skipped = ("span", "structure", "seam") if isinstance(value, Seat) else ("span",)
        return tuple(
            (field.name, _without_paths(getattr(value, field.name)))
            for field in dataclasses.fields(value)
            if field.name not in skipped
        )
    return value


# ---------------------------------------------------------------- pipelines in a binding


def _pipelines(old: Binding, new: Binding, found: Found) -> None:
    mine = {use.pipeline[0]: use for use in old.pipelines}
    theirs = {use.pipeline[0]: use for use in new.pipelines}
    for name in dict.fromkeys((*mine, *theirs)):
        a, b, item = mine.get(name), theirs.get(name), f"pipeline {name}"
        if a is None or b is None:
            word = "new" if a is None else "gone"
            found.add("binding.pipeline", item, f"pipeline `{name}` is {word}", a, b)
        elif not same(a, b):
            _pipeline(a, b, item, found)


def _pipeline(a: BoundPipeline, b: BoundPipeline, item: str, found: Found) -> None:
    if a.pipeline != b.pipeline:
        told = f"version {a.pipeline[1]} became version {b.pipeline[1]}"
        found.add("binding.pin", item, told, a, b)
    if not same(a.coverage, b.coverage):
        mine = named(a.coverage.segments) if a.coverage else {}
        theirs = named(b.coverage.segments) if b.coverage else {}
        before = len(found.facts)
        for name in dict.fromkeys((*mine, *theirs)):
            _segment(mine.get(name), theirs.get(name), f"{item} segment {name}", found)
        if len(found.facts) == before:
            found.add("pipeline.segment", f"{item} coverage", "it is not what it was", a, b)
    parts = ("stages", "loops", "cadences")
    if not all(same(getattr(a, part), getattr(b, part)) for part in parts):
        told = "stages, loops or cadences are not what they were"
        found.add("binding.pipeline", item, told, a, b)


def _segment(a: Any, b: Any, item: str, found: Found) -> None:
    if same(a, b):
        return
    if a is None or b is None:
        told = f"the segment is {'new' if a is None else 'gone'}"
    elif a.kind != b.kind:
        told = f"`{a.kind}` became `{b.kind}`"
    else:
        told = "it covers something else"
    found.add("pipeline.segment", item, told, a, b)

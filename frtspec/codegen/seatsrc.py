"""One function per seat of a binding, and the loops that call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from frtspec.codegen import configsrc
from frtspec.codegen.configsrc import Scope
from frtspec.codegen.names import free
from frtspec.codegen.partsrc import parts_text
from frtspec.codegen.pysrc import AND, Py, call, fstring, indented, pyrepr, text_literal, tuple_of
from frtspec.ir.decl import (
    BoundaryRef,
    Chain,
    EachSeats,
    Expect,
    Loop,
    PlaceRef,
    RouteRef,
    Seat,
    SeatGroup,
    Structure,
    WeightView,
)
from frtspec.syntax import ast

TAKEN = frozenset(
    {"dims", "seats", "links", "attach", "build", "HOST", "rt", "torch", "schemes", "config"}
)
"""Names of a binding's module that no seat function may have."""

LOCALS = frozenset({"at", "around", "config", "size", "found", "model"})
"""Names that the functions of a binding's module use themselves."""


@dataclass(frozen=True)
class SeatView:
    """One seat function: ``fields`` are the keyword arguments of ``rt.Seat``."""

    name: str
    parameters: tuple[str, ...]
    doc: str
    locals: tuple[str, ...]
    fields: tuple[str, ...]


@dataclass(frozen=True)
class _Call:
    """A line that finds one thing, the loops around it, and when it runs."""

    loops: tuple[Loop, ...]
    conditions: tuple[ast.Expr, ...]
    text: str

    def loop(self, depth: int) -> Loop | None:
        return self.loops[depth] if depth < len(self.loops) else None


Wired = Callable[[Chain, Sequence[Seat]], str | None]
"""The class of the impl that writes what a chain of some seats carries, where there is one."""


class SeatSource:
    """Builds the seat functions of one binding and the loops over them.

    ``modules``: the name that each structure's module is imported under; ``wired``: the class
    of the impl that writes what a chain carries.
    """

    def __init__(
        self,
        scope: Scope,
        structures: Mapping[tuple[str, int], Structure],
        modules: Mapping[tuple[str, int], str],
        wired: Wired = lambda chain, seats: None,
    ) -> None:
        self.wired = wired
        self.scope = scope
        self.structures = structures
        self.modules = modules
        self.used = {*modules.values(), *TAKEN}

    def build(self, groups: Sequence[EachSeats]) -> tuple[list[SeatView], list[str]]:
        """The seat functions, and the lines that fill ``found`` with seats."""
        seats: list[SeatView] = []
        calls: list[_Call] = []
        for group in groups:
            indexes, scope = self._inside(group.loops)
            for seat in group.seats:
                view = self._seat(seat, indexes, scope)
                seats.append(view)
                given = ", ".join(_bare(parameter) for parameter in view.parameters)
                conditions = () if seat.when is None else (seat.when,)
                text = f"found.append({view.name}({given}))"
                calls.append(_Call(group.loops, conditions, text))
        return seats, self._looped(calls, 0)

    def links(self, groups: Sequence[EachSeats]) -> list[str]:
        """The lines that fill ``found`` with chains and groups."""
        placed = {seat.name: bool(g.loops) for g in groups for seat in g.seats}
        calls: list[_Call] = []
        for group in groups:
            indexes, _ = self._inside(group.loops)
            made = [_chain(c, indexes, self.wired(c, group.seats)) for c in group.chains]
            made += [_group(joined, indexes, placed) for joined in group.groups]
            calls += [_Call(group.loops, (), f"found.append({item})") for item in made]
        return self._looped(calls, 0)

    def _inside(self, loops: Sequence[Loop]) -> tuple[tuple[str, ...], Scope]:
        """The Python names of the loops' indexes, and the scope inside them."""
        scope = self.scope
        indexes: list[str] = []
        for loop in loops:
            index = free(loop.index, {*LOCALS, *indexes})
            scope = scope.with_name(loop.index, Py(index))
            indexes.append(index)
        return tuple(indexes), scope

    def _looped(self, calls: Sequence[_Call], depth: int) -> list[str]:
        """The calls in order; those next to each other under one loop share it."""
        lines: list[str] = []
        for _, run in groupby(calls, key=lambda call: id(call.loop(depth))):
            inside = list(run)
            loop = inside[0].loop(depth)
            if loop is None:
                scope = self._inside(inside[0].loops)[1]
                lines += [n for c in inside for n in _guarded(c.conditions, [c.text], scope)]
                continue
            loops = inside[0].loops[: depth + 1]
            (*_, index), scope = self._inside(loops)
            head = _range(loop, index, self._inside(loops[:-1])[1])
            lines += [head, *indented(self._body(loop, inside, depth + 1, scope))]
        return lines

    def _body(self, loop: Loop, calls: list[_Call], depth: int, scope: Scope) -> list[str]:
        """What a loop runs, under its own condition. One call alone is tested together."""
        where = () if loop.where is None else (loop.where,)
        if len(calls) == 1 and calls[0].loop(depth) is None:
            return _guarded((*where, *calls[0].conditions), [calls[0].text], scope)
        return _guarded(where, self._looped(calls, depth), scope)

    def _seat(self, seat: Seat, indexes: Sequence[str], scope: Scope) -> SeatView:
        name = free(seat.name, self.used, "_seat")
        self.used = {*self.used, name}
        places = [f"at = {configsrc.path(seat.path, scope)}"]
        fields = [
            f"name={_numbered(seat.name, indexes)}",
            f"structure={self.modules[seat.structure]}.SPEC",
            f"seam={pyrepr(seat.seam)}",
            "path=at",
            f"form={pyrepr(seat.form)}",
            f"variants={_mapping(self._variants(seat, scope))}",
            f"params={_mapping([(n, configsrc.value(e, scope)) for n, e in seat.params])}",
            f"dims={_mapping([(n, configsrc.value(e, scope)) for n, e in seat.dims])}",
            f"slots={_slots([*seat.slots, *seat.siblings], 'at', scope)}",
            f"points={_mapping([(n, _place(p, seat, 'at', scope)) for n, p in seat.points])}",
        ]
        if seat.placeless:
            reasons = [(name, Py(text_literal(reason))) for name, reason in seat.placeless]
            fields.append(f"placeless={_mapping(reasons)}")
        if seat.boundary:
            around, lines = _around(seat, scope)
            places += lines
            fields.append(f"boundary={_boundary(seat, seat.boundary, around, scope)}")
        if seat.siblings:
            fields.append(f"siblings={_siblings(seat, scope)}")
        if seat.route:
            fields.append(f"routed={_routed(seat.route)}")
        if seat.cadence:
            fields.append(f"cadence={pyrepr(seat.cadence)}")
        if seat.parts:
            at = parts_text(seat.parts, scope, lambda p: _place(p, seat, "at", scope))
            fields.append(f"parts={at}")
        if seat.expects:
            rows = tuple_of([_expect(expect, scope) for expect in seat.expects])
            fields.append(f"expects={rows}")
        return SeatView(
            name=name,
            parameters=_parameters(
                [*places, *fields], indexes, "model" in configsrc.names_in(seat)
            ),
            doc=f"{target(seat)} at {seat.path.text}.",
            locals=tuple(places),
            fields=tuple(fields),
        )

    def _variants(self, seat: Seat, scope: Scope) -> list[tuple[str, Py]]:
        """Every axis with its value; one the seat leaves out has the axis' default."""
        chosen = dict(seat.variants)
        out = []
        for axis in self.structures[seat.structure].variants:
            if axis.name in chosen:
                out.append((axis.name, _variant(chosen[axis.name], scope)))
            elif axis.default is not None:
                out.append((axis.name, Py(pyrepr(axis.default))))
        return out


def target(seat: Seat) -> str:
    """``decoder_ffn.mlp v1``"""
    name, version = seat.structure
    return f"{name}.{seat.seam} v{version}" if seat.seam else f"{name} v{version}"


def _numbered(name: str, indexes: Sequence[str]) -> Py:
    """A seat's name with its numbers: ``f"ffn[{i}]"``."""
    parts = [(False, name)]
    for index in indexes:
        parts += [(False, "["), (True, index), (False, "]")]
    return fstring(parts)


def _parameters(lines: Sequence[str], indexes: Sequence[str], model: bool) -> tuple[str, ...]:
    """Only what the body reads, in one fixed order."""
    body = "\n".join(lines)
    out = ["model: Any"] if model else []
    if "config." in body or "(config" in body:
        out.append("config: Any")
    if "size[" in body:
        out.append("size: Mapping[str, int]")
    return (*out, *(f"{index}: int" for index in indexes))


def _bare(parameter: str) -> str:
    return parameter.partition(":")[0]


def _guarded(conditions: Sequence[ast.Expr], lines: Sequence[str], scope: Scope) -> list[str]:
    """Some lines under the conditions that they all need."""
    if not conditions:
        return list(lines)
    parts = [configsrc.value(condition, scope).at(AND) for condition in conditions]
    whole = configsrc.value(conditions[0], scope).text if len(parts) == 1 else " and ".join(parts)
    return [f"if {whole}:", *indented(lines)]


def _range(loop: Loop, index: str, scope: Scope) -> str:
    lo, hi = configsrc.value(loop.lo, scope), configsrc.value(loop.hi, scope)
    stop = f"{hi} + 1" if loop.inclusive else hi.text
    span = stop if lo.text == "0" else f"{lo}, {stop}"
    return f"for {index} in range({span}):"


# ---------------------------------------------------------------- parts of a seat


def _mapping(rows: Sequence[tuple[str, Py]]) -> str:
    return "{" + ", ".join(f"{pyrepr(name)}: {text}" for name, text in rows) + "}"


def _variant(expr: ast.Expr, scope: Scope) -> Py:
    """A value of a variant axis: its name, or a choice by the host's config."""
    match expr:
        case ast.Name(id=name):
            return Py(pyrepr(name))
        case ast.Match():
            return configsrc.choice(expr, scope, lambda arm: _variant(arm, scope))
        case _:
            return configsrc.value(expr, scope)


def _slots(views: Sequence[WeightView], base: str, scope: Scope) -> str:
    """``{"w": rt.Weight(…)}``; a repeated slot is a tuple in the order of its indexes."""
    grouped: dict[str, list[WeightView]] = {}
    for view in views:
        grouped.setdefault(view.slot, []).append(view)
    rows = []
    for slot, members in grouped.items():
        if members[0].index is None:
            rows.append((slot, _weight(members[0], base, scope)))
            continue
        members.sort(key=lambda view: view.index or 0)
        rows.append((slot, tuple_of([_weight(view, base, scope) for view in members])))
    return _mapping(rows)


def _weight(view: WeightView, base: str, scope: Scope) -> Py:
    args: list[Py | str] = [
        pyrepr(None) if view.path is None else configsrc.path(view.path, scope, base)
    ]
    if view.layout is not None:
        args.append(pyrepr(view.layout))
    named: dict[str, Py | str] = {}
    if view.view != "param":
        named["view"] = pyrepr(view.view)
    if view.args:
        named["args"] = _view_args(view, scope)
    return call("rt.Weight", *args, **named)


def _view_args(view: WeightView, scope: Scope) -> str:
    """The arguments of a view; an expert can be the index of a loop."""
    if view.view == "expert":
        return tuple_of([scope.names.get(str(a), Py(pyrepr(a))) for a in view.args]).text
    return pyrepr(view.args)


def _place(place: PlaceRef, seat: Seat, base: str, scope: Scope) -> Py:
    at = Py(base) if place.path is None else configsrc.path(place.path, scope, base)
    if place.routed and seat.route is not None:
        at = Py(pyrepr(seat.route.name))
    given: list[Py | str] = [at]
    if place.kind == "arg":
        given.append(pyrepr(place.arg))
    named: dict[str, Py | str] = {}
    if place.item is not None:
        named["item"] = pyrepr(place.item)
    if place.layout is not None:
        named["layout"] = pyrepr(place.layout)
    kind = "Output" if place.kind == "output" else "Input"
    return call(f"rt.Routed{kind}" if place.routed else f"rt.{kind}Of", *given, **named)


def _routed(route: RouteRef) -> Py:
    args = "{" + ", ".join(f"{pyrepr(ours)}: {pyrepr(own)}" for ours, own in route.args) + "}"
    calls = {"calls": pyrepr(dict(route.calls))} if route.calls else {}
    return call(
        "rt.Routed",
        pyrepr(route.name),
        via=pyrepr(route.via),
        function=pyrepr(route.function),
        args=args,
        **calls,
    )


def _chain(chain: Chain, indexes: Sequence[str], form: str | None) -> Py:
    (maker, left), (taker, right) = chain.producer, chain.consumer
    return call(
        "rt.Chain",
        _numbered(maker, indexes),
        pyrepr(left),
        _numbered(taker, indexes),
        pyrepr(right),
        wire=pyrepr(chain.wire),
        prove=pyrepr(chain.facts),
        **({} if form is None else {"form": form}),
    )


def _group(group: SeatGroup, indexes: Sequence[str], placed: Mapping[str, bool]) -> Py:
    """A group outside any ``each`` holds its seats of every number."""
    if indexes or not any(placed.get(seat) for seat in group.seats):
        seats = tuple_of([_numbered(seat, indexes) for seat in group.seats]).text
    else:
        seats = call("rt.numbers_of", "seats(model)", *map(pyrepr, group.seats)).text
    return call(
        "rt.SeatGroup",
        _numbered(group.name, indexes),
        seats,
        writer=pyrepr(group.writer),
        prove=pyrepr(group.facts),
    )


def _around(seat: Seat, scope: Scope) -> tuple[str, list[str]]:
    """The name that holds the boundary's path, and the line that sets it."""
    assert seat.boundary is not None
    if seat.boundary.path is None or seat.boundary.path.text == seat.path.text:
        return "at", []
    return "around", [f"around = {configsrc.path(seat.boundary.path, scope)}"]


def _boundary(seat: Seat, boundary: BoundaryRef, base: str, scope: Scope) -> Py:
    if boundary.none_reason is not None:
        return call("rt.Boundary", none=text_literal(boundary.none_reason, room=78))
    named: dict[str, Py | str] = {"path": base}
    for field, ports in (("inputs", boundary.inputs), ("outputs", boundary.outputs)):
        if ports:
            rows = [(name, _place(place, seat, base, scope)) for name, place in ports]
            named[field] = _mapping(rows)
    if boundary.slots:
        named["slots"] = _slots(boundary.slots, base, scope)
    return call("rt.Boundary", *(), **named)


def _siblings(seat: Seat, scope: Scope) -> Py:
    """The modules that hold the first repeated slot, in order, and what to prove."""
    first = seat.siblings[0].slot
    views = sorted((v for v in seat.siblings if v.slot == first), key=lambda v: v.index or 0)
    members = tuple_of([_module_path(view, scope) for view in views])
    return call("rt.Siblings", members, prove=pyrepr(seat.prove))


def _module_path(view: WeightView, scope: Scope) -> Py:
    """The path of the module that owns a weight: the weight's path without its last name."""
    assert view.path is not None
    *lead, last = view.path.parts
    kept = (last.text or "").rpartition(".")[0].removesuffix(".")
    parts = (*lead, ast.PathPart(kept, None, last.span))
    return configsrc.path(ast.HostPath(kept, parts, view.path.span), scope, "at")


def _expect(expect: Expect, scope: Scope) -> Py:
    args = [pyrepr(expect.fact), pyrepr(expect.values)]
    if expect.of:
        args.append(tuple_of([configsrc.path(path, scope, "at") for path in expect.of]).text)
    return call("rt.Expect", *args)

"""Names in bindings and pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from frtspec.diag.source import Span
from frtspec.lsp.occurrences import Collector, Resolve, Symbol, number, structure_of
from frtspec.syntax import ast
from frtspec.syntax.ast.walk import inside


def binding(found: Collector, decl: ast.BindingDecl) -> None:
    """Every name of a binding."""
    _Binding(found, decl).run()


class _Binding:
    def __init__(self, found: Collector, decl: ast.BindingDecl) -> None:
        self.found = found
        self.decl = decl
        self.own: Symbol = ("binding", decl.name.id)
        self.seats: Mapping[str, Symbol] = {
            seat.name.id: structure_of(seat.target) for seat in seats_in(decl.members)
        }
        self.dims = {
            name.id
            for member in decl.members
            if isinstance(member, ast.DimsDecl)
            for name, _ in member.items
        }

    def run(self) -> None:
        self.found.define(self.decl.name, self.own, "binding", self.decl.span)
        for member in self.decl.members:
            match member:
                case ast.DimsDecl(items=items):
                    for name, value in items:
                        symbol = self.resolve(name)
                        if symbol is not None:
                            self.found.define(name, symbol, "dim", name.span.to(value.span))
                        self.found.expr(value, None, self.resolve)
                case ast.PipelineUse():
                    self.pipeline(member)
                case _:
                    self.placed(member, self.resolve)

    def resolve(self, name: ast.Name) -> Symbol | None:
        return ("local", self.own, name.id) if name.id in self.dims else None

    def placed(self, member: object, resolve: Resolve) -> None:
        match member:
            case ast.EachDecl():
                self.each(member, resolve)
            case ast.SeatDecl():
                self.seat(member, resolve)
            case ast.ChainDecl(producer=producer, consumer=consumer):
                for seat, port in (producer, consumer):
                    self.seat_named(seat)
                    structure = self.seats.get(seat.id)
                    if structure is not None:
                        self.found.members((port,), structure, "port")
            case ast.GroupDecl(seats=seats, writer=writer):
                for seat in (*seats, writer):
                    if seat.id in self.seats:
                        self.seat_named(seat)

    def seat_named(self, name: ast.Name) -> None:
        self.found.refer(name, ("local", self.own, f"seat {name.id}"), "seat")

    def each(self, decl: ast.EachDecl, outer: Resolve) -> None:
        def resolve(name: ast.Name) -> Symbol | None:
            if name.id == decl.index.id:
                return ("inner", self.own, decl.span.start, name.id)
            return outer(name)

        symbol = resolve(decl.index)
        assert symbol is not None
        self.found.define(decl.index, symbol, "index", decl.span)
        self.found.expr(decl.range, None, outer)
        self.found.expr(decl.where, None, resolve)
        for member in decl.members:
            self.placed(member, resolve)

    # ------------------------------------------------------------ seats

    def seat(self, decl: ast.SeatDecl, resolve: Resolve) -> None:
        structure = self.found.target(decl.target)
        symbol = ("local", self.own, f"seat {decl.name.id}")
        self.found.define(decl.name, symbol, "seat", decl.span)
        self.path(decl.path, resolve)
        self.found.expr(decl.when, None, resolve)
        for member in decl.members:
            self.seat_member(member, structure, resolve)

    def seat_member(self, member: object, structure: Symbol, resolve: Resolve) -> None:
        found = self.found
        match member:
            case ast.VariantSet(axis=axis, value=value):
                found.members((axis,), structure, "variant")
                found.chosen(structure, axis.id, value, resolve)
            case ast.ParamSet(name=name, value=value):
                found.members((name,), structure, "param")
                found.expr(value, None, resolve)
            case ast.SlotMap():
                self.slot(member, structure, resolve)
            case ast.PointMap(point=point, place=place):
                found.members((point,), structure, "point")
                self.path(place.path, resolve)
            case ast.PointNone(point=point):
                found.members((point,), structure, "point")
            case ast.PartMap(part=part, paths=paths):
                found.members((part,), structure, "part")
                for path in paths:
                    self.path(path, resolve)
            case ast.BoundaryDecl(path=path, ports=ports, slots=slots):
                self.path(path, resolve)
                for port, place in ports:
                    found.members((port,), structure, "port")
                    self.path(place.path, resolve)
                for slot in slots:
                    self.slot(slot, structure, resolve)
            case ast.SiblingsDecl(members=members):
                for slot in members:
                    self.slot(slot, structure, resolve)
            case ast.DimsDecl(items=items):
                for name, value in items:
                    found.members((_unnumbered(name),), structure, "dim")
                    found.expr(value, None, resolve)

    def slot(self, decl: ast.SlotMap, structure: Symbol, resolve: Resolve) -> None:
        self.found.members((decl.slot,), structure, "slot")
        for part in inside((decl.value,)):
            if isinstance(part, ast.HostPath):
                self.path(part, resolve)

    def path(self, path: ast.HostPath | None, resolve: Resolve) -> None:
        if path is not None:
            self.found.exprs((part.expr for part in path.parts), None, resolve)

    # ------------------------------------------------------------ its pipelines

    def pipeline(self, use: ast.PipelineUse) -> None:
        owner: Symbol = ("pipeline", use.name.id, number(use.version))
        self.found.refer(use.name, owner, "pipeline")
        for member in use.members:
            match member:
                case ast.StageUse(name=name, path=path, members=members):
                    self.found.members((name,), owner, "stage")
                    self.path(path, self.resolve)
                    values = (m for m in members if isinstance(m, ast.ValueAt))
                    self.found.members((value.name for value in values), owner)
                case ast.LoopUse(name=name, steps=steps):
                    self.found.members((name,), owner, "loop")
                    self.found.expr(steps, None, self.resolve)
                case ast.CadenceUse(stages=stages):
                    self.found.members(stages, owner, "stage")
                case ast.CoverageDecl(members=members):
                    self.coverage(members, owner)

    def coverage(self, members: Iterable[object], owner: Symbol) -> None:
        def segment(name: ast.Name) -> Symbol:
            return ("local", self.own, f"segment {name.id}")

        for member in members:
            if isinstance(member, ast.HotPathDecl):
                for name in member.segments:
                    self.found.refer(name, segment(name), "segment")
            elif isinstance(member, ast.SegmentDecl):
                self.found.define(member.name, segment(member.name), "segment", member.span)
                self.found.members((member.stage,), owner, "stage")
                for part in member.members:
                    if isinstance(part, ast.SeatsDecl):
                        for seat in part.seats:
                            self.seat_named(seat)
                    elif isinstance(part, ast.CoversDecl):
                        for name in part.structures:
                            self.found.refer(name, ("structure", name.id, None), "structure")


def _unnumbered(name: ast.Name) -> ast.Name:
    """``N`` of ``N[0]``."""
    plain = name.id.partition("[")[0]
    span = name.span
    return ast.Name(plain, Span(span.path, span.start, span.start + len(plain)))


def seats_in(members: Iterable[object]) -> Iterator[ast.SeatDecl]:
    """The seats of a binding, those under ``each`` too."""
    for member in members:
        if isinstance(member, ast.SeatDecl):
            yield member
        elif isinstance(member, ast.EachDecl):
            yield from seats_in(member.members)


def host_paths(file: ast.File) -> Iterator[tuple[str, str, str]]:
    """(structure, what, path) of every seat: ``what`` is a slot, a point or ``at``."""
    for decl in file.decls:
        if not isinstance(decl, ast.BindingDecl):
            continue
        for seat in seats_in(decl.members):
            structure = seat.target.name.id
            yield structure, "at", seat.path.text
            for member in seat.members:
                for what, path in _paths_of(member):
                    yield structure, what, path.text


def _paths_of(member: object) -> Iterator[tuple[str, ast.HostPath]]:
    match member:
        case ast.SlotMap(slot=slot, value=ast.HostPath() as path):
            yield slot.id, path
        case ast.PointMap(point=point, place=place):
            if place.path is not None:
                yield point.id, place.path
        case ast.SiblingsDecl(members=members):
            for weight in members:
                yield from _paths_of(weight)
        case ast.BoundaryDecl(path=path, ports=ports, slots=slots):
            if path is not None:
                yield "boundary", path
            for port, place in ports:
                if place.path is not None:
                    yield port.id, place.path
            for weight in slots:
                yield from _paths_of(weight)


# ---------------------------------------------------------------- pipelines


def pipeline(found: Collector, decl: ast.PipelineDecl) -> None:
    """Every name of a pipeline."""
    owner: Symbol = ("pipeline", decl.name.id, number(decl.version))
    found.define(decl.name, owner, "pipeline", decl.span)
    kinds = {
        ast.WindowDecl: "window",
        ast.BufferDecl: "buffer",
        ast.StateDecl: "state",
        ast.StageDecl: "stage",
        ast.LoopDecl: "loop",
    }
    for member in decl.members:
        kind = kinds.get(type(member))
        if kind is not None:
            name: ast.Name = member.name  # type: ignore[union-attr]
            found.define(name, ("member", owner, name.id), kind, member.span)
        match member:
            case ast.StateDecl(writers=writers, readers=readers):
                found.members((*writers, *readers), owner, "stage")
            case ast.StageDecl(members=members):
                for part in members:
                    if isinstance(part, ast.AccessDecl):
                        for value in part.values:
                            name = ast.Name(value.name.id, value.name.span)
                            found.members((name,), owner)
            case ast.LoopDecl(members=members):
                for step in members:
                    if isinstance(step, ast.RunsDecl):
                        found.members(step.stages, owner, "stage")
                    elif isinstance(step, ast.UntilDecl):
                        found.members((step.name,), owner)
            case ast.EmbedsDecl(structures=structures):
                for ref in structures:
                    found.target(ref)
            case ast.ConformDecl(subjects=subjects):
                found.members(subjects, owner)
            case ast.PipelineGateDecl(on=on):
                found.members(on, owner)

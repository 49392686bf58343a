"""Bindings: hosts, dims, seats and what is between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from frtspec.diag.source import SourceFile
from frtspec.ir import decl as ir
from frtspec.sema.common import named_once, only_one, origin, status
from frtspec.sema.context import Context
from frtspec.sema.exports import exports
from frtspec.sema.hostexpr import ROOTS, HostExprs
from frtspec.sema.hosts import hosts, unverified
from frtspec.sema.links import Links, Placed
from frtspec.sema.pipeline_use import PipelineUses
from frtspec.sema.scope import Scope, Symbol, declare, reserved
from frtspec.sema.seat import Seats
from frtspec.sema.sizes import whole
from frtspec.sema.target import Built
from frtspec.syntax import ast

T = TypeVar("T")

HOST, RANGE = "FRT0601", "FRT0602"

MOST_PLACES = 65_536
"""Numbers that a written range can hold: no host has more places of one kind."""


@dataclass
class Bindings:
    """Builds bindings against the structures and pipelines of the run."""

    structures: Mapping[str, Mapping[int, Built]]
    pipelines: Mapping[str, Mapping[int, ir.Pipeline]]

    def build(self, source: SourceFile, node: ast.BindingDecl, context: Context) -> ir.Binding:
        return _Builder(source, node, context, self).build()


@dataclass
class _Builder:
    source: SourceFile
    node: ast.BindingDecl
    context: Context
    world: Bindings
    names: Scope = field(default_factory=Scope)
    dims: dict[str, ast.Name] = field(default_factory=dict)
    seats: dict[str, Placed] = field(default_factory=dict)

    def members(self, kind: type[T]) -> list[T]:
        return [m for m in self.node.members if isinstance(m, kind)]

    def build(self) -> ir.Binding:
        only_one(self.context, self.members(ast.StatusDecl), "status")
        trust = status(self.context, self.members(ast.StatusDecl))
        imported = unverified(self.context, self.members(ast.StatusDecl))
        self.context.imported = imported
        places = hosts(self.context, self.node.name, self.members(ast.HostDecl), imported)
        dims = self.read_dims()
        groups = tuple(self.groups())
        if not groups and not self.members(ast.PipelineUse) and "seat" not in self.context.dropped:
            message = f"binding `{self.node.name.id}` places nothing"
            self.context.error("FRT0209", message, self.node.name.span, help="add a seat")
        chains, joined = self.links(self.node.members, ())
        if chains or joined:
            groups += (ir.EachSeats((), (), chains, joined, self.node.span),)
        pipelines = self.pipelines(imported)
        for name, at in self.dims.items():
            why = "no seat, range or dim reads it: use it or leave it out"
            self.context.unused("dim", name, at.span, why)
        return ir.Binding(
            name=self.node.name.id,
            doc=self.node.doc.text if self.node.doc else "",
            status=trust,
            hosts=places,
            dims=dims,
            groups=groups,
            origin=origin(self.source, self.node.span),
            evidence=tuple(m.text.text for m in self.members(ast.EvidenceDecl)),
            exports=exports(
                self.context, self.members(ast.ExportDecl), [place.package for place in places]
            ),
            pipelines=pipelines,
        )

    def pipelines(self, imported: bool) -> tuple[ir.BoundPipeline, ...]:
        nodes = self.members(ast.PipelineUse)
        named_once(self.context, "pipeline", [node.name for node in nodes])
        seats: dict[str, tuple[str, ...]] = {
            name: (placed.seat.structure[0],) for name, placed in self.seats.items()
        }
        uses = PipelineUses(
            self.context,
            self.world.pipelines,
            seats,
            list(self.world.structures),
            HostExprs(self.context, self.dims),
            imported,
        )
        return tuple(use for use in map(uses.build, nodes) if use is not None)

    # ------------------------------------------------------------ dims

    def read_dims(self) -> tuple[tuple[str, ast.Expr], ...]:
        """The binding's dims; each may use those before it."""
        nodes = self.members(ast.DimsDecl)
        only_one(self.context, nodes, "dims")
        out = []
        for name, value in (item for node in nodes for item in node.items):
            HostExprs(self.context, tuple(self.dims)).check(value)
            if "[" in name.id:
                message = "a dim of the binding is one number"
                self.context.error("FRT0312", message, name.span, help="seats set indexed dims")
            elif name.id in (*ROOTS, "refuse", "true", "false", "none"):
                help = "give the dim another name"
                self.context.error(
                    "FRT0204", f"`{name.id}` means something else", name.span, help=help
                )
            elif declare(self.context, self.names, "dim", name, Symbol("dim", name.span)):
                self.dims[name.id] = name
                out.append((name.id, value))
        return tuple(out)

    # ------------------------------------------------------------ seats

    def groups(self) -> Iterator[ir.EachSeats]:
        """Seats in order; those outside any ``each`` in groups of their own."""
        for member in self.node.members:
            if isinstance(member, ast.EachDecl):
                yield from self.each(member, ())
            elif isinstance(member, ast.SeatDecl):
                yield ir.EachSeats((), self.seat(member, ()), (), (), member.span)

    def each(self, node: ast.EachDecl, outer: tuple[ir.Loop, ...]) -> Iterator[ir.EachSeats]:
        """The seats of one ``each``, in order: an ``each`` inside splits them."""
        loops = (*outer, self.loop(node, outer))
        seats: tuple[ir.Seat, ...] = ()
        for member in node.members:
            if isinstance(member, ast.SeatDecl):
                seats += self.seat(member, loops)
            elif isinstance(member, ast.EachDecl):
                if seats:
                    yield ir.EachSeats(loops, seats, (), (), node.span)
                seats = ()
                yield from self.each(member, loops)
        chains, groups = self.links(node.members, loops)
        if seats or chains or groups:
            yield ir.EachSeats(loops, seats, chains, groups, node.span)

    def loop(self, node: ast.EachDecl, outer: tuple[ir.Loop, ...]) -> ir.Loop:
        name, taken = node.index, [loop.index for loop in outer]
        why = reserved(name.id)
        if why is not None or name.id in (*self.dims, *taken, *ROOTS):
            what = "is a dim already" if name.id in self.dims else "cannot be an index"
            what = "is the index of the `each` around" if name.id in taken else what
            help = why or "give the index another name"
            self.context.error("FRT0204", f"`{name.id}` {what}", name.span, help=help)
        around = HostExprs(self.context, self.dims, taken)
        self.check_range(node.range)
        around.check(node.range.lo)
        if node.range.hi is None:
            self.context.error("FRT0312", "the range of `each` has an end", node.range.span)
        else:
            around.check(node.range.hi)
        if node.where is not None:
            HostExprs(self.context, self.dims, (*taken, name.id)).check(node.where)
        self.context.used.discard(("index", name.id))
        hi = node.range.lo if node.range.hi is None else node.range.hi
        return ir.Loop(name.id, node.range.lo, hi, node.range.inclusive, node.where, node.span)

    def check_range(self, node: ast.Range) -> None:
        """What a range of written numbers can be: whole ones, from low to high."""
        ends = [end for end in (node.lo, node.hi) if end is not None]
        for end in ends:
            negative = isinstance(end, ast.Unary) and isinstance(end.operand, ast.Number)
            if negative or (isinstance(end, ast.Number) and whole(end.value) is None):
                message = f"a range of `each` counts places on the host, up to {MOST_PLACES}"
                self.context.error(RANGE, message, end.span, help="write whole numbers from 0")
                return
        written = [whole(end.value) for end in ends if isinstance(end, ast.Number)]
        if len(written) < 2 or written[0] is None or written[1] is None:
            return
        count = written[1] - written[0] + node.inclusive
        if not 0 < count <= MOST_PLACES:
            found = "nothing" if count < 1 else f"{count} numbers"
            message = f"this range holds {found}"
            help = f"write it from low to high, up to {MOST_PLACES} numbers"
            self.context.error(RANGE, message, node.span, help=help)

    def seat(self, node: ast.SeatDecl, loops: tuple[ir.Loop, ...]) -> tuple[ir.Seat, ...]:
        declare(self.context, self.names, "seat", node.name, Symbol("seat", node.name.span))
        indexes = tuple(loop.index for loop in loops)
        host = HostExprs(self.context, self.dims, indexes)
        seat = Seats(self.context, self.world.structures, host).build(node)
        if seat is None:
            self.context.dropped.add((node.name.id,))  # what names it is no second mistake
            return ()
        named = _named(node.path)
        missing = next((index for index in indexes if index not in named), None)
        if missing is not None and named <= {*self.dims, *indexes}:
            self.context.error(
                "FRT0205",
                f"seat `{node.name.id}` is at the same place for every `{missing}`",
                node.path.span,
                help=f"write {{{missing}}} where the number goes in the path, or put the seat "
                "outside `each`",
            )
        self.seats[seat.name] = Placed(seat, indexes)
        return (seat,)

    def links(
        self, members: Iterable[object], loops: tuple[ir.Loop, ...]
    ) -> tuple[tuple[ir.Chain, ...], tuple[ir.SeatGroup, ...]]:
        indexes = tuple(loop.index for loop in loops)
        found = Links(self.context, self.names, self.seats, self.world.structures, indexes)
        for member in members:
            if isinstance(member, ast.ChainDecl):
                found.chain(member)
            elif isinstance(member, ast.GroupDecl):
                found.group(member)
        return tuple(found.chains), tuple(found.groups)


def _named(path: ast.HostPath) -> set[str]:
    """Names that a path depends on."""
    found: set[str] = set()
    stack: list[object] = [part.expr for part in path.parts if part.expr is not None]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, tuple):
            stack.extend(node)
        elif hasattr(node, "__dataclass_fields__"):
            stack.extend(getattr(node, name) for name in node.__dataclass_fields__)
    return found

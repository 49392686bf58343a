"""Bindings: hosts, dims, seats and what is between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from frtspec.diag.source import SourceFile
from frtspec.ir import decl as ir
from frtspec.sema.common import named_once, only_one, origin, status
from frtspec.sema.context import Context
from frtspec.sema.hostexpr import HostExprs
from frtspec.sema.links import check_chain, check_group, check_pipeline
from frtspec.sema.scope import Scope, Symbol, declare, reserved
from frtspec.sema.seat import Seats
from frtspec.sema.target import Built
from frtspec.syntax import ast

T = TypeVar("T")

HOST = "FRT0601"


@dataclass
class Bindings:
    """Builds bindings against the structures and pipelines of the run."""

    structures: Mapping[str, Mapping[int, Built]]
    pipelines: Mapping[str, Mapping[int, ast.PipelineDecl]]

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
    seats: dict[str, ir.Seat] = field(default_factory=dict)

    def members(self, kind: type[T]) -> list[T]:
        return [m for m in self.node.members if isinstance(m, kind)]

    def build(self) -> ir.Binding:
        only_one(self.context, self.members(ast.StatusDecl), "status")
        hosts = self.hosts()
        dims = self.read_dims()
        groups = tuple(self.groups())
        if not groups and not self.members(ast.PipelineUse) and "seat" not in self.context.dropped:
            message = f"binding `{self.node.name.id}` places nothing"
            self.context.error("FRT0209", message, self.node.name.span, help="add a seat")
        self.links(self.node.members)
        for use in self.members(ast.PipelineUse):
            check_pipeline(self.context, use, self.world.pipelines, self.seats)
        for name, at in self.dims.items():
            why = "no seat, range or dim reads it: use it or leave it out"
            self.context.unused("dim", name, at.span, why)
        return ir.Binding(
            name=self.node.name.id,
            doc=self.node.doc.text if self.node.doc else "",
            status=status(self.context, self.members(ast.StatusDecl)),
            hosts=hosts,
            dims=dims,
            groups=groups,
            origin=origin(self.source, self.node.span),
            evidence=tuple(m.text.text for m in self.members(ast.EvidenceDecl)),
        )

    # ------------------------------------------------------------ host and dims

    def hosts(self) -> tuple[ir.HostRef, ...]:
        nodes = self.members(ast.HostDecl)
        if not nodes and "host" not in self.context.dropped:
            self.context.error(
                "FRT0209",
                f"binding `{self.node.name.id}` names no host",
                self.node.name.span,
                help='add: host transformers ">=5.0,<6" class LlamaForCausalLM',
            )
        return tuple(self.host(node) for node in nodes)

    def host(self, node: ast.HostDecl) -> ir.HostRef:
        if node.native_module is None and not node.classes and "class" not in self.context.dropped:
            self.context.error(
                HOST,
                f"host `{node.package.id}` names no class of model",
                node.span,
                help="add `class LlamaForCausalLM`; several stand in parentheses",
            )
        named_once(self.context, "class", node.classes)
        if node.versions is not None and not _is_specifier(node.versions.value):
            self.context.error(
                HOST,
                f'"{node.versions.value}" is no range of versions',
                node.versions.span,
                help='write it as pip does: ">=5.0,<6"',
            )
        versions = None if node.versions is None else node.versions.value
        return ir.HostRef(node.package.id, versions, tuple(c.id for c in node.classes))

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
            elif name.id in ("config", "refuse", "true", "false", "none"):
                help = "give the dim another name"
                self.context.error(
                    "FRT0204", f"`{name.id}` means something else", name.span, help=help
                )
            elif declare(self.context, self.names, "dim", name, Symbol("dim", name.span)):
                self.dims[name.id] = name
                out.append((name.id, value))
        return tuple(out)

    # ------------------------------------------------------------ seats

    def groups(self) -> Iterable[ir.EachSeats]:
        """Seats in order; those outside any ``each`` in groups of their own."""
        for member in self.node.members:
            if isinstance(member, ast.EachDecl):
                yield self.each(member)
            elif isinstance(member, ast.SeatDecl):
                seats = self.seat(member, None)
                yield ir.EachSeats(None, None, None, False, None, seats, member.span)

    def each(self, node: ast.EachDecl) -> ir.EachSeats:
        why = reserved(node.index.id)
        if why is not None or node.index.id in self.dims:
            what = "is a dim already" if node.index.id in self.dims else "cannot be an index"
            help = why or "give the index another name"
            self.context.error("FRT0204", f"`{node.index.id}` {what}", node.index.span, help=help)
        outer = HostExprs(self.context, self.dims)
        outer.check(node.range.lo)
        if node.range.hi is None:
            self.context.error("FRT0312", "the range of `each` has an end", node.range.span)
        else:
            outer.check(node.range.hi)
        inner = HostExprs(self.context, self.dims, node.index.id)
        if node.where is not None:
            inner.check(node.where)
        self.context.used.discard(("index", node.index.id))
        seats: tuple[ir.Seat, ...] = ()
        for member in node.members:
            if isinstance(member, ast.SeatDecl):
                seats += self.seat(member, node.index.id)
        self.links(node.members)
        return ir.EachSeats(
            node.index.id,
            node.range.lo,
            node.range.hi,
            node.range.inclusive,
            node.where,
            seats,
            node.span,
        )

    def seat(self, node: ast.SeatDecl, index: str | None) -> tuple[ir.Seat, ...]:
        declare(self.context, self.names, "seat", node.name, Symbol("seat", node.name.span))
        host = HostExprs(self.context, self.dims, index)
        seat = Seats(self.context, self.world.structures, host).build(node)
        if seat is None:
            return ()
        named = _named(node.path)
        if index is not None and index not in named and named <= set(self.dims):
            self.context.error(
                "FRT0205",
                f"seat `{node.name.id}` is at the same place for every `{index}`",
                node.path.span,
                help=f"write {{{index}}} where the number goes in the path, or put the seat "
                "outside `each`",
            )
        self.seats[seat.name] = seat
        return (seat,)

    def links(self, members: Iterable[object]) -> None:
        for member in members:
            if isinstance(member, ast.ChainDecl):
                check_chain(self.context, member, self.names, self.seats, self.world.structures)
            elif isinstance(member, ast.GroupDecl):
                check_group(self.context, member, self.names)


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


def _is_specifier(text: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return bool(text.strip())

"""What joins seats: chains and groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from frtspec.ir import decl as ir
from frtspec.ir import words
from frtspec.ir.types import DTYPES
from frtspec.sema.common import named_once, one_of
from frtspec.sema.context import Context, listing
from frtspec.sema.scope import Scope, Symbol, declare
from frtspec.sema.target import Built
from frtspec.syntax import ast

LINK = "FRT0610"
WIRE, APART, RING = "FRT0643", "FRT0644", "FRT0645"


@dataclass(frozen=True)
class Placed:
    """A seat and the indexes of the ``each`` that it stands in, the outermost first."""

    seat: ir.Seat
    indexes: tuple[str, ...]


@dataclass
class Links:
    """Chains and groups that stand under the same ``each``; ``indexes``: its indexes.

    A chain joins two seats of the same numbers. A group stands with its seats, or outside
    any ``each``: then it holds them for every number.
    """

    context: Context
    names: Scope
    seats: Mapping[str, Placed]
    structures: Mapping[str, Mapping[int, Built]]
    indexes: tuple[str, ...]
    chains: list[ir.Chain] = field(default_factory=list)
    groups: list[ir.SeatGroup] = field(default_factory=list)

    def chain(self, node: ast.ChainDecl) -> None:
        """Both ends are ports of seats that can carry the wire; the facts are known."""
        ends = [
            self.end(node, *node.producer, "output"),
            self.end(node, *node.consumer, "input"),
        ]
        if node.producer[0].id == node.consumer[0].id:
            self.context.error(LINK, "a chain joins two seats", node.span)
        wire = one_of(self.context, "dtype", node.wire, DTYPES)
        facts = self.facts(node.facts, words.WIRE_FACTS)
        if not node.facts:
            self.context.error(
                LINK,
                "a chain has to prove what it relies on",
                node.span,
                help=f"add `require ({', '.join(words.WIRE_FACTS)})`",
            )
        for port in ends:
            if port is not None and wire is not None:
                self.carries(node, port, wire)
        if wire is not None:
            (maker, left), (taker, right) = node.producer, node.consumer
            made = ir.Chain((maker.id, left.id), (taker.id, right.id), wire, facts, node.span)
            self.ordered(made)
            self.chains.append(made)

    def ordered(self, made: ir.Chain) -> None:
        """One value comes in at a port, and none comes back to the seat that it left."""
        first = next((c for c in self.chains if c.consumer == made.consumer), None)
        if first is not None:
            self.context.error(
                RING,
                f"`{'.'.join(made.consumer)}` is already the end of a chain",
                made.span,
                notes=((first.span, "the other chain"),),
                help="leave one of the two out",
            )
            return
        way = self.way(made.consumer[0], made.producer[0])
        if way:
            self.context.error(
                RING,
                f"the chains go round: {' -> '.join([made.producer[0], *way])}",
                made.span,
                help="no host calls seats in such an order: leave one of the chains out",
            )

    def way(self, start: str, end: str) -> list[str]:
        """The seats from ``start`` to ``end`` along the chains; empty: there is no way."""
        ways = {start: [start]}
        for seat in (reached := [start]):
            for chain in self.chains:
                after = chain.consumer[0]
                if chain.producer[0] == seat and after not in ways:
                    ways[after] = [*ways[seat], after]
                    reached.append(after)
        return ways.get(end, []) if start != end else []

    def end(self, node: ast.ChainDecl, seat: ast.Name, port: ast.Name, side: str) -> ir.Port | None:
        """The port at one end, or None when it was reported."""
        placed = self.seats.get(seat.id)
        if placed is None:
            if self.names.find(seat.id) is None:
                self.context.unknown("seat", seat, self.seats)
            return None
        if placed.indexes != self.indexes:
            self.apart(seat, placed)
        name, number = placed.seat.structure
        structure = self.structures[name][number].structure
        seam = placed.seat.seam and structure.seam(placed.seat.seam)
        if seam and port.id in (seam.sources if side == "input" else seam.targets):
            return None  # what a seam's module is handed is in the host's dtype
        ports = {p.name: p for p in (structure.outputs if side == "output" else structure.inputs)}
        if port.id not in ports:
            self.context.unknown(f"{side} of {name}", port, ports)
        return ports.get(port.id)

    def apart(self, seat: ast.Name, placed: Placed) -> None:
        where = listing([f"`each {index}`" for index in placed.indexes]) or "no `each`"
        self.context.error(
            APART,
            f"seat `{seat.id}` stands in {where}: which number of it is meant?",
            seat.span,
            help="put the link into the `each` of the seats that it joins",
        )

    def carries(self, node: ast.ChainDecl, port: ir.Port, wire: str) -> None:
        """A port of the host's dtype can go over any float or quantised wire; another port
        has the dtype that its structure says."""
        own = port.dtype
        if own == "host" and DTYPES[wire][0] in ("float", "quantised"):
            return
        if own != wire:
            self.context.error(
                WIRE,
                f"`{port.name}` is {own}: it can't go over a wire of {wire}",
                node.wire.span,
                help=f"write `wire {own}`" if own != "host" else "a wire is of a float dtype",
            )

    def group(self, node: ast.GroupDecl) -> None:
        """The seats exist, each once; the writer is one of the ways to choose one."""
        declare(self.context, self.names, "group", node.name, Symbol("group", node.name.span))
        named_once(self.context, "seat", node.seats)
        known = [n for n, s in self.names.names.items() if s.kind == "seat"]
        for seat in node.seats:
            placed = self.seats.get(seat.id)
            if seat.id not in known:
                self.context.unknown("seat", seat, known)
            elif placed is not None and self.indexes and placed.indexes != self.indexes:
                self.apart(seat, placed)
        if node.writer.id not in ("first_called", *(s.id for s in node.seats)):
            message = f"`{node.writer.id}` cannot be the writer"
            help = f"first_called, or one of {listing([s.id for s in node.seats])}"
            self.context.error(LINK, message, node.writer.span, help=help)
        facts = self.facts(node.facts, words.GROUP_FACTS)
        names = tuple(seat.id for seat in node.seats)
        self.groups.append(ir.SeatGroup(node.name.id, names, node.writer.id, facts, node.span))

    def facts(self, nodes: tuple[ast.Name, ...], known: Mapping[str, str]) -> tuple[str, ...]:
        named_once(self.context, "fact", nodes)
        found = [one_of(self.context, "fact", fact, known) for fact in nodes]
        return tuple(fact for fact in found if fact is not None)

"""Where a structure's full boundary lies on the host."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.ir import decl as ir
from frtspec.sema.common import named_once
from frtspec.sema.context import Context
from frtspec.sema.hostexpr import HostExprs
from frtspec.sema.places import Places
from frtspec.sema.settings import Settings
from frtspec.sema.target import Target
from frtspec.sema.views import Views
from frtspec.syntax import ast

BOUNDARY = "FRT0607"
PORT = "input or output"


@dataclass
class Boundaries:
    """Builds the boundary of one seat."""

    context: Context
    seat: ast.SeatDecl
    target: Target
    host: HostExprs
    settings: Settings
    places: Places

    def build(self, node: ast.BoundaryDecl | None, siblings: bool) -> ir.BoundaryRef | None:
        """The boundary; None for siblings, whose members are its ends."""
        if node is None:
            left_open = siblings or self.context.imported
            if not left_open and "boundary" not in self.context.dropped:
                self.absent()
            return None
        if node.none_reason is not None:
            if self.target.seam is None:
                self.context.error(
                    BOUNDARY,
                    f"a seat on the whole of {self.target.text} has a boundary: its module's own",
                    node.span,
                    help="write `boundary at PATH { x = input, y = output }`",
                )
            return ir.BoundaryRef(None, (), (), (), node.none_reason.value, node.span)
        if node.path is None:
            self.absent()
            return None
        self.host.path(node.path)
        inputs, outputs = self.ports(node)
        views = Views(self.context, self.target, self.host, slots=self.outer_slots())
        slots = views.build(node.slots)
        for slot in self.outer_slots():
            needed = self.settings.needed(slot) and not self.context.misspelt("slot", slot.name)
            if needed and slot.name not in views.given and slot.name not in self.context.dropped:
                self.context.error(
                    "FRT0604",
                    f"the boundary has no place for the slot `{slot.name}`",
                    node.path.span,
                    help=f"add `slot {slot.name} = ….weight`",
                )
        return ir.BoundaryRef(node.path, inputs, outputs, slots, None, node.span)

    def absent(self) -> None:
        example = "boundary at PATH { x = input, y = output }"
        other = ', or `boundary none "reason"` where the host has no such place'
        self.context.error(
            BOUNDARY,
            f"seat `{self.seat.name.id}` does not say where the boundary of "
            f"{self.target.structure.name} lies",
            self.seat.name.span,
            help=f"add `{example}`{other if self.target.seam else ''}",
        )

    def outer_slots(self) -> tuple[ir.Slot, ...]:
        """Slots of the structure that the seat itself does not fill."""
        inner = {s.name for s in self.target.slots}
        return tuple(s for s in self.target.structure.slots if s.name not in inner)

    def ports(
        self, node: ast.BoundaryDecl
    ) -> tuple[tuple[tuple[str, ir.PlaceRef], ...], tuple[tuple[str, ir.PlaceRef], ...]]:
        structure = self.target.structure
        named_once(self.context, "port", [name for name, _ in node.ports])
        known = {p.name: p for p in (*structure.inputs, *structure.outputs)}
        found: dict[str, dict[str, ir.PlaceRef]] = {"in": {}, "out": {}}
        for name, place in node.ports:
            port = known.get(name.id)
            if port is None:
                self.context.unknown(PORT, name, known)
                continue
            handed_on = place.kind == "arg" and self.places.routed(place)
            if port.direction == "out" and place.kind != "output" and not handed_on:
                message = f"`{name.id}` is an output: it is the output of a module"
                self.context.error(BOUNDARY, message, place.span, help="write `output of …`")
            found[port.direction][name.id] = self.places.of(place, port)
        absent = {p.name for p in structure.inputs if p.optional} - found["in"].keys()
        for port in known.values():
            needed = self.settings.needed(port, absent)
            lost = port.name not in found[port.direction] and port.name not in self.context.dropped
            if needed and lost and not self.context.misspelt(PORT, port.name):
                example = "input of …" if port.direction == "in" else "output"
                self.context.error(
                    BOUNDARY,
                    f"the boundary does not say where `{port.name}` is",
                    node.path.span if node.path else node.span,
                    help=f"add `{port.name} = {example}`",
                )
        return tuple(found["in"].items()), tuple(found["out"].items())

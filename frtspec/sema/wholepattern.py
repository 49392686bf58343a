"""Whether a `discover` block says all that a seat needs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from frtspec.diag.source import Span
from frtspec.ir import decl as ir
from frtspec.ir.expr import AxisIs
from frtspec.ir.walk import conditions
from frtspec.sema.context import Context
from frtspec.sema.target import Target
from frtspec.syntax import ast

FILLED, PLACES, OPEN = "FRT0741", "FRT0743", "FRT0744"


@dataclass
class Whole:
    """``held``: slots that a role holds; ``boundary``: as written; ``at``: what a finding about
    all of it points to."""

    context: Context
    target: Target
    found: ir.Discover
    boundary: ast.DiscoverBoundary | None
    held: Collection[str]
    at: Span

    def check(self) -> None:
        """Slots without a role, points and ports without a place, variants nobody tells."""
        found, boundary, at = self.found, self.boundary, self.at
        outer = boundary is not None and found.around
        wanted = self.target.structure.slots if outer else self.target.slots
        fixed = dict(found.variants)
        for slot in wanted:
            impossible = _ruled_out(slot, fixed)
            optional = slot.optional or impossible
            if slot.name not in self.held and not optional and not self.dropped(slot.name):
                self.context.error(
                    FILLED,
                    f"no role holds the slot `{slot.name}`",
                    at,
                    help=f"add `role NAME : linear ({slot.name})`, or the kind that it is",
                )
        placed = {name for name, _ in (*found.points, *found.placeless)}
        for point in self.target.points:
            there = point.defined and point.kind == "statistic"
            if point.name in placed or _ruled_out(point, fixed) or not there:
                continue
            self.context.error(
                PLACES,
                f"the pattern does not say where the point `{point.name}` lies",
                at,
                help=f"add `point {point.name} = input of ROLE`",
            )
        if boundary is not None:
            self.ports(boundary, fixed)
        elif self.target.seam is None and not any(role.index for role in found.roles):
            self.context.error(
                PLACES,
                "the pattern does not say where inputs and outputs lie",
                at,
                help="add `boundary at seat { x = input, y = output }`",
            )
        self.variants()

    def ports(self, boundary: ast.DiscoverBoundary, fixed: dict[str, str]) -> None:
        if self.context.guessing:  # a port, or what decides whether it is there, is misspelt
            return
        structure = self.target.structure
        given = {name for name, _ in self.found.ports}
        for port in (*structure.inputs, *structure.outputs):
            absent = port.optional or port.when is not None
            if port.name not in given and not absent and not _ruled_out(port, fixed):
                self.context.error(
                    PLACES,
                    f"the boundary does not say where `{port.name}` lies",
                    boundary.span,
                    help=f"add `{port.name} = input` or `{port.name} = output of ROLE`",
                )

    def variants(self) -> None:
        """An axis that the seat's own module can't show has to be set or told. Where only a
        run shows the sizes, it also decides the variants, at the boundary."""
        found, seam = self.found, self.target.seam
        if seam is None or (found.dims and found.around):
            return
        known = {*dict(found.variants), *(axis for role in found.roles for axis, _ in role.tells)}
        for role in found.roles:
            for held in role.parameters:
                known |= {t.axis for t in conditions(held.when) if isinstance(t, AxisIs)}
        for axis in self.target.structure.variants:
            if axis.name in (*seam.variants, *known) or axis.default is not None:
                continue
            self.context.error(
                OPEN,
                f"nothing tells variant `{axis.name}`: it lies outside {self.target.text}",
                self.at,
                help=f"set it: `variant {axis.name} = {axis.values[0]}`, or let a role around "
                "the seat tell it",
            )

    def dropped(self, name: str) -> bool:
        context = self.context
        return context.variants_guessed or name in context.dropped or context.misspelt("slot", name)


def _ruled_out(item: ir.Slot | ir.Point | ir.Port, fixed: dict[str, str]) -> bool:
    """Whether the variants that the pattern sets leave no place for an item."""
    tests = [t for t in conditions(item.when) if isinstance(t, AxisIs) and t.axis in fixed]
    return isinstance(item.when, AxisIs) and any(fixed[t.axis] not in t.values for t in tests)

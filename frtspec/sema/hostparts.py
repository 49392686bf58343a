"""Where a seat's parts of the host are: modules that are called in turn, and where the part
begins and ends in the last of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frtspec.diag.source import Span
from frtspec.ir import decl as ir
from frtspec.sema.common import named_once
from frtspec.sema.context import Context, listing
from frtspec.sema.hostexpr import HostExprs
from frtspec.sema.places import Places
from frtspec.sema.target import Target
from frtspec.syntax import ast

PART = "FRT0422"
RESULT = "result"


@dataclass
class HostParts:
    """Builds the parts of one seat."""

    context: Context
    target: Target
    host: HostExprs
    places: Places
    form: str

    def build(self, nodes: Sequence[ast.PartMap]) -> tuple[ir.PartRef, ...]:
        known = {part.name: part for part in self.target.structure.parts}
        named_once(self.context, "part", [node.part for node in nodes])
        out: dict[str, ir.PartRef] = {}
        for node in nodes:
            for path in node.paths:
                self.host.path(path)
            if node.part.id not in known:
                self.context.unknown("part", node.part, known)
                continue
            if self.form != "block":
                message = "parts are handed to a form that stands for a whole block"
                self.bad(message, node.part.span, "write `form block` in this seat")
            out.setdefault(node.part.id, self.part(node, known[node.part.id]))
        return tuple(out.values())

    def part(self, node: ast.PartMap, part: ir.Part) -> ir.PartRef:
        named_once(self.context, "argument", node.given)
        named_once(self.context, "place", [name for name, _ in node.places])
        places = {name.id: self.places.of(place) for name, place in node.places}
        result = places.pop(RESULT, None)
        for name, place in node.places:
            wanted = "input" if name.id == RESULT else "output"
            if name.id not in (*part.params, RESULT):
                self.context.unknown(f"argument of {part.name}", name, (*part.params, RESULT))
            elif place.kind != wanted or place.path is None:
                how = f"{name.id} = {wanted} of …"
                message = f"`{name.id}` is where the part {_ENDS[wanted]}: a module inside it"
                self.bad(message, place.span, f"write {how}")
        missing = [name for name in part.params if name not in places]
        if node.places and (missing or result is None):
            lost = listing([f"`{name}`" for name in (*missing, *([] if result else [RESULT]))])
            message = f"the part `{part.name}` does not say where {lost} is"
            self.bad(message, node.span, "give a place to every argument, and to the result")
        elif not node.places and len(part.params) != 1:
            message = (
                f"`{part.name}` takes {listing(part.params)}: a module called for it takes one"
            )
            self.bad(message, node.span, "say in braces which modules inside give them")
        if len(part.results) != 1:
            self.bad(f"`{part.name}` has several results", node.span, "a part here has one")
        given = tuple(name.id for name in node.given)
        return ir.PartRef(part.name, node.paths, given, tuple(places.items()), result, node.span)

    def bad(self, message: str, span: Span, help: str) -> None:
        self.context.error(PART, message, span, help=help)


_ENDS = {"output": "begins", "input": "ends"}

"""Where values lie on the host: at a module, or at the function of a route."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.ir import decl as ir
from frtspec.ir import words
from frtspec.sema.common import one_of
from frtspec.sema.context import Context
from frtspec.sema.hostexpr import HostExprs
from frtspec.syntax import ast

PLACE = "FRT0642"


@dataclass(frozen=True)
class Places:
    """Reads the places of one seat. ``route``: the function that the seat is routed at."""

    context: Context
    host: HostExprs
    route: ir.RouteRef | None = None

    def of(self, node: ast.Place, port: ir.Port | None = None) -> ir.PlaceRef:
        """A place as data; ``port``: what lies there, for the places of a boundary."""
        routed = self.routed(node)
        if routed:
            self.function(node)
        elif node.path is not None:
            self.host.path(node.path)
        layout = None
        if node.layout is not None:
            layout = one_of(self.context, "layout of a port", node.layout, words.PORT_LAYOUTS)
            if layout is not None and port is not None:
                self.fits(node.layout, layout, port)
        return ir.PlaceRef(
            node.kind,
            None if routed else node.path,
            None if node.arg is None else node.arg.id,
            None if node.item is None else int(node.item.value),
            layout,
            routed,
            node.span,
        )

    def routed(self, node: ast.Place) -> bool:
        """Whether a place is at the routed function: `of` its name."""
        return (
            self.route is not None
            and node.path is not None
            and node.path.text == self.route.name
            and all(part.expr is None for part in node.path.parts)
        )

    def function(self, node: ast.Place) -> None:
        """What is handed to the function, or what it returns."""
        assert self.route is not None
        args = [name for name, _ in self.route.args]
        if node.kind == "input":
            self.context.error(
                PLACE,
                f"`{self.route.name}` is a function: say which argument is meant",
                node.span,
                help=f"write `arg {args[0]} of {self.route.name}`",
            )
        elif node.arg is not None and node.arg.id not in args:
            what = f"argument of {self.route.name}"
            self.context.unknown(what, node.arg, args, code=PLACE)

    def fits(self, name: ast.Name, layout: str, port: ir.Port) -> None:
        """Whether a value of this many axes can be laid out so."""
        wanted = {"heads_first": 4, "tokens_first": 4}.get(layout)
        axes = len(port.shape)
        if layout == "flat_heads" and (axes < 3 or port.shape[0].rows):
            self.bad(name, f"`{port.name}` has no heads to flatten")
        elif wanted is not None and axes != wanted:
            self.bad(name, f"`{port.name}` has {axes} axes, not {wanted}")

    def bad(self, name: ast.Name, message: str) -> None:
        help = f"{name.id}: {words.PORT_LAYOUTS[name.id]}"
        self.context.error(PLACE, message, name.span, help=help)

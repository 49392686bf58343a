"""Members of a `discover` block."""

from __future__ import annotations

from typing import Any

from frtspec.syntax import ast
from frtspec.syntax.build_pipeline import PipelineBuilder
from frtspec.syntax.nodes import Node


class DiscoverBuilder(PipelineBuilder):
    def discover(self, tree: Node) -> ast.DiscoverDecl:
        seam, block = tree.children
        return ast.DiscoverDecl(self.maybe_name(seam), self.many(block.children), self.span(tree))

    def role(self, tree: Node) -> ast.RoleDecl:
        name, index, kind, slots, *modifiers = tree.children
        given: dict[str, Any] = {}
        tells = self.many(m for m in modifiers if m.rule == "role_tells")
        for modifier in modifiers:
            if modifier.rule == "role_tells":
                continue
            key = "where" if modifier.rule != "role_gives" else "gives"
            if key in given:
                self.report(
                    "FRT0116",
                    f"`{name.text}` says this twice",
                    self.span(modifier),
                    help="keep one of the two",
                )
                continue
            given[key] = self.build(modifier)
        return ast.RoleDecl(
            name=self.name(name),
            index=self.maybe_name(index),
            kind=self.name(kind),
            slots=() if slots is None else self.many(slots.children),
            where=given.get("where", "below"),
            tells=tells,
            gives=given.get("gives"),
            span=self.span(tree),
        )

    def role_slot(self, tree: Node) -> ast.RoleSlot:
        name, chunks = tree.children
        if chunks is not None and name.text != "chunks":
            self.report(
                "FRT0116",
                f"`{name.text}` is no way to hold several slots",
                self.span(name),
                help="several slots in one parameter are written `chunks(w_gate, w_up)`",
            )
        names = () if chunks is None else self.names(chunks)
        return ast.RoleSlot(self.name(name), names, self.span(tree))

    def at_seat(self, tree: Node) -> str:
        return "at"

    def around_seat(self, tree: Node) -> str:
        return "around"

    def role_called(self, tree: Node) -> ast.CalledDecl:
        role, names = tree.children
        return ast.CalledDecl(self.name(role), self.names(names), self.span(tree))

    def role_tells(self, tree: Node) -> ast.TellsDecl:
        axis, arms = tree.children
        return ast.TellsDecl(
            self.name(axis), () if arms is None else self.many(arms.children), self.span(tree)
        )

    def role_gives(self, tree: Node) -> ast.Name:
        return self.name(tree.children[0])

    def role_point(self, tree: Node) -> ast.RolePoint:
        point, place = tree.children
        return ast.RolePoint(self.name(point), self.build(place), self.span(tree))

    def role_input(self, tree: Node) -> ast.RolePlace:
        _, role = tree.children
        return ast.RolePlace("input", self.maybe_name(role), None, self.span(tree))

    def role_output(self, tree: Node) -> ast.RolePlace:
        (role,) = tree.children
        return ast.RolePlace("output", self.maybe_name(role), None, self.span(tree))

    def role_arg(self, tree: Node) -> ast.RolePlace:
        arg, role = tree.children
        return ast.RolePlace("arg", self.maybe_name(role), self.name(arg), self.span(tree))

    def discover_boundary(self, tree: Node) -> ast.DiscoverBoundary:
        where, block = tree.children
        ports = tuple(
            (self.name(port.children[0]), self.build(port.children[1])) for port in block.children
        )
        return ast.DiscoverBoundary(self.build(where), ports, self.span(tree))

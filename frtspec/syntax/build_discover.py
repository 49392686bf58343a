"""Members of a `discover` block."""

from __future__ import annotations

from dataclasses import replace
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
        return self._place("input", role, None, None, tree)

    def role_output(self, tree: Node) -> ast.RolePlace:
        item, role = tree.children
        return self._place("output", role, None, item, tree)

    def role_arg(self, tree: Node) -> ast.RolePlace:
        arg, item, role = tree.children
        return self._place("arg", role, arg, item, tree)

    def _place(self, kind: str, role: Any, arg: Any, item: Any, tree: Node) -> ast.RolePlace:
        return ast.RolePlace(
            kind=kind,
            role=self.maybe_name(role),
            arg=self.maybe_name(arg),
            item=None if item is None else self.whole(item, "item"),
            layout=None,
            span=self.span(tree),
        )

    def discover_dims(self, tree: Node) -> ast.DiscoverDims:
        return ast.DiscoverDims(self.names(tree.children[0]), self.span(tree))

    def discover_port(self, tree: Node) -> tuple[ast.Name, ast.RolePlace]:
        name, place, layout = tree.children
        built = replace(self.build(place), layout=self.maybe_name(layout))
        return self.name(name), built

    def discover_boundary(self, tree: Node) -> ast.DiscoverBoundary:
        where, block = tree.children
        return ast.DiscoverBoundary(self.build(where), self.many(block.children), self.span(tree))

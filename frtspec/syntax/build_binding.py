"""Members of bindings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from frtspec.syntax import ast
from frtspec.syntax.build_impl import ImplBuilder
from frtspec.syntax.nodes import Node, Token


class BindingBuilder(ImplBuilder):
    def host(self, tree: Node) -> ast.HostDecl:
        package, versions, classes, module = tree.children
        return ast.HostDecl(
            package=self.name(package),
            versions=self.maybe_string(versions),
            classes=() if classes is None else self.names(classes.children[0]),
            native_module=None if module is None else self.string(module.children[0]),
            span=self.span(tree),
        )

    def dims(self, tree: Node) -> ast.DimsDecl:
        return ast.DimsDecl(self.many(tree.children[0].children), self.span(tree))

    def dim_set(self, tree: Node) -> tuple[ast.Name, ast.Expr]:
        token, number, value = tree.children
        name = self.name(token)
        if number is not None:
            member = self.whole(number, "index")
            name = ast.Name(f"{name.id}[{member.value}]", name.span.to(member.span))
        return name, self.build(value)

    def each_seats(self, tree: Node) -> ast.EachDecl:
        index, bounds, where, block = tree.children
        return ast.EachDecl(
            index=self.name(index),
            range=self.build(bounds),
            where=self.maybe(where),
            members=self.many(block.children),
            span=self.span(tree),
        )

    def seat(self, tree: Node) -> ast.SeatDecl:
        name, target, path, when, block = tree.children
        return ast.SeatDecl(
            name=self.name(name),
            target=self.struct_ref(target),
            path=self.path_literal(path),
            when=self.maybe(when),
            members=self.many(block.children),
            span=self.span(tree),
        )

    # ------------------------------------------------------------ members of a seat

    def variant_set(self, tree: Node) -> ast.VariantSet:
        axis, value = tree.children
        return ast.VariantSet(self.name(axis), self.build(value), self.span(tree))

    def param_set(self, tree: Node) -> ast.ParamSet:
        name, value = tree.children
        return ast.ParamSet(self.name(name), self.build(value), self.span(tree))

    def slot_map(self, tree: Node) -> ast.SlotMap:
        slot, index, view, layout = tree.children
        return ast.SlotMap(
            slot=self.name(slot),
            index=None if index is None else self.whole(index, "index"),
            value=self.view(view),
            layout=self.maybe_name(layout),
            span=self.span(tree),
        )

    sibling = slot_map

    def view(self, tree: Node) -> ast.HostPath | ast.Call:
        """A parameter's path, or a view such as ``chunks(path, scale, shift)``.

        ``zeros`` and ``ones`` are views with or without parentheses.
        """
        head, called = tree.children
        if called is None and head.text not in ("zeros", "ones"):
            return self.path_literal(head)
        args = () if called is None else called.children
        if "." in head.text:
            self.report(
                "FRT0116",
                f"`{head.text}` is no view of a weight",
                self.span(head),
                help="the views are zeros, ones, transpose, chunks and expert",
            )
        values = tuple(
            ast.Arg(self._view_arg(arg), None, self.span(arg)) for arg in args if arg is not None
        )
        return ast.Call(self.name(head), values, self.span(tree))

    def _view_arg(self, token: Token) -> Any:
        return self.number(token) if token.kind == "NUMBER" else self.path_literal(token)

    def point_none(self, tree: Node) -> ast.PointNone:
        point, reason = tree.children
        return ast.PointNone(self.name(point), self.string(reason), self.span(tree))

    def point_map(self, tree: Node) -> ast.PointMap:
        point, place = tree.children
        return ast.PointMap(self.name(point), self.build(place), self.span(tree))

    def place_input(self, tree: Node) -> ast.Place:
        _, path = tree.children
        return ast.Place("input", self.maybe_path(path), None, None, None, self.span(tree))

    def place_output(self, tree: Node) -> ast.Place:
        item, path = tree.children
        return ast.Place(
            "output", self.maybe_path(path), None, self._item(item), None, self.span(tree)
        )

    def place_arg(self, tree: Node) -> ast.Place:
        name, item, path = tree.children
        return ast.Place(
            "arg", self.maybe_path(path), self.name(name), self._item(item), None, self.span(tree)
        )

    def _item(self, token: Any) -> ast.Number | None:
        return None if token is None else self.whole(token, "item")

    def boundary_at(self, tree: Node) -> ast.BoundaryDecl:
        path, block = tree.children
        ports = []
        slots = []
        for item in block.children:
            if item.rule == "boundary_port":
                name, place, layout = item.children
                built = replace(self.build(place), layout=self.maybe_name(layout))
                ports.append((self.name(name), built))
            else:
                slots.append(self._boundary_slot(item))
        return ast.BoundaryDecl(
            self.path_literal(path), tuple(ports), tuple(slots), None, self.span(tree)
        )

    def part_map(self, tree: Node) -> ast.PartMap:
        name, paths, given, block = tree.children
        places = []
        for item in () if block is None else block.children:
            if item.rule != "boundary_port":
                self.report("FRT0102", "a weight is not expected here", self.span(item))
                continue
            port, place, layout = item.children
            built = replace(self.build(place), layout=self.maybe_name(layout))
            places.append((self.name(port), built))
        return ast.PartMap(
            part=self.name(name),
            paths=tuple(self.path_literal(path) for path in paths.children),
            given=() if given is None else self.names(given),
            places=tuple(places),
            span=self.span(tree),
        )

    def _boundary_slot(self, tree: Node) -> ast.SlotMap:
        word, slot, index, view, layout = tree.children
        if word.text != "slot":
            self.report(
                "FRT0102",
                f"`{word.text}` is not expected here",
                self.span(word),
                help=f"a weight of the boundary is written `slot {slot.text} = …`",
            )
        return ast.SlotMap(
            slot=self.name(slot),
            index=None if index is None else self.whole(index, "index"),
            value=self.view(view),
            layout=self.maybe_name(layout),
            span=self.span(tree),
        )

    def boundary_none(self, tree: Node) -> ast.BoundaryDecl:
        reason = self.string(tree.children[0])
        return ast.BoundaryDecl(None, (), (), reason, self.span(tree))

    def expect(self, tree: Node) -> ast.ExpectDecl:
        fact, values, of = tree.children
        paths = () if of is None else tuple(self.path_literal(path) for path in of.children)
        return ast.ExpectDecl(self.name(fact), self.names(values), paths, self.span(tree))

    def siblings(self, tree: Node) -> ast.SiblingsDecl:
        facts, block = tree.children
        return ast.SiblingsDecl(
            () if facts is None else self.names(facts),
            self.many(block.children),
            self.span(tree),
        )

    # ------------------------------------------------------------ between seats

    def chain(self, tree: Node) -> ast.ChainDecl:
        maker, port, taker, entry, wire, facts = tree.children
        return ast.ChainDecl(
            producer=(self.name(maker), self.name(port)),
            consumer=(self.name(taker), self.name(entry)),
            wire=self.name(wire),
            facts=() if facts is None else self.names(facts),
            span=self.span(tree),
        )

    def group(self, tree: Node) -> ast.GroupDecl:
        name, seats, writer, facts = tree.children
        return ast.GroupDecl(
            self.name(name),
            self.names(seats),
            self.name(writer),
            () if facts is None else self.names(facts),
            self.span(tree),
        )

    def export(self, tree: Node) -> ast.ExportDecl:
        target, items = tree.children
        return ast.ExportDecl(self.name(target), self.many(items.children), self.span(tree))

    def export_item(self, tree: Node) -> ast.ExportItem:
        key, sub, value = tree.children
        return ast.ExportItem(
            self.name(key), self.maybe_name(sub), self.string(value), self.span(tree)
        )

"""Members of a structure and the statements of its reference."""

from __future__ import annotations

from typing import Any

from frtspec.syntax import ast
from frtspec.syntax.exprs import ExprBuilder
from frtspec.syntax.nodes import Node


class StructureBuilder(ExprBuilder):
    def status(self, tree: Node) -> ast.StatusDecl:
        name, reason = tree.children
        return ast.StatusDecl(self.name(name), self.maybe_string(reason), self.span(tree))

    def evidence(self, tree: Node) -> ast.EvidenceDecl:
        (token,) = tree.children
        if token.kind == "STRING":
            text = self.string(token)
            return ast.EvidenceDecl(
                ast.Docstring(text.value, token.text, text.span), self.span(tree)
            )
        return ast.EvidenceDecl(self.docstring(token), self.span(tree))

    def dim(self, tree: Node) -> ast.DimDecl:
        names = tuple(
            (self.name(item.children[0]), self.maybe_name(item.children[1]))
            for item in tree.children
        )
        return ast.DimDecl(names, self.span(tree))

    def index(self, tree: Node) -> ast.IndexDecl:
        name, bounds = tree.children
        return ast.IndexDecl(self.name(name), self.build(bounds), self.span(tree))

    def param(self, tree: Node) -> ast.ParamDecl:
        name, default, limits = tree.children
        least, most = (None, None) if limits is None else limits.children
        return ast.ParamDecl(
            self.name(name),
            self.maybe(default),
            self.maybe(least),
            self.maybe(most),
            self.span(tree),
        )

    # ------------------------------------------------------------ tensors

    def _shaped(
        self, tree: Node, indexed: bool
    ) -> tuple[ast.Name, ast.Name | None, bool, tuple[ast.DimItem, ...] | None]:
        """(name, index, optional, dims) of ``w``, ``w?``, ``w [K]``, ``w[i] [K]``, ``w[i]? [K]``.

        ``indexed``: a lone bracket list is the index, since the shape is given otherwise.
        """
        name = self.name(tree.children[0])
        rest = [child for child in tree.children[1:] if child is not None]
        brackets = [child for child in rest if isinstance(child, Node)]
        marks = [child for child in rest if not isinstance(child, Node)]
        if len(brackets) == 2:
            return name, self._index_name(brackets[0]), bool(marks), self._dims(brackets[1])
        if brackets and indexed:
            return name, self._index_name(brackets[0]), bool(marks), None
        if marks and brackets and rest[0] is brackets[0]:
            self.report(
                "FRT0116",
                "`?` belongs directly after the name",
                self.span(marks[0]),
                help=f"write `{name.id}? [...]`",
            )
        return name, None, bool(marks), self._dims(brackets[0]) if brackets else None

    def _dims(self, bracket: Any) -> tuple[ast.DimItem, ...]:
        return self.many(child for child in bracket.children if child is not None)

    def _index_name(self, bracket: Any) -> ast.Name | None:
        dims = self._dims(bracket)
        only = dims[0].alternatives if len(dims) == 1 and not dims[0].rows else ()
        if len(only) == 1 and isinstance(only[0], ast.Name):
            return only[0]
        self.report(
            "FRT0116",
            "the first of two brackets holds the index of a repeated tensor",
            self.span(bracket),
            help="write `w[i] [K, N]`, or one bracket list for the whole shape",
        )
        return None

    def type(self, tree: Node) -> ast.TypeRef:
        name, scale = tree.children
        return ast.TypeRef(self.name(name), self.maybe_name(scale), self.span(tree))

    def port_in(self, tree: Node) -> ast.PortDecl:
        return self._port("in", tree)

    def port_out(self, tree: Node) -> ast.PortDecl:
        return self._port("out", tree)

    def _port(self, direction: str, tree: Node) -> ast.PortDecl:
        shaped, *modifiers = tree.children
        name, index, optional, dims = self._shaped(shaped, indexed=False)
        given: dict[str, Any] = {}
        for modifier in modifiers:
            kind = modifier.rule
            if kind in given:
                self.report(
                    "FRT0116",
                    f"`{name.id}` says this twice",
                    self.span(modifier),
                    help="keep one of the two",
                )
                continue
            given[kind] = self.build(modifier)
        if dims is None:
            self.report(
                "FRT0115",
                f"`{name.id}` has no shape",
                name.span,
                help=f"write its dims: `{direction} {name.id} [rows M, D] : host`",
            )
        if "port_type" not in given:
            self.report(
                "FRT0115",
                f"`{name.id}` has no dtype",
                self.span(shaped),
                help="add `: host` for the host's dtype, or one such as `: f32`",
            )
        type_ = given.get("port_type") or ast.TypeRef(ast.Name("host", name.span), None, name.span)
        return ast.PortDecl(
            direction=direction,
            name=name,
            index=index,
            optional=optional,
            dims=dims or (),
            type=type_,
            default=given.get("port_default"),
            updates=given.get("updates"),
            aliases=given.get("aliases"),
            when=given.get("when"),
            span=self.span(tree),
        )

    def port_type(self, tree: Node) -> ast.TypeRef:
        return self.type(tree.children[0])

    def port_default(self, tree: Node) -> ast.Expr:
        value: ast.Expr = self.build(tree.children[0])
        return value

    def updates(self, tree: Node) -> ast.Name:
        return self.name(tree.children[0])

    aliases = updates

    def when(self, tree: Node) -> ast.Expr:
        condition: ast.Expr = self.build(tree.children[0])
        return condition

    def slot(self, tree: Node) -> ast.SlotDecl:
        shaped, kind, when = tree.children
        of_structure = kind is not None and kind.rule == "slot_structure"
        name, index, optional, dims = self._shaped(shaped, indexed=of_structure)
        if dims is None and not of_structure:
            self.report(
                "FRT0115",
                f"slot `{name.id}` has no shape",
                name.span,
                help=f"write its dims: `slot {name.id} [D, F]`",
            )
        return ast.SlotDecl(
            name=name,
            index=index,
            optional=optional,
            dims=dims if of_structure else dims or (),
            type=None if kind is None or of_structure else self.build(kind),
            structure=self.build(kind.children[0]) if of_structure else None,
            pins=self._pins(kind.children[1]) if of_structure else (),
            when=self.maybe(when),
            span=self.span(tree),
        )

    def _pins(self, tree: Node | None) -> tuple[ast.Expr, ...]:
        return () if tree is None else self.many(tree.children)

    def struct_ref(self, tree: Node) -> ast.StructRef:
        name, seam, version = tree.children
        return ast.StructRef(
            self.name(name), self.maybe_name(seam), self.maybe(version), self.span(tree)
        )

    def version(self, tree: Node) -> ast.Number:
        return self.whole(tree.children[0], "version")

    def part(self, tree: Node) -> ast.PartDecl:
        name, params, results, when = tree.children
        return ast.PartDecl(
            self.name(name),
            tuple(self.name(token) for token in params.children if token is not None),
            self.names(results),
            self.maybe(when),
            self.span(tree),
        )

    # ------------------------------------------------------------ variants, points, seams

    def variant(self, tree: Node) -> ast.VariantDecl:
        name, values, default, retired = tree.children
        return ast.VariantDecl(
            self.name(name),
            self.names(values),
            None if default is None else self.name(default.children[0]),
            () if retired is None else self.names(retired.children[0]),
            self.span(tree),
        )

    def combinations(self, tree: Node) -> ast.CombinationsDecl:
        (block,) = tree.children
        excluded = self.many(child for child in block.children if child is not None)
        return ast.CombinationsDecl(excluded, self.span(tree))

    def point_decl(self, tree: Node) -> ast.PointDecl:
        name, kind, was, when = tree.children
        return ast.PointDecl(
            self.name(name), self.name(kind), self.maybe(when), self.span(tree), self.maybe(was)
        )

    def was(self, tree: Node) -> ast.Name:
        return self.name(tree.children[0])

    def seam(self, tree: Node) -> ast.SeamDecl:
        name, block = tree.children
        sources, targets, *gates = block.children
        metrics = tuple(self.metric(item) for gate in gates for item in gate.children)
        return ast.SeamDecl(
            self.name(name), self.names(sources), self.names(targets), metrics, self.span(tree)
        )

    def metric(self, tree: Node) -> ast.Metric:
        name, op, bound = tree.children
        return ast.Metric(
            self.name(name),
            None if op is None else op.text,
            None if bound is None else self.number(bound),
            self.span(tree),
        )

    def gate(self, tree: Node) -> ast.GateDecl:
        kind, on, per, block = tree.children
        metrics, including, against = self.gate_items(block)
        return ast.GateDecl(
            kind=self.name(kind),
            on=None if on is None else self.name(on.children[0]),
            per=None if per is None else self.name(per.children[1]),
            metrics=metrics,
            including=including,
            against=against,
            span=self.span(tree),
        )

    def gate_items(
        self, block: Node
    ) -> tuple[tuple[ast.Metric, ...], ast.Name | None, tuple[ast.Name, ...]]:
        """The metrics of a gate, what they include, and the baselines."""
        metrics: list[ast.Metric] = []
        including: ast.Name | None = None
        against: tuple[ast.Name, ...] = ()
        for item in block.children:
            if item.rule == "gate_including":
                metrics.append(ast.Metric(self.name(item.children[0]), None, None, self.span(item)))
                including = self.name(item.children[1])
            elif item.rule == "gate_against":
                against = self.names(item.children[1])
            else:
                metrics.append(self.metric(item))
        return tuple(metrics), including, against

    def qualify(self, tree: Node) -> ast.QualifyDecl:
        form, when, rules = tree.children
        return ast.QualifyDecl(
            self._rule_for(form), self.maybe(when), self.many(rules.children), self.span(tree)
        )

    def require(self, tree: Node) -> ast.RequireDecl:
        form, when, rules = tree.children
        return ast.RequireDecl(
            self._rule_for(form), self.maybe(when), self.many(rules.children), self.span(tree)
        )

    def _rule_for(self, tree: Node | None) -> ast.Name | None:
        return None if tree is None else self.name(tree.children[0])

    # ------------------------------------------------------------ reference

    def reference(self, tree: Node) -> ast.ReferenceDecl:
        return ast.ReferenceDecl(self.many(tree.children[0].children), self.span(tree))

    def _definition(self, kind: str, tree: Node) -> ast.LetStmt:
        name, index, value, *conditions = tree.children
        when, otherwise = (*conditions, None)[:2]
        return ast.LetStmt(
            kind=kind,
            name=self.name(name),
            index=self.maybe_name(index),
            point_kind=None,
            value=self.build(value),
            when=self.maybe(when),
            otherwise=self.maybe(otherwise),
            span=self.span(tree),
        )

    def let(self, tree: Node) -> ast.LetStmt:
        return self._definition("let", tree)

    def yield_(self, tree: Node) -> ast.LetStmt:
        return self._definition("yield", tree)

    def next(self, tree: Node) -> ast.LetStmt:
        return self._definition("next", tree)

    def emit(self, tree: Node) -> ast.LetStmt:
        return self._definition("emit", tree)

    def point(self, tree: Node) -> ast.LetStmt:
        name, kind, value, was, *conditions = tree.children
        when, otherwise = (*conditions, None)[:2]
        return ast.LetStmt(
            kind="point",
            name=self.name(name),
            index=None,
            point_kind=self.maybe_name(kind),
            value=self.build(value),
            when=self.maybe(when),
            otherwise=self.maybe(otherwise),
            span=self.span(tree),
            was=self.maybe(was),
        )

    def each_stmt(self, tree: Node) -> ast.EachStmt:
        index, block = tree.children
        return ast.EachStmt(self.name(index), self.many(block.children), self.span(tree))

    def scan(self, tree: Node) -> ast.ScanStmt:
        _, step, dim, over, carry, block = tree.children
        carries = () if carry is None else carry.children
        return ast.ScanStmt(
            step=self.name(step),
            dim=self.name(dim),
            over=() if over is None else self.many(over.children),
            carries=tuple((self.name(c.children[0]), self.build(c.children[1])) for c in carries),
            body=self.many(block.children),
            span=self.span(tree),
        )

"""Members of impls and schemes."""

from __future__ import annotations

from frtspec.syntax import ast
from frtspec.syntax.build_structure import StructureBuilder
from frtspec.syntax.nodes import Node


class ImplBuilder(StructureBuilder):
    def pack(self, tree: Node) -> ast.PackDecl:
        name, index, value = tree.children
        return ast.PackDecl(
            self.name(name), self.maybe_name(index), self.build(value), self.span(tree)
        )

    def scale(self, tree: Node) -> ast.ScaleDecl:
        name, value = tree.children
        return ast.ScaleDecl(self.name(name), self.build(value), self.span(tree))

    def numerics(self, tree: Node) -> ast.NumericsDecl:
        items = []
        for item in tree.children[0].children:
            role, first, second = item.children
            value, dtype = (None, first) if second is None else (first, second)
            items.append((self.name(role), self.maybe_name(value), self.name(dtype)))
        return ast.NumericsDecl(tuple(items), self.span(tree))

    def admits(self, tree: Node) -> ast.AdmitsDecl:
        point, dtypes = tree.children
        return ast.AdmitsDecl(self.name(point), self.names(dtypes), self.span(tree))

    def only(self, tree: Node) -> ast.OnlyDecl:
        axis, values = tree.children
        return ast.OnlyDecl(self.name(axis), self.names(values), self.span(tree))

    def form(self, tree: Node) -> ast.FormDecl:
        name, args = tree.children
        return ast.FormDecl(self.name(name), self.maybe_args(args), self.span(tree))

    # ------------------------------------------------------------ ladders

    def rung(self, tree: Node) -> ast.RungDecl:
        kind, package, version, block = tree.children
        return ast.RungDecl(
            kind=self.name(kind),
            package=self.maybe_string(package),
            version=self.maybe(version),
            members=() if block is None else self.many(block.children),
            span=self.span(tree),
        )

    def envelope(self, tree: Node) -> ast.EnvelopeDecl:
        return ast.EnvelopeDecl(self.many(tree.children[0].children), self.span(tree))

    def call_entry(self, tree: Node) -> ast.CallDecl:
        entry, args = tree.children
        return ast.CallDecl(self.build(entry), self.maybe_args(args), self.span(tree))

    def call_steps(self, tree: Node) -> ast.CallStepsDecl:
        return ast.CallStepsDecl(self.many(tree.children[0].children), self.span(tree))

    def step_let(self, tree: Node) -> ast.StepDecl:
        return self._step("let", tree)

    def step_yield(self, tree: Node) -> ast.StepDecl:
        return self._step("yield", tree)

    def prepare(self, tree: Node) -> ast.StepDecl:
        return self._step("prepare", tree)

    def _step(self, kind: str, tree: Node) -> ast.StepDecl:
        target, value, *conditions = tree.children
        when, otherwise = (*conditions, None)[:2]
        several = isinstance(target, Node)
        return ast.StepDecl(
            kind=kind,
            names=self.names(target) if isinstance(target, Node) else (self.name(target),),
            several=several,
            value=self.build(value),
            when=self.maybe(when),
            otherwise=self.maybe(otherwise),
            span=self.span(tree),
        )

    def lower(self, tree: Node) -> ast.LowerDecl:
        op, target = tree.children
        return ast.LowerDecl(self.name(op), self.name(target), self.span(tree))

    def band(self, tree: Node) -> ast.BandDecl:
        dim, bounds, block, otherwise = tree.children
        return ast.BandDecl(
            dim=self.name(dim),
            range=self.build(bounds),
            rungs=self.many(block.children),
            otherwise_host=otherwise is not None,
            span=self.span(tree),
        )

    # ------------------------------------------------------------ schemes

    def stat(self, tree: Node) -> ast.StatRequest:
        point, stat, args, granularity = tree.children
        return ast.StatRequest(
            self.name(point),
            self.name(stat),
            self.maybe_args(args),
            self.maybe(granularity),
            self.span(tree),
        )

    def at_keep(self, tree: Node) -> ast.AtDecl:
        target, stats, reason = tree.children
        return ast.AtDecl(
            target=self.struct_ref(target),
            stats=() if stats is None else self.many(stats.children),
            use=None,
            params=(),
            keep=self.string(reason),
            keep_when=None,
            span=self.span(tree),
        )

    def at_use(self, tree: Node) -> ast.AtDecl:
        target, stats, keep_when, use, args = tree.children
        return ast.AtDecl(
            target=self.struct_ref(target),
            stats=() if stats is None else self.many(stats.children),
            use=self.name(use),
            params=self.maybe_args(args),
            keep=None,
            keep_when=None if keep_when is None else self.when(keep_when.children[0]),
            span=self.span(tree),
        )

    def otherwise_keep(self, tree: Node) -> ast.OtherwiseKeepDecl:
        return ast.OtherwiseKeepDecl(self.string(tree.children[0]), self.span(tree))

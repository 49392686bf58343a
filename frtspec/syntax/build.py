"""Lark's tree to the syntax tree of a file."""

from __future__ import annotations

from collections.abc import Sequence

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile, Span
from frtspec.syntax import ast
from frtspec.syntax.build_base import ONE
from frtspec.syntax.build_discover import DiscoverBuilder
from frtspec.syntax.nodes import Node
from frtspec.syntax.prune import prune

EDITION = 1


class FileBuilder(DiscoverBuilder):
    def file(self, tree: Node) -> ast.File:
        edition, *decls = tree.children
        span = Span(self.path, 0, len(self.source.text))
        return ast.File(self._edition(edition), self.many(decls), span)

    def _edition(self, tree: Node | None) -> int | None:
        if tree is None:
            self.report(
                "FRT0107",
                "the file does not say its edition",
                Span(self.path, 0, 0),
                help=f"start the file with the line `frt {EDITION}`",
            )
            return None
        number = self.whole(tree.children[0], "edition")
        if number.value != EDITION:
            self.report(
                "FRT0107",
                f"edition {number.text} of the language is not known",
                number.span,
                help=f"this version reads `frt {EDITION}`",
            )
            return None
        return EDITION

    def structure(self, tree: Node) -> ast.StructureDecl:
        token, version, block = tree.children
        name = self.name(token)
        doc, *members = block.children
        return ast.StructureDecl(
            name=name,
            version=self.versioned(name, version, "structure"),
            doc=self.maybe_docstring(doc),
            members=self.many(members),
            span=self.span(tree),
        )

    def impl(self, tree: Node) -> ast.ImplDecl:
        """``impl F [version V] for S version N``: without its own version an impl has
        that of the structure it serves."""
        token, version, ref, block = tree.children
        name = self.name(token)
        target = self.struct_ref(ref)
        own = target.version if version is None else self.version(version)
        if own is None:
            own = ast.Number(ONE, "1", name.span)
        if target.version is None:
            self.report(
                "FRT0115",
                f"impl `{name.id}` does not say which version of `{target.name.id}` it serves",
                target.span,
                help=f"write `impl {name.id} for {target.name.id} version 1`",
            )
        doc, *members = block.children
        return ast.ImplDecl(
            name=name,
            target=target,
            version=own,
            doc=self.maybe_docstring(doc),
            members=self.many(members),
            span=self.span(tree),
        )

    def scheme(self, tree: Node) -> ast.SchemeDecl:
        name, block = tree.children
        doc, *members = block.children
        return ast.SchemeDecl(
            self.name(name), self.maybe_docstring(doc), self.many(members), self.span(tree)
        )

    def auto(self, tree: Node) -> ast.AutoDecl:
        return ast.AutoDecl(self.many(tree.children[0].children), self.span(tree))

    def auto_arm(self, tree: Node) -> tuple[ast.Expr | ast.Else, ast.Name]:
        condition, scheme = tree.children
        built = self.build(condition)
        if isinstance(built, ast.Name) and built.id == "else":
            built = ast.Else(built.span)
        return built, self.name(scheme)

    def binding(self, tree: Node) -> ast.BindingDecl:
        name, block = tree.children
        doc, *members = block.children
        return ast.BindingDecl(
            self.name(name), self.maybe_docstring(doc), self.many(members), self.span(tree)
        )


def build_file(
    source: SourceFile, tree: Node, doubtful: Sequence[int] = ()
) -> tuple[ast.File, list[Diagnostic]]:
    """The syntax tree of a parsed file and what the builder found on the way.

    ``doubtful``: offsets that lie in members to be left out, because recovery guessed there.
    """
    builder = FileBuilder(source)
    builder.diagnostics += prune(tree, source.path, doubtful)
    return builder.file(tree), builder.diagnostics

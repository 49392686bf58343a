"""Members of pipelines, and of their use in a binding."""

from __future__ import annotations

from typing import Any

from frtspec.syntax import ast
from frtspec.syntax.build_base import ONE
from frtspec.syntax.build_binding import BindingBuilder
from frtspec.syntax.nodes import Node, Token


class PipelineBuilder(BindingBuilder):
    def versioned(self, name: ast.Name, version: Any, what: str) -> ast.Number:
        """The version of a declaration or use; reports where none is given."""
        if version is not None:
            return self.version(version)
        self.report(
            "FRT0115",
            f"{what} `{name.id}` has no version",
            name.span,
            help=f"write `{what} {name.id} version 1`",
        )
        return ast.Number(ONE, "1", name.span)

    def pipeline(self, tree: Node) -> ast.PipelineDecl:
        token, version, block = tree.children
        name = self.name(token)
        doc, *members = block.children
        return ast.PipelineDecl(
            name=name,
            version=self.versioned(name, version, "pipeline"),
            doc=self.maybe_docstring(doc),
            members=self.many(members),
            span=self.span(tree),
        )

    def family(self, tree: Node) -> ast.FamilyDecl:
        return ast.FamilyDecl(self.name(tree.children[0]), self.span(tree))

    def cadence(self, tree: Node) -> ast.CadenceDecl:
        return ast.CadenceDecl(self.name(tree.children[0]), self.span(tree))

    # ------------------------------------------------------------ values

    def _once(self, modifiers: list[Node]) -> dict[str, Node]:
        """Modifiers by rule; the second of a kind is reported."""
        found: dict[str, Node] = {}
        for modifier in modifiers:
            if modifier.rule in found:
                word = modifier.rule.removesuffix("_caller")
                self.report(
                    "FRT0208",
                    f"`{word}` is given twice",
                    self.span(modifier),
                    help="leave one of the two out",
                )
            found.setdefault(modifier.rule, modifier)
        return found

    def window(self, tree: Node) -> ast.WindowDecl:
        name, mode, *modifiers = tree.children
        found = self._once(modifiers)
        return ast.WindowDecl(
            name=self.name(name),
            mode=self.name(mode),
            from_caller="from_caller" in found,
            readback="readback" in found,
            cadence=self.maybe(found.get("cadence")),
            span=self.span(tree),
        )

    def buffer(self, tree: Node) -> ast.BufferDecl:
        name, mode, cadence = tree.children
        return ast.BufferDecl(
            self.name(name), self.name(mode), self.maybe(cadence), self.span(tree)
        )

    def state(self, tree: Node) -> ast.StateDecl:
        name, *modifiers = tree.children
        found = self._once(modifiers)
        stages = {
            word: self.names(found[word].children[0]) if word in found else ()
            for word in ("writers", "readers")
        }
        cadence = self.maybe(found.get("cadence"))
        return ast.StateDecl(
            self.name(name), cadence, stages["writers"], stages["readers"], self.span(tree)
        )

    # ------------------------------------------------------------ stages and loops

    def stage(self, tree: Node) -> ast.StageDecl:
        name, optional, block = tree.children
        doc, *members = block.children
        return ast.StageDecl(
            name=self.name(name),
            optional=optional is not None,
            doc=self.maybe_docstring(doc),
            members=self.many(members),
            span=self.span(tree),
        )

    def access(self, tree: Node) -> ast.AccessDecl:
        word, values = tree.children
        mode = word.children[0].text
        return ast.AccessDecl(mode, self.many(values.children), self.span(tree))

    def use(self, tree: Node) -> ast.Access:
        name, optional = tree.children
        return ast.Access(self.name(name), optional is not None, self.span(tree))

    def capture(self, tree: Node) -> ast.CaptureDecl:
        mode, *text = tree.children
        return ast.CaptureDecl(
            self.name(mode), self.maybe_string(text[0] if text else None), self.span(tree)
        )

    def loop(self, tree: Node) -> ast.LoopDecl:
        name, block = tree.children
        return ast.LoopDecl(self.name(name), self.many(block.children), self.span(tree))

    def steps(self, tree: Node) -> ast.StepsDecl:
        return ast.StepsDecl(self.build(tree.children[0]), self.span(tree))

    def until(self, tree: Node) -> ast.UntilDecl:
        return ast.UntilDecl(self.name(tree.children[0]), self.span(tree))

    def shapes(self, tree: Node) -> ast.ShapesDecl:
        return ast.ShapesDecl(self.name(tree.children[0]), self.span(tree))

    def runs(self, tree: Node) -> ast.RunsDecl:
        return ast.RunsDecl(self.names(tree.children[0]), self.span(tree))

    # ------------------------------------------------------------ the rest of a pipeline

    def embeds(self, tree: Node) -> ast.EmbedsDecl:
        return ast.EmbedsDecl(self.many(tree.children[0].children), self.span(tree))

    def substructure(self, tree: Node) -> ast.SubstructureDecl:
        name, cadence = tree.children
        return ast.SubstructureDecl(self.name(name), self.build(cadence), self.span(tree))

    def conform(self, tree: Node) -> ast.ConformDecl:
        name, check, subjects = tree.children
        return ast.ConformDecl(
            self.name(name),
            self.name(check),
            () if subjects is None else self.names(subjects),
            self.span(tree),
        )

    def pipeline_gate(self, tree: Node) -> ast.PipelineGateDecl:
        kind, on, per, block = tree.children
        metrics, including, against = self.gate_items(block)
        return ast.PipelineGateDecl(
            kind=self.name(kind),
            on=() if on is None else self.names(on),
            per=None if per is None else self.name(per.children[1]),
            metrics=metrics,
            including=including,
            against=against,
            span=self.span(tree),
        )

    # ------------------------------------------------------------ use in a binding

    def pipeline_use(self, tree: Node) -> ast.PipelineUse:
        token, version, block = tree.children
        name = self.name(token)
        doc, *members = block.children
        return ast.PipelineUse(
            name=name,
            version=self.versioned(name, version, "pipeline"),
            doc=self.maybe_docstring(doc),
            members=self.many(members),
            span=self.span(tree),
        )

    def stage_use(self, tree: Node) -> ast.StageUse:
        name, path, block = tree.children
        members = self.many(block.children)
        return ast.StageUse(self.name(name), self.maybe_path(path), members, self.span(tree))

    def seam_text(self, tree: Node) -> ast.SeamText:
        return ast.SeamText(self.string(tree.children[0]), False, self.span(tree))

    def seam_eager(self, tree: Node) -> ast.SeamText:
        return ast.SeamText(self.string(tree.children[0]), True, self.span(tree))

    capture_use = capture

    def policy(self, tree: Node) -> ast.PolicyDecl:
        return ast.PolicyDecl(self.name(tree.children[0]), self.span(tree))

    def protect(self, tree: Node) -> ast.ProtectDecl:
        return ast.ProtectDecl(self.name(tree.children[0]), self.span(tree))

    def value_at(self, tree: Node) -> ast.ValueAt:
        word, name, where = tree.children
        is_text = isinstance(where, Token)
        return ast.ValueAt(
            kind=word.children[0].text,
            name=self.name(name),
            place=None if is_text else self.build(where),
            text=self.string(where) if is_text else None,
            span=self.span(tree),
        )

    def loop_use(self, tree: Node) -> ast.LoopUse:
        name, steps = tree.children
        return ast.LoopUse(self.name(name), self.build(steps), self.span(tree))

    def cadence_use(self, tree: Node) -> ast.CadenceUse:
        name, stages = tree.children
        return ast.CadenceUse(self.name(name), self.names(stages), self.span(tree))

    def coverage(self, tree: Node) -> ast.CoverageDecl:
        contract, block = tree.children
        return ast.CoverageDecl(self.name(contract), self.many(block.children), self.span(tree))

    def hot_path(self, tree: Node) -> ast.HotPathDecl:
        return ast.HotPathDecl(self.names(tree.children[0]), self.span(tree))

    def segment(self, tree: Node) -> ast.SegmentDecl:
        name, kind, stage, block = tree.children
        return ast.SegmentDecl(
            self.name(name),
            self.name(kind),
            self.name(stage),
            self.many(block.children),
            self.span(tree),
        )

    def covers(self, tree: Node) -> ast.CoversDecl:
        return ast.CoversDecl(self.names(tree.children[0]), self.span(tree))

    def seats(self, tree: Node) -> ast.SeatsDecl:
        return ast.SeatsDecl(self.names(tree.children[0]), self.span(tree))

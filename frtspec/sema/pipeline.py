"""Pipelines: what flows, the stages, the loops around them, what they embed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from frtspec.diag.source import SourceFile
from frtspec.ir import decl as ir
from frtspec.ir import pipewords
from frtspec.sema.common import one_of as word_of
from frtspec.sema.common import only_one, origin, status, version
from frtspec.sema.context import Context
from frtspec.sema.pipeline_flow import check_flow
from frtspec.sema.pipeline_rules import Rules
from frtspec.sema.scope import Scope, Symbol, declare
from frtspec.sema.sizes import short, whole
from frtspec.sema.target import Built, resolve
from frtspec.syntax import ast

T = TypeVar("T")

STAGE, UNKNOWN_STAGE, ACCESS, LOOP = "FRT0714", "FRT0902", "FRT0718", "FRT0713"
Structures = Mapping[str, Mapping[int, Built]]


def build_pipeline(
    source: SourceFile, node: ast.PipelineDecl, structures: Structures, context: Context
) -> ir.Pipeline:
    """The typed form of a pipeline; what is wrong with it goes to ``context``."""
    return _Builder(source, node, structures, context).build()


@dataclass
class _Builder:
    source: SourceFile
    node: ast.PipelineDecl
    structures: Structures
    context: Context
    names: Scope = field(default_factory=Scope)
    regions: Scope = field(default_factory=Scope)
    flows: Scope = field(default_factory=Scope)

    def members(self, kind: type[T]) -> list[T]:
        return [m for m in self.node.members if isinstance(m, kind)]

    def build(self) -> ir.Pipeline:
        context = self.context
        only_one(context, self.members(ast.StatusDecl), "status")
        read = [self.window(m) for m in self.members(ast.WindowDecl)]
        windows = tuple(w for w in read if self.flows.names[w.name].span == w.span)
        made = [self.buffer(m) for m in self.members(ast.BufferDecl)]
        buffers = tuple(b for b in made if self.flows.names[b.name].span == b.span)
        states = self.members(ast.StateDecl)
        for state in states:
            symbol = Symbol("state", state.name.span)
            declare(context, self.regions, "state", state.name, symbol)
        stages = tuple(self.stage(m) for m in self.members(ast.StageDecl))
        if not stages and not context.dropped:
            message = f"pipeline `{self.node.name.id}` has no stage"
            context.error(STAGE, message, self.node.name.span, help="add: stage decode { … }")
        loops = tuple(self.loop(m, stages) for m in self.members(ast.LoopDecl))
        pipeline = ir.Pipeline(
            name=self.node.name.id,
            version=version(context, self.node.version),
            doc=self.node.doc.text if self.node.doc else "",
            status=status(context, self.members(ast.StatusDecl)),
            family=self.family(),
            windows=windows,
            buffers=buffers,
            states=tuple(self.state(m) for m in states),
            stages=stages,
            loops=loops,
            embeds=self.embeds(),
            substructures=self.substructures(),
            conform=(),
            gates=(),
            origin=origin(self.source, self.node.span),
            evidence=tuple(m.text.text for m in self.members(ast.EvidenceDecl)),
        )
        check_flow(context, pipeline, states)
        rules = Rules(context, pipeline, self.node)
        return rules.finished(self.members(ast.ConformDecl), self.members(ast.PipelineGateDecl))

    def cadence(self, node: ast.CadenceDecl | None) -> str | None:
        if node is None:
            return None
        return word_of(self.context, "cadence", node.name, pipewords.CADENCES)

    def family(self) -> str:
        nodes = self.members(ast.FamilyDecl)
        only_one(self.context, nodes, "family")
        if not nodes:
            if not self.context.dropped:
                self.context.error(
                    "FRT0209",
                    f"pipeline `{self.node.name.id}` names no family",
                    self.node.name.span,
                    help=f"add: family {next(iter(pipewords.FAMILIES))}",
                )
            return ""
        return word_of(self.context, "family", nodes[0].name, pipewords.FAMILIES) or ""

    # ------------------------------------------------------------ what flows

    def window(self, node: ast.WindowDecl) -> ir.Window:
        declare(self.context, self.flows, "window", node.name, Symbol("window", node.name.span))
        mode = word_of(self.context, "window", node.mode, pipewords.WINDOWS) or "swap"
        if mode == "readback" and node.from_caller:
            message = f"window `{node.name.id}` is read back: the caller does not fill it"
            help = "a window that both sides touch is `: swap readback`"
            self.context.error(ACCESS, message, node.mode.span, help=help)
        if mode in ("readback", "host") and node.readback:
            message = f"`readback` says nothing new of a window that is {mode}"
            self.context.error(ACCESS, message, node.mode.span, help="leave it out")
        readback = node.readback or mode == "readback"
        return ir.Window(
            node.name.id,
            mode,
            node.from_caller,
            readback,
            self.cadence(node.cadence),
            node.name.span,
        )

    def buffer(self, node: ast.BufferDecl) -> ir.Buffer:
        declare(self.context, self.flows, "buffer", node.name, Symbol("buffer", node.name.span))
        mode = word_of(self.context, "buffer", node.mode, pipewords.BUFFERS) or "mutable"
        return ir.Buffer(node.name.id, mode, self.cadence(node.cadence), node.name.span)

    def state(self, node: ast.StateDecl) -> ir.StateRegion:
        return ir.StateRegion(
            node.name.id,
            self.cadence(node.cadence),
            tuple(dict.fromkeys(n.id for n in node.writers)),
            tuple(dict.fromkeys(n.id for n in node.readers)),
            node.name.span,
        )

    # ------------------------------------------------------------ stages

    def stage(self, node: ast.StageDecl) -> ir.Stage:
        declare(self.context, self.names, "stage", node.name, Symbol("stage", node.name.span))
        cadences = [m for m in node.members if isinstance(m, ast.CadenceDecl)]
        captures = [m for m in node.members if isinstance(m, ast.CaptureDecl)]
        only_one(self.context, cadences, "cadence")
        only_one(self.context, captures, "capture")
        values = self.values(node)
        whole_stage = not self.context.dropped
        if not cadences and whole_stage:
            self.context.error(
                STAGE,
                f"stage `{node.name.id}` does not say how often it runs",
                node.name.span,
                help="add: cadence request",
            )
        if not values and whole_stage:
            message = f"stage `{node.name.id}` reads nothing and writes nothing"
            help = "say what it does with the pipeline's values: `read (…)`, `write (…)`"
            self.context.error(STAGE, message, node.name.span, help=help)
        capture = "host_dependent"
        if not captures and whole_stage:
            self.context.error(
                STAGE,
                f"stage `{node.name.id}` does not say how it is to be captured",
                node.name.span,
                help="add: capture host_dependent",
            )
        if captures:
            capture = (
                word_of(self.context, "capture", captures[0].mode, pipewords.CAPTURES) or capture
            )
        return ir.Stage(
            name=node.name.id,
            doc=node.doc.text if node.doc else "",
            optional=node.optional,
            cadence=self.cadence(cadences[0] if cadences else None) or "",
            values=values,
            capture=capture,
            span=node.name.span,
        )

    def values(self, node: ast.StageDecl) -> tuple[ir.StageAccess, ...]:
        found: dict[str, ir.StageAccess] = {}
        for decl in (m for m in node.members if isinstance(m, ast.AccessDecl)):
            for value in decl.values:
                self.value(decl.mode, value, found)
        return tuple(found.values())

    def value(self, mode: str, value: ast.Access, found: dict[str, ir.StageAccess]) -> None:
        name = value.name
        known = [*self.flows.names, *self.regions.names]
        if name.id not in known:
            self.context.unknown("window, buffer or state", name, known)
            return
        for kind in ("window", "buffer", "state"):
            self.context.use(kind, name.id)
        before = found.get(name.id)
        if before is None:
            found[name.id] = ir.StageAccess(name.id, mode, value.optional, name.span)
            return
        both = {before.access, mode} == {"read", "write"}
        if before.access != mode:  # what follows takes it for both
            optional = before.optional or value.optional
            found[name.id] = ir.StageAccess(name.id, "read_write", optional, before.span)
        self.context.error(
            ACCESS,
            f"`{name.id}` is given twice in one stage",
            name.span,
            notes=((before.span, "first here"),),
            help=f"write `read_write {name.id}`" if both else "leave one of the two out",
        )

    # ------------------------------------------------------------ loops

    def loop(self, node: ast.LoopDecl, stages: tuple[ir.Stage, ...]) -> ir.StageLoop:
        declare(self.context, self.names, "loop", node.name, Symbol("loop", node.name.span))
        runs = [m for m in node.members if isinstance(m, ast.RunsDecl)]
        shapes = [m for m in node.members if isinstance(m, ast.ShapesDecl)]
        until = [m for m in node.members if isinstance(m, ast.UntilDecl)]
        only_one(self.context, runs, "runs")
        only_one(self.context, shapes, "shapes")
        only_one(self.context, until, "until")
        known = [s.name for s in stages]
        names = runs[0].stages if runs else ()
        for name in names:
            if name.id not in known:
                self.context.unknown("stage", name, known, code=UNKNOWN_STAGE)
        if not runs and not self.context.dropped:
            message = f"loop `{node.name.id}` runs no stage"
            self.context.error(LOOP, message, node.name.span, help="add: runs (decode)")
        mode = "host"
        if not shapes and not self.context.dropped:
            message = f"loop `{node.name.id}` does not say whether its shapes are fixed"
            help = "add: shapes fixed, or shapes host where the host decides"
            self.context.error(LOOP, message, node.name.span, help=help)
        if shapes:
            mode = word_of(self.context, "shapes", shapes[0].mode, pipewords.SHAPES) or mode
        return ir.StageLoop(
            name=node.name.id,
            steps=self.steps(node),
            until=self.until(until[0], names, stages) if until else None,
            shapes=mode,
            runs=tuple(dict.fromkeys(n.id for n in names if n.id in known)),
            span=node.name.span,
        )

    def steps(self, node: ast.LoopDecl) -> int | None:
        nodes = [m for m in node.members if isinstance(m, ast.StepsDecl)]
        only_one(self.context, nodes, "steps")
        help = "write `steps = binding` where each host has its own, or a number"
        if not nodes:
            if not self.context.dropped:
                message = f"loop `{node.name.id}` does not say how many steps it takes"
                self.context.error(LOOP, message, node.name.span, help=help)
            return None
        match nodes[0].value:
            case ast.Name(id="binding") | ast.ErrorNode():
                return None
            case ast.Number(value=value, text=text):
                count = whole(value)
                if count is not None and count >= 1:
                    return count
                message = f"a loop takes a whole number of steps from 1, not {short(text)}"
            case _:
                message = "this is no number of steps"
        self.context.error(LOOP, message, nodes[0].value.span, help=help)
        return None

    def until(
        self, node: ast.UntilDecl, runs: Iterable[ast.Name], stages: tuple[ir.Stage, ...]
    ) -> str | None:
        """The host window that ends a loop: a stage of the loop writes it."""
        windows = {m.name.id: m for m in self.members(ast.WindowDecl)}
        if node.name.id not in windows:
            self.context.unknown("window", node.name, windows)
            return None
        self.context.use("window", node.name.id)
        inside = {n.id for n in runs}
        uses = [s.access(node.name.id) for s in stages if s.name in inside]
        mode = windows[node.name.id].mode.id
        if mode not in pipewords.WINDOWS:
            return None  # a word that was reported
        if mode != "host" or not any(use is not None and use.writes for use in uses):
            self.context.error(
                LOOP,
                f"`{node.name.id}` cannot end the loop",
                node.name.span,
                help="what ends a loop is a `host` window that one of its stages writes",
            )
        return node.name.id

    # ------------------------------------------------------------ what it holds

    def embeds(self) -> tuple[tuple[str, int], ...]:
        found: dict[tuple[str, int], ast.StructRef] = {}
        for ref in (r for m in self.members(ast.EmbedsDecl) for r in m.structures):
            if ref.version is None:
                message = f"`{ref.name.id}` is embedded in no version"
                help = f"say which: `{ref.name.id} version 1`"
                self.context.error("FRT0206", message, ref.span, help=help)
                continue
            target = resolve(self.context, ref, self.structures)
            if target is None:
                continue
            if ref.seam is not None:
                message = "a pipeline embeds whole structures, not their seams"
                help = f"leave `.{ref.seam.id}` out"
                self.context.error("FRT0206", message, ref.seam.span, help=help)
            key = (target.structure.name, target.structure.version)
            if key in found:
                message = f"structure `{ref.name.id}` is embedded twice"
                notes = ((found[key].span, "first here"),)
                help = "leave one of the two out"
                self.context.error("FRT0202", message, ref.span, notes=notes, help=help)
            found.setdefault(key, ref)
        return tuple(found)

    def substructures(self) -> tuple[ir.Substructure, ...]:
        out = []
        for node in self.members(ast.SubstructureDecl):
            symbol = Symbol("substructure", node.name.span)
            declare(self.context, self.names, "substructure", node.name, symbol)
            cadence = self.cadence(node.cadence) or ""
            out.append(ir.Substructure(node.name.id, cadence, node.name.span))
        return tuple(out)

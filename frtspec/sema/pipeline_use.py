"""A pipeline in a binding: its stages on a host, and the coverage of the hot path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from frtspec.diag.source import Span
from frtspec.ir import decl as ir
from frtspec.ir import pipewords
from frtspec.sema.common import named_once, one_of, only_one, status, version
from frtspec.sema.context import Context, listing
from frtspec.sema.hostexpr import HostExprs
from frtspec.sema.hosts import unverified
from frtspec.sema.pipeline_coverage import Coverages
from frtspec.sema.places import Places
from frtspec.sema.sizes import whole
from frtspec.syntax import ast

T = TypeVar("T")

PIPELINE, STAGE = "FRT0901", "FRT0902"
MISSING, CAPTURE, STEPS, UNVERIFIED, CADENCE = (
    "FRT0720",
    "FRT0721",
    "FRT0722",
    "FRT0726",
    "FRT0727",
)
Pipelines = Mapping[str, Mapping[int, ir.Pipeline]]


@dataclass
class PipelineUses:
    """``seats``: name -> the structures that it may seat; ``known``: names of structures;
    ``imported``: whether the binding as a whole is not verified."""

    context: Context
    pipelines: Pipelines
    seats: Mapping[str, tuple[str, ...]]
    known: Sequence[str]
    host: HostExprs
    imported: bool

    def build(self, node: ast.PipelineUse) -> ir.BoundPipeline | None:
        pipeline = self.resolve(node)
        if pipeline is None:
            return None
        return _Use(self, node, pipeline).build()

    def resolve(self, node: ast.PipelineUse) -> ir.Pipeline | None:
        by_version = self.pipelines.get(node.name.id)
        if by_version is None:
            self.context.unknown(
                "pipeline", node.name, self.pipelines, code=PIPELINE, everywhere=True
            )
            return None
        number = version(self.context, node.version)
        if number not in by_version:
            known = listing([f"version {k}" for k in sorted(by_version)])
            message = f"pipeline `{node.name.id}` has no version {number}"
            self.context.error(PIPELINE, message, node.version.span, help=f"there is {known}")
            return None
        return by_version[number]


@dataclass
class _Use:
    world: PipelineUses
    node: ast.PipelineUse
    pipeline: ir.Pipeline

    @property
    def context(self) -> Context:
        return self.world.context

    def members(self, kind: type[T]) -> list[T]:
        return [m for m in self.node.members if isinstance(m, kind)]

    def build(self) -> ir.BoundPipeline:
        statuses = self.members(ast.StatusDecl)
        only_one(self.context, statuses, "status")
        state = status(self.context, statuses)
        self.verified = not (self.world.imported or unverified(self.context, statuses))
        stages = self.stages()
        coverages = self.members(ast.CoverageDecl)
        only_one(self.context, coverages, "coverage")
        coverage = None
        if coverages:
            bound = [stage.name for stage in stages]
            reader = Coverages(
                self.context,
                self.pipeline,
                bound,
                self.world.seats,
                self.world.known,
                self.verified,
            )
            coverage = reader.build(coverages[0])
        return ir.BoundPipeline(
            pipeline=(self.pipeline.name, self.pipeline.version),
            doc=self.node.doc.text if self.node.doc else "",
            status=state,
            stages=stages,
            loops=self.loops([stage.name for stage in stages]),
            cadences=self.cadences([stage.name for stage in stages]),
            coverage=coverage,
            span=self.node.name.span,
        )

    def unverified(self, what: str, span: Span, help: str) -> None:
        """What only an imported use may say."""
        if self.verified:
            self.context.error(
                UNVERIFIED,
                f"{what} cannot be verified",
                span,
                help=f'{help}, or say `status imported "…"` with the reason',
            )

    # ------------------------------------------------------------ stages

    def stages(self) -> tuple[ir.BoundStage, ...]:
        nodes = self.members(ast.StageUse)
        named_once(self.context, "stage", [node.name for node in nodes])
        known = [stage.name for stage in self.pipeline.stages]
        out = []
        for node in nodes:
            if node.name.id not in known:
                self.context.unknown("stage", node.name, known, code=STAGE)
                continue
            out.append(self.stage(node))
        given = {stage.name for stage in out}
        missing = [
            s.name
            for s in self.pipeline.stages
            if not s.optional
            and s.name not in given
            and s.name not in self.context.dropped
            and not self.context.misspelt("stage", s.name)
        ]
        if missing:
            self.context.error(
                MISSING,
                f"pipeline `{self.pipeline.name}` needs {listing(missing)}, which this use "
                "does not bind",
                self.node.name.span,
                help=f"add: stage {missing[0]} {{ … }}",
            )
        return tuple(out)

    def stage(self, node: ast.StageUse) -> ir.BoundStage:
        declared = self.pipeline.stage(node.name.id)
        assert declared is not None
        seams = [m for m in node.members if isinstance(m, ast.SeamText)]
        only_one(self.context, [s for s in seams if not s.eager], "seam")
        only_one(self.context, [s for s in seams if s.eager], "seam eager")
        texts = {s.eager: s.text.value for s in reversed(seams)}
        if node.path is not None:
            self.world.host.path(node.path)
        elif not self.context.dropped:
            what = f"where stage `{node.name.id}` lies on the host"
            self.unverified(what, node.name.span, f"write `stage {node.name.id} at PATH {{ … }}`")
        for seam in seams:
            if not seam.text.value.strip():
                help = "say where the source has the stage, or leave it out"
                self.context.error(MISSING, "this seam says nothing", seam.text.span, help=help)
        captures = [m for m in node.members if isinstance(m, ast.CaptureDecl)]
        only_one(self.context, captures, "capture")
        capture = self.capture(captures[0], declared) if captures else None
        text = captures[0].text if captures else None
        return ir.BoundStage(
            name=node.name.id,
            path=node.path,
            seam=texts.get(False),
            eager_seam=texts.get(True),
            capture=capture,
            capture_text=None if text is None else text.value,
            policy=self.word(
                [m for m in node.members if isinstance(m, ast.PolicyDecl)],
                "policy",
                pipewords.POLICIES,
            ),
            protect=self.word(
                [m for m in node.members if isinstance(m, ast.ProtectDecl)],
                "protect",
                pipewords.PROTECTIONS,
            ),
            values=self.values(node, declared),
            span=node.name.span,
        )

    def word(
        self,
        nodes: Sequence[ast.PolicyDecl | ast.ProtectDecl],
        what: str,
        table: Mapping[str, str],
    ) -> str | None:
        only_one(self.context, nodes, what)
        return one_of(self.context, what, nodes[0].name, table) if nodes else None

    def capture(self, node: ast.CaptureDecl, declared: ir.Stage) -> str | None:
        mode = one_of(self.context, "capture", node.mode, pipewords.BOUND_CAPTURES)
        fits = pipewords.CAPTURE_FITS[declared.capture]
        if mode is not None and mode not in fits:
            self.context.error(
                CAPTURE,
                f"stage `{declared.name}` is bound as {mode}, and the pipeline wants it "
                f"{declared.capture}",
                node.mode.span,
                notes=((declared.span, "the stage"),),
                help=f"one of {listing(fits)}",
            )
        return mode

    def values(self, node: ast.StageUse, declared: ir.Stage) -> tuple[ir.ValuePlace, ...]:
        """Where values of the stage lie on the host."""
        nodes = [m for m in node.members if isinstance(m, ast.ValueAt)]
        named_once(self.context, "value", [m.name for m in nodes])
        tables = {
            "window": [w.name for w in self.pipeline.windows],
            "buffer": [b.name for b in self.pipeline.buffers],
            "state": [s.name for s in self.pipeline.states],
        }
        places = Places(self.context, self.world.host)
        out = []
        for item in nodes:
            known = [name for name in tables.get(item.kind, ()) if declared.access(name)]
            if item.name.id not in known:
                self.context.unknown(f"{item.kind} of stage {declared.name}", item.name, known)
                continue
            if item.text is not None:
                where = f"place of {item.kind} `{item.name.id}`"
                self.unverified(where, item.text.span, "name the module it enters or leaves")
            text = None if item.text is None else item.text.value
            place = None if item.place is None else places.of(item.place)
            out.append(ir.ValuePlace(item.kind, item.name.id, place, text, item.name.span))
        return tuple(out)

    # ------------------------------------------------------------ loops and cadences

    def loops(self, bound: Sequence[str]) -> tuple[ir.BoundLoop, ...]:
        nodes = self.members(ast.LoopUse)
        named_once(self.context, "loop", [node.name for node in nodes])
        declared = {loop.name: loop for loop in self.pipeline.loops}
        out = []
        for node in nodes:
            if node.name.id not in declared:
                self.context.unknown("loop", node.name, declared)
                continue
            if declared[node.name.id].steps is not None:
                message = f"the pipeline says how many steps loop `{node.name.id}` takes"
                self.context.error(STEPS, message, node.steps.span, help="leave it out here")
            self.steps(node)
            out.append(ir.BoundLoop(node.name.id, node.steps, node.name.span))
        given = {loop.name for loop in out}
        for loop in declared.values():
            runs = set(loop.runs) <= set(bound)
            open_ended = loop.steps is None and loop.until is None
            if open_ended and loop.name not in given and runs and not self.context.dropped:
                self.context.error(
                    STEPS,
                    f"nothing says how many steps loop `{loop.name}` takes on this host",
                    self.node.name.span,
                    help=f"add: loop {loop.name} steps = config.num_inference_steps",
                )
        return tuple(out)

    def steps(self, node: ast.LoopUse) -> None:
        match node.steps:
            case ast.String():
                what = f"the number of steps of loop `{node.name.id}`"
                self.unverified(what, node.steps.span, "write a number or a config expression")
            case ast.Number(value=value):
                count = whole(value)
                if count is None or count < 1:
                    message = "a loop takes a whole number of steps from 1"
                    help = "write for instance 4"
                    self.context.error(STEPS, message, node.steps.span, help=help)
            case _:
                self.world.host.check(node.steps)

    def cadences(self, bound: Sequence[str]) -> tuple[ir.BoundCadence, ...]:
        nodes = self.members(ast.CadenceUse)
        named_once(self.context, "cadence", [node.name for node in nodes])
        declared = [stage.name for stage in self.pipeline.stages]
        out = []
        for node in nodes:
            name = one_of(self.context, "cadence", node.name, pipewords.CADENCES)
            named_once(self.context, "stage", node.stages)
            for stage in node.stages:
                if stage.id not in declared:
                    self.context.unknown("stage", stage, declared, code=STAGE)
                elif stage.id not in bound and not self.context.dropped:
                    message = f"stage `{stage.id}` has a cadence and is not bound"
                    help = f"add: stage {stage.id} {{ … }}"
                    self.context.error(CADENCE, message, stage.span, help=help)
            if name is not None:
                stages = tuple(dict.fromkeys(stage.id for stage in node.stages))
                out.append(ir.BoundCadence(name, stages, node.name.span))
        runs = {stage.id for node in nodes for stage in node.stages}
        idle = [name for name in bound if out and name not in runs]
        if idle and not self.context.dropped:
            self.context.error(
                CADENCE,
                f"stage `{idle[0]}` runs at none of the cadences given here",
                self.node.name.span,
                help="name every bound stage in one, or give no cadence: the pipeline's hold",
            )
        return tuple(out)

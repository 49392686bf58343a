"""A pipeline's stages as a graph: what each reads and leaves, and what a loop repeats."""

from __future__ import annotations

from dataclasses import dataclass, field

from frtspec.docgen.flow import Edge, Flow, Kind, Node
from frtspec.ir.decl import Pipeline
from frtspec.ir.decl.pipeline import Stage, StageAccess


def stage_flow(pipeline: Pipeline) -> Flow:
    """Stages from top to bottom. A value that a stage writes stands anew below it, so that
    nothing points upwards; inside a loop the next step reads what the last one left."""
    made = _Stages(pipeline)
    for stage in pipeline.stages:
        made.stage(stage)
    loops = tuple(f"loop {loop.name}" for loop in pipeline.loops)
    return Flow(tuple(made.nodes), tuple(dict.fromkeys(made.edges)), loops)


@dataclass
class _Stages:
    pipeline: Pipeline
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    holders: dict[str, int] = field(default_factory=dict)

    def node(
        self,
        kind: Kind,
        title: str,
        lines: tuple[str, ...],
        when: str | None = None,
        spans: tuple[str, ...] = (),
    ) -> int:
        self.nodes.append(Node(len(self.nodes), kind, title, lines, when, spans))
        return len(self.nodes) - 1

    def stage(self, stage: Stage) -> None:
        for access in stage.values:
            if access.reads and access.name not in self.holders:
                self.holders[access.name] = self.value(access.name)
        loop = self.pipeline.loop_of(stage.name)
        lines = (f"once a {stage.cadence}", f"capture {stage.capture}")
        key = self.node(
            "value",
            stage.name,
            lines,
            "where bound" if stage.optional else None,
            () if loop is None else (f"loop {loop.name}",),
        )
        for access in stage.values:
            self.access(key, access)

    def access(self, stage: int, access: StageAccess) -> None:
        if access.reads:
            self.edges.append(Edge(self.holders[access.name], stage, access.optional))
        if access.writes:
            left = self.value(access.name)
            self.edges.append(Edge(stage, left, access.optional))
            self.holders[access.name] = left

    def value(self, name: str) -> int:
        """The box of a window, buffer or state region."""
        p = self.pipeline
        window = next((w for w in p.windows if w.name == name), None)
        buffer = next((b for b in p.buffers if b.name == name), None)
        state = any(s.name == name for s in p.states)
        if window is not None:
            ways = ["from the caller"] if window.caller else []
            ways += ["read back"] if window.readback else []
            kind: Kind = "output" if window.readback else "input"
            text = ", ".join([f"{window.mode} window", *ways])
        elif buffer is not None:
            kind, text = "slot", f"{buffer.mode} buffer"
        else:
            kind, text = "point", "state"
        lines = (text, "keeps state") if state and kind != "point" else (text,)
        return self.node(kind, name, lines)

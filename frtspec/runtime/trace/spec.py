"""The facts about pipelines that generated code hands to the runtime: plain, frozen data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from frtspec.runtime.spec import Bound, InputOf, OutputOf


@dataclass(frozen=True)
class Flow:
    """A window, a buffer or a state region.

    kind      ``window``, ``buffer`` or ``state``
    mode      of a window: swap, staged, readback, host; of a buffer: static, mutable; ""
    caller    the caller fills it before the stages run
    readback  the host reads it afterwards
    """

    kind: str
    name: str
    mode: str = ""
    cadence: str | None = None
    caller: bool = False
    readback: bool = False


@dataclass(frozen=True)
class Stage:
    """``reads`` and ``writes``: names of flows, in order; ``maybe``: those that may be absent."""

    name: str
    cadence: str
    capture: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    maybe: tuple[str, ...] = ()
    optional: bool = False


@dataclass(frozen=True)
class Loop:
    """``steps`` None: the binding says. ``until``: the window whose truth ends it early."""

    name: str
    runs: tuple[str, ...]
    steps: int | None = None
    until: str | None = None
    shapes: str = "host"


@dataclass(frozen=True)
class Rule:
    """A rule and the one check that holds it; ``about``: what the check is about."""

    name: str
    check: str
    about: tuple[str, ...] = ()


@dataclass(frozen=True)
class ParityGate:
    """Outputs ``on`` are held to ``bounds`` against a baseline."""

    on: tuple[str, ...]
    against: str
    bounds: tuple[Bound, ...]


@dataclass(frozen=True)
class WinGate:
    """Times that are compared with a baseline's, per beat of a cadence."""

    per: str
    against: str
    metrics: tuple[str, ...]


@dataclass(frozen=True)
class PipelineSpec:
    """A pipeline as generated. ``imported``: why it was never verified, or None."""

    name: str
    version: int
    source_digest: str
    contract_digest: str
    family: str
    flows: tuple[Flow, ...]
    stages: tuple[Stage, ...]
    loops: tuple[Loop, ...]
    embeds: tuple[tuple[str, int], ...]
    substructures: Mapping[str, str]
    rules: tuple[Rule, ...]
    parity: ParityGate | None = None
    net_win: WinGate | None = None
    imported: str | None = None

    @property
    def key(self) -> str:
        return f"{self.name} v{self.version}"

    def stage(self, name: str) -> Stage | None:
        return next((s for s in self.stages if s.name == name), None)

    def loop_of(self, stage: str) -> Loop | None:
        return next((loop for loop in self.loops if stage in loop.runs), None)

    def loop(self, name: str) -> Loop:
        return next(loop for loop in self.loops if loop.name == name)

    def names(self) -> tuple[str, ...]:
        """Every flow once; a state region of a buffer's name is that buffer."""
        return tuple(dict.fromkeys(flow.name for flow in self.flows))

    def flow(self, name: str) -> Flow:
        """The window or buffer of a name, else the state region."""
        return next(flow for flow in self.flows if flow.name == name)

    def implied(self) -> tuple[Rule, ...]:
        """What the declarations say without a rule: static is static, writers are declared,
        loops take the steps they are told to."""
        static = tuple(f.name for f in self.flows if f.mode == "static")
        counted = tuple(loop.name for loop in self.loops)
        found = [Rule("declared writers", "declared_writers", self.names())]
        found += [Rule("static buffers", "static_storage", static)] if static else []
        found += [Rule("steps of loops", "step_count", counted)] if counted else []
        return tuple(found)


# ---------------------------------------------------------------- on a host


@dataclass(frozen=True)
class At:
    """Where a flow lies on the host: a ``place``, or the ``words`` of a source."""

    place: InputOf | OutputOf | None = None
    words: str | None = None


@dataclass(frozen=True)
class StageUse:
    """A stage on a host: the module at ``path``, or a ``seam`` in the words of a source.

    eager_seam    the seam of the form without a graph
    capture       how it is captured; ``capture_words``: in the words of the source
    policy        how it chooses (greedy, sampling, verified_draft)
    protect       shallow_copy where the stage changes the container it gets
    """

    name: str
    path: str | None = None
    seam: str | None = None
    eager_seam: str | None = None
    capture: str | None = None
    capture_words: str | None = None
    policy: str | None = None
    protect: str | None = None
    flows: Mapping[str, At] | None = None


@dataclass(frozen=True)
class Segment:
    """A piece of the hot path. ``kind``: structure, state_region, host_stage, control."""

    name: str
    kind: str
    stage: str
    seam: str | None = None
    covers: tuple[str, ...] = ()
    seats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Coverage:
    """Every segment, as declared, and the names of those on the hot path in order."""

    contract: str
    hot_path: tuple[str, ...]
    segments: tuple[Segment, ...]

    def manifest(self) -> dict[str, Any]:
        """The coverage as plain data, for tools: each segment with whether it is hot."""
        return {
            "contract": self.contract,
            "hot_path": list(self.hot_path),
            "segments": [self._row(segment) for segment in self.segments],
        }

    def _row(self, segment: Segment) -> dict[str, Any]:
        row: dict[str, Any] = {
            "name": segment.name,
            "stage": segment.stage,
            "classification": segment.kind,
            "hot": segment.name in self.hot_path,
        }
        given = {
            "seam": segment.seam,
            "structures": list(segment.covers),
            "seats": list(segment.seats),
        }
        return row | {key: value for key, value in given.items() if value}


@dataclass(frozen=True)
class PipelineUse:
    """A pipeline on one host.

    stages    ``stages(model)``: the bound stages of this model
    steps     ``steps(config)``: loop -> number of steps; those told in words are left out
    words     loop -> the source's words for its number of steps
    cadences  cadence -> the stages that run at each beat; empty: the pipeline's own hold
    imported  why the use was never verified, or None
    """

    pipeline: PipelineSpec
    binding: str
    stages: Callable[[Any], tuple[StageUse, ...]]
    steps: Callable[[Any], Mapping[str, int]]
    words: Mapping[str, str]
    cadences: Mapping[str, tuple[str, ...]]
    coverage: Coverage | None = None
    imported: str | None = None

    def manifest(self, model: Any = None) -> dict[str, Any]:
        """The binding, its pipeline, its stages and its coverage as plain data."""
        out: dict[str, Any] = {
            "binding": self.binding,
            "pipeline": {
                "name": self.pipeline.name,
                "version": self.pipeline.version,
                "family": self.pipeline.family,
            },
            "stages": [stage.name for stage in self.stages(model)],
        }
        if self.coverage is not None:
            out["coverage"] = self.coverage.manifest()
        return out


def flows_of(stage: Stage) -> Iterator[str]:
    """Every flow that a stage touches, once."""
    yield from dict.fromkeys((*stage.reads, *stage.writes))

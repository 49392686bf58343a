"""The typed IR of pipelines, and of their use in a binding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frtspec.diag.source import Span
from frtspec.ir.decl.common import Origin, Status
from frtspec.ir.decl.structure import MetricBound
from frtspec.syntax import ast

if TYPE_CHECKING:
    from frtspec.ir.decl.binding import PlaceRef

# ---------------------------------------------------------------- declarations


@dataclass(frozen=True)
class Window:
    """A place where values enter or leave. ``mode``: swap, staged, readback or host.

    ``caller``: the caller fills it before the stages run. ``readback``: the host reads it
    afterwards (always so for the mode of that name)."""

    name: str
    mode: str
    caller: bool
    readback: bool
    cadence: str | None
    span: Span


@dataclass(frozen=True)
class Buffer:
    """What one stage leaves for another. ``mode``: static (written outside of loops, at one
    address) or mutable."""

    name: str
    mode: str
    cadence: str | None
    span: Span


@dataclass(frozen=True)
class StateRegion:
    """State that outlives one run of a stage: a buffer or window of that name, or something
    of its own. ``writers`` and ``readers``: every stage that declares to write or read it."""

    name: str
    cadence: str | None
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class StageAccess:
    """``access``: read, write or read_write; ``optional``: the value may be absent."""

    name: str
    access: str
    optional: bool
    span: Span

    @property
    def reads(self) -> bool:
        return self.access != "write"

    @property
    def writes(self) -> bool:
        return self.access != "read"


@dataclass(frozen=True)
class Stage:
    name: str
    doc: str
    optional: bool
    cadence: str
    values: tuple[StageAccess, ...]
    capture: str
    span: Span

    def access(self, name: str) -> StageAccess | None:
        return next((v for v in self.values if v.name == name), None)


@dataclass(frozen=True)
class StageLoop:
    """``steps`` None: the binding says how many. ``until``: the window whose truth ends it
    early. ``shapes``: fixed, or host where the host decides. ``runs``: one step, in order."""

    name: str
    steps: int | None
    until: str | None
    shapes: str
    runs: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class Substructure:
    """Work that is done once at its own, slower cadence inside a stage."""

    name: str
    cadence: str
    span: Span


@dataclass(frozen=True)
class Conform:
    """A rule of the pipeline, the one trace check that holds it, and what it is about."""

    name: str
    check: str
    subjects: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class PipelineGate:
    """``parity``: the outputs ``on`` against a baseline; ``net_win``: times ``per`` cadence."""

    kind: str
    on: tuple[str, ...]
    per: str | None
    metrics: tuple[MetricBound, ...]
    against: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class Pipeline:
    """A structure of stages. ``embeds``: structures and versions that may make it up."""

    name: str
    version: int
    doc: str
    status: Status
    family: str
    windows: tuple[Window, ...]
    buffers: tuple[Buffer, ...]
    states: tuple[StateRegion, ...]
    stages: tuple[Stage, ...]
    loops: tuple[StageLoop, ...]
    embeds: tuple[tuple[str, int], ...]
    substructures: tuple[Substructure, ...]
    conform: tuple[Conform, ...]
    gates: tuple[PipelineGate, ...]
    origin: Origin
    evidence: tuple[str, ...] = ()

    @property
    def flows(self) -> tuple[Window | Buffer, ...]:
        return (*self.windows, *self.buffers)

    def stage(self, name: str) -> Stage | None:
        return next((s for s in self.stages if s.name == name), None)

    def loop_of(self, stage: str) -> StageLoop | None:
        """The loop that runs a stage."""
        return next((loop for loop in self.loops if stage in loop.runs), None)

    def accesses(self, name: str) -> Iterator[tuple[Stage, StageAccess]]:
        """Every stage that reads or writes a value, in order."""
        for stage in self.stages:
            access = stage.access(name)
            if access is not None:
                yield stage, access


# ---------------------------------------------------------------- use in a binding


@dataclass(frozen=True)
class ValuePlace:
    """Where a window, buffer or state region (``kind``) is on the host: a ``place``, or the
    words of the source."""

    kind: str
    name: str
    place: PlaceRef | None
    text: str | None
    span: Span


@dataclass(frozen=True)
class BoundStage:
    """A stage on a host: the module at ``path``, or a ``seam`` in the words of the source.

    ``eager_seam``: the seam of the form without a graph. ``capture_text``: the source's
    words about how it is captured. ``policy``: how it chooses. ``protect``: what keeps it
    from changing what it was given.
    """

    name: str
    path: ast.HostPath | None
    seam: str | None
    eager_seam: str | None
    capture: str | None
    capture_text: str | None
    policy: str | None
    protect: str | None
    values: tuple[ValuePlace, ...]
    span: Span


@dataclass(frozen=True)
class BoundLoop:
    """``steps``: a config expression or a number; a string is the words of the source."""

    name: str
    steps: ast.Expr
    span: Span


@dataclass(frozen=True)
class BoundCadence:
    """The stages that run at each beat of a cadence."""

    name: str
    stages: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class Segment:
    """A piece of a model's hot path. ``kind``: structure, state_region, host_stage or
    control. ``covers``: structures, those of its seats where it names none; ``seats``: seats
    of the binding. ``hot``: on the path."""

    name: str
    kind: str
    stage: str
    seam: str | None
    covers: tuple[str, ...]
    seats: tuple[str, ...]
    hot: bool
    span: Span


@dataclass(frozen=True)
class Coverage:
    """``hot_path``: the names of its segments in order; ``segments``: all, as declared."""

    contract: str
    hot_path: tuple[str, ...]
    segments: tuple[Segment, ...]
    span: Span


@dataclass(frozen=True)
class BoundPipeline:
    """``pipeline NAME version N { … }`` in a binding. ``pipeline``: (name, version)."""

    pipeline: tuple[str, int]
    doc: str
    status: Status
    stages: tuple[BoundStage, ...]
    loops: tuple[BoundLoop, ...]
    cadences: tuple[BoundCadence, ...]
    coverage: Coverage | None
    span: Span

"""Members of pipelines, and of their use in a binding."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.source import Span
from frtspec.syntax.ast.binding import Place
from frtspec.syntax.ast.expr import ErrorNode, Expr, Name, String
from frtspec.syntax.ast.parts import (
    Docstring,
    EvidenceDecl,
    HostPath,
    Metric,
    StatusDecl,
    StructRef,
)

# ---------------------------------------------------------------- declarations


@dataclass(frozen=True, slots=True)
class FamilyDecl:
    """``family autoregressive_decode``."""

    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class WindowDecl:
    """``window noise : swap from caller``, ``window token : swap readback cadence token``.

    A place through which values go in or out of the pipeline."""

    name: Name
    mode: Name
    from_caller: bool
    readback: bool
    cadence: CadenceDecl | None
    span: Span


@dataclass(frozen=True, slots=True)
class BufferDecl:
    """``buffer condition : static cadence request``: what one stage leaves for another."""

    name: Name
    mode: Name
    cadence: CadenceDecl | None
    span: Span


@dataclass(frozen=True, slots=True)
class StateDecl:
    """``state kv_state cadence token writers (prefill, decode) readers (decode)``."""

    name: Name
    cadence: CadenceDecl | None
    writers: tuple[Name, ...]
    readers: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class CadenceDecl:
    """``cadence token``: how often something happens."""

    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Access:
    """One value that a stage reads or writes; ``geometry?`` where it may be absent."""

    name: Name
    optional: bool
    span: Span


@dataclass(frozen=True, slots=True)
class AccessDecl:
    """``read (token, cache?)``, ``write logits`` or ``read_write cache``."""

    mode: str
    values: tuple[Access, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class CaptureDecl:
    """``capture graph "the text of the source"``; only a binding gives a text."""

    mode: Name
    text: String | None
    span: Span


@dataclass(frozen=True, slots=True)
class StageDecl:
    """``stage readout? { cadence … read … write … capture … }``."""

    name: Name
    optional: bool
    doc: Docstring | None
    members: tuple[CadenceDecl | AccessDecl | CaptureDecl | ErrorNode, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class StepsDecl:
    """``steps = binding`` or ``steps = 4``."""

    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class UntilDecl:
    """``until stop``: the window that ends a loop early."""

    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class ShapesDecl:
    """``shapes fixed``: whether a loop sees the same shapes in every step."""

    mode: Name
    span: Span


@dataclass(frozen=True, slots=True)
class RunsDecl:
    """``runs (token_select, decode)``: the stages of one step, in order."""

    stages: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class LoopDecl:
    """``loop denoise { steps = binding shapes fixed runs (action_denoise) }``."""

    name: Name
    members: tuple[StepsDecl | UntilDecl | ShapesDecl | RunsDecl | ErrorNode, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class EmbedsDecl:
    """``embeds (decoder_ffn version 1, vision_ffn version 2)``."""

    structures: tuple[StructRef, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class SubstructureDecl:
    """``substructure cross_kv_precompute cadence prompt``."""

    name: Name
    cadence: CadenceDecl
    span: Span


@dataclass(frozen=True, slots=True)
class ConformDecl:
    """``conform noise_is_hoisted : explicit_window (noise)``: a rule and what checks it."""

    name: Name
    check: Name
    subjects: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PipelineGateDecl:
    """``gate parity on (logits) { cosine >= 0.999, against (host_eager_same_tokens) }``."""

    kind: Name
    on: tuple[Name, ...]
    per: Name | None
    metrics: tuple[Metric, ...]
    including: Name | None
    against: tuple[Name, ...]
    span: Span


PipelineMember = (
    StatusDecl
    | EvidenceDecl
    | FamilyDecl
    | WindowDecl
    | BufferDecl
    | StateDecl
    | StageDecl
    | LoopDecl
    | EmbedsDecl
    | SubstructureDecl
    | ConformDecl
    | PipelineGateDecl
    | ErrorNode
)

# ---------------------------------------------------------------- use in a binding


@dataclass(frozen=True, slots=True)
class SeamText:
    """``seam "the words of the source"``; ``eager``: of the form without a graph."""

    text: String
    eager: bool
    span: Span


@dataclass(frozen=True, slots=True)
class PolicyDecl:
    """``policy greedy``: how a stage chooses."""

    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class ProtectDecl:
    """``protect shallow_copy``: what keeps a stage from changing what it was given."""

    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class ValueAt:
    """``window noise = arg noise of action_head``, ``buffer condition = "its words"``."""

    kind: str
    name: Name
    place: Place | None
    text: String | None
    span: Span


@dataclass(frozen=True, slots=True)
class StageUse:
    """``stage decode at model.language_model { … }``: what a stage is on this host."""

    name: Name
    path: HostPath | None
    members: tuple[SeamText | CaptureDecl | PolicyDecl | ProtectDecl | ValueAt | ErrorNode, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class LoopUse:
    """``loop denoise steps = config.num_inference_timesteps``."""

    name: Name
    steps: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class CadenceUse:
    """``cadence tick runs (obs_encode, action_denoise)``."""

    name: Name
    stages: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class SegmentDecl:
    """``segment ffn : structure in decode { seats (ffn) }``."""

    name: Name
    kind: Name
    stage: Name
    members: tuple[SeamText | CoversDecl | SeatsDecl | ErrorNode, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class CoversDecl:
    """``covers (vision_ffn, qkv_pack)``: structures that make up a segment."""

    structures: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class SeatsDecl:
    """``seats (ffn, qkv)``: seats of the binding that make up a segment."""

    seats: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class HotPathDecl:
    """``hot_path (embedding, attention, ffn)``: its segments in order."""

    segments: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class CoverageDecl:
    """``coverage complete_hot_path { hot_path (…) segment … }``."""

    contract: Name
    members: tuple[HotPathDecl | SegmentDecl | ErrorNode, ...]
    span: Span


UseMember = StatusDecl | StageUse | LoopUse | CadenceUse | CoverageDecl | ErrorNode

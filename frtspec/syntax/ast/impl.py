"""Members of impls and schemes."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.source import Span
from frtspec.syntax.ast.expr import Arg, ErrorNode, Expr, Granularity, Match, Name, Number, String
from frtspec.syntax.ast.parts import Range, StructRef


@dataclass(frozen=True, slots=True)
class PackDecl:
    """``pack gate_up = quantize(cat(w_gate.T, w_up.T), fp8_e4m3, per tensor)``."""

    name: Name
    index: Name | None
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class ScaleDecl:
    """``scale in_s = static(x_after_norm)``."""

    name: Name
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class NumericsDecl:
    """``numerics { acc f32, store g bf16, out bf16 }``: (role, value name or None, dtype)."""

    items: tuple[tuple[Name, Name | None, Name], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class AdmitsDecl:
    """``admits x_after_norm { bf16, fp16, f32 }``."""

    point: Name
    dtypes: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class OnlyDecl:
    """``only activation (silu, gelu)``: variants the impl, or one of its rungs, serves."""

    axis: Name
    values: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class EnvelopeDecl:
    rules: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class CallDecl:
    """``call entry (args)``, ``call match axis { v => entry } (args)``, or
    ``call match axis { v => entry (args), … }`` (arm values are ``Call``; ``args`` empty)."""

    entry: Name | Match
    args: tuple[Arg, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class StepDecl:
    """``let q4 = …``, ``let (o, lse) = allocate_outputs(q4)``, ``yield y = …``, and
    ``prepare w16 = bf16(w)`` of a rung. ``several``: the value is a tuple of as many."""

    kind: str
    names: tuple[Name, ...]
    several: bool
    value: Expr
    when: Expr | None
    otherwise: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class CallStepsDecl:
    """``call { let …  yield … }``: a kernel's entries and what stands between them."""

    steps: tuple[StepDecl | ErrorNode, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class LowerDecl:
    """``lower matmul to scaled_mm``: a torch op that replaces an op of the dataflow."""

    op: Name
    target: Name
    span: Span


@dataclass(frozen=True, slots=True)
class RungDecl:
    """``rung hub "org/name" version 1 {…}``, ``rung local "name" version 1 {…}``,
    ``rung torch {…}``, ``rung emulate``."""

    kind: Name
    package: String | None
    version: Number | None
    members: tuple[
        EnvelopeDecl | StepDecl | CallDecl | CallStepsDecl | LowerDecl | OnlyDecl | ErrorNode, ...
    ]
    span: Span


@dataclass(frozen=True, slots=True)
class BandDecl:
    """``band M in 1..=8 { rung … } [otherwise host]``."""

    dim: Name
    range: Range
    rungs: tuple[RungDecl, ...]
    otherwise_host: bool
    span: Span


@dataclass(frozen=True, slots=True)
class StatRequest:
    """``x_after_norm: amax per tensor``, ``x: histogram(bins = 2048) per tensor``; ``stat``
    is ``none`` for a point that is quantised at each call."""

    point: Name
    stat: Name
    args: tuple[Arg, ...]
    granularity: Granularity | None
    span: Span


@dataclass(frozen=True, slots=True)
class AtDecl:
    """``at decoder_ffn.mlp {stats} [keep when …] use fp8_static [with (alpha = 0.5)]``
    or ``at … keep "reason"``."""

    target: StructRef
    stats: tuple[StatRequest, ...]
    use: Name | None
    params: tuple[Arg, ...]
    keep: String | None
    keep_when: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class OtherwiseKeepDecl:
    reason: String
    span: Span

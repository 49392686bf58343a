"""Members of a structure, and the statements of its reference."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.source import Span
from frtspec.syntax.ast.expr import ErrorNode, Expr, Name
from frtspec.syntax.ast.parts import DimItem, Metric, Range, StructRef, TypeRef


@dataclass(frozen=True, slots=True)
class DimDecl:
    """``dim M, D`` / ``dim N[i]``; one item per name."""

    names: tuple[tuple[Name, Name | None], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class IndexDecl:
    """``index i in 2..=8``."""

    name: Name
    range: Range
    span: Span


@dataclass(frozen=True, slots=True)
class ParamDecl:
    """``param eps = 1e-6``; in an impl also ``param alpha = 0.5 from 0 to 1``."""

    name: Name
    default: Expr | None
    least: Expr | None
    most: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class PortDecl:
    """``in x [rows M, D] : host …`` or ``out y [rows M, D] : host …``.

    ``default`` is what an absent optional input stands for (``= zeros``);
    ``updates`` names the input an output overwrites, ``aliases`` the input it is.
    """

    direction: str  # "in" | "out"
    name: Name
    index: Name | None
    optional: bool
    dims: tuple[DimItem, ...]
    type: TypeRef
    default: Expr | None
    updates: Name | None
    aliases: Name | None
    when: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class SlotDecl:
    """``slot w_gate [D, F]``, ``slot b? [N]``, ``slot w[i] [K, N[i]]``,
    ``slot ffn : structure decoder_ffn version 1 with (activation is silu)``.

    ``pins``: variants of the inner structure that are settled here."""

    name: Name
    index: Name | None
    optional: bool
    dims: tuple[DimItem, ...] | None
    type: TypeRef | None
    structure: StructRef | None
    pins: tuple[Expr, ...]
    when: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class PartDecl:
    """``part attn : host fn (q, k, v) -> o``: what stays the host's inside a block."""

    name: Name
    params: tuple[Name, ...]
    results: tuple[Name, ...]
    when: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class VariantDecl:
    """``variant activation { gelu, silu }``; ``retired`` values keep their names reserved."""

    name: Name
    values: tuple[Name, ...]
    default: Name | None
    retired: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class CombinationsDecl:
    """``combinations { all except (bias is none and epilogue is residual_add) }``.

    ``excluded`` holds the conditions of combinations that do not exist.
    """

    excluded: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PointDecl:
    """``point cond content [was old] [when …]``: a declared point outside a reference."""

    name: Name
    kind: Name
    when: Expr | None
    span: Span
    was: Name | None = None


@dataclass(frozen=True, slots=True)
class LetStmt:
    """``let|point|yield|next|emit name = expr [was old] [when c [otherwise e]]``; ``was``
    stands at points only."""

    kind: str
    name: Name
    index: Name | None
    point_kind: Name | None
    value: Expr
    when: Expr | None
    otherwise: Expr | None
    span: Span
    was: Name | None = None


@dataclass(frozen=True, slots=True)
class EachStmt:
    """``each i { … }`` in a reference."""

    index: Name
    body: tuple[Stmt, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ScanStmt:
    """``scan t in S over k[:, t], v[:, t] carry s = state { … next s = … emit out = … }``."""

    step: Name
    dim: Name
    over: tuple[Expr, ...]
    carries: tuple[tuple[Name, Expr], ...]
    body: tuple[Stmt, ...]
    span: Span


Stmt = LetStmt | EachStmt | ScanStmt | ErrorNode


@dataclass(frozen=True, slots=True)
class ReferenceDecl:
    body: tuple[Stmt, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class SeamDecl:
    """``seam mlp { from x_after_norm to o  gate cosine >= 0.995 }``."""

    name: Name
    sources: tuple[Name, ...]
    targets: tuple[Name, ...]
    gates: tuple[Metric, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class GateDecl:
    """``gate boundary on real_distribution {…}`` / ``gate latency per shape {…}``."""

    kind: Name
    on: Name | None
    per: Name | None
    metrics: tuple[Metric, ...]
    including: Name | None
    against: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class QualifyDecl:
    """``qualify [for form] [when c] { F * D >= 1048576 }``: rules of profit, not of correctness."""

    form: Name | None
    when: Expr | None
    rules: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class RequireDecl:
    """``require [for form] [when c] { D % 2 == 0 }``: what has to hold; part of the contract."""

    form: Name | None
    when: Expr | None
    rules: tuple[Expr, ...]
    span: Span

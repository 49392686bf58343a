"""Small parts that several declarations share: axes, types, paths, ranges, references."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.source import Span
from frtspec.syntax.ast.expr import Expr, Name, Number, String


@dataclass(frozen=True, slots=True)
class Docstring:
    """PEP 257-dedented text; ``raw`` is the literal as written."""

    text: str
    raw: str
    span: Span


@dataclass(frozen=True, slots=True)
class DimItem:
    """One axis: ``rows M``, ``(Hq + 2*Hkv)*D``, ``D/2 | D``, ``*``.

    ``alternatives`` is empty for ``*``.
    """

    alternatives: tuple[Expr, ...]
    rows: bool
    span: Span


@dataclass(frozen=True, slots=True)
class TypeRef:
    """``host``, ``f32``, ``bf16``, ``fp8_e4m3``…, with the wire's scale name if any."""

    name: Name
    scale: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class PathPart:
    """A literal run (``model.layers.``) or an interpolation (``{i}``) in a host path."""

    text: str | None
    expr: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class HostPath:
    """``model.layers.{i}.mlp``; ``text`` is the source form, parts carry inner spans."""

    text: str
    parts: tuple[PathPart, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Range:
    """``a..b`` (half-open) or ``a..=b``; ``hi`` is None for an open end."""

    lo: Expr
    hi: Expr | None
    inclusive: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Metric:
    """``cosine >= 0.999`` or a bare reported metric ``max_abs``."""

    name: Name
    op: str | None
    bound: Number | None
    span: Span


@dataclass(frozen=True, slots=True)
class StatusDecl:
    """``status draft`` or ``status imported "reason"``."""

    name: Name
    reason: String | None
    span: Span


@dataclass(frozen=True, slots=True)
class EvidenceDecl:
    """``evidence \"\"\"…\"\"\"``: measurements and prose, outside the contract digest."""

    text: Docstring
    span: Span


@dataclass(frozen=True, slots=True)
class StructRef:
    """``decoder_ffn.mlp version 1``."""

    name: Name
    seam: Name | None
    version: Number | None
    span: Span

"""The typed IR of schemes."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from frtspec.diag.source import Span
from frtspec.ir.decl.common import Origin, Status


@dataclass(frozen=True)
class Stat:
    """What is measured at a point. ``stat`` None: the format quantises it at run time."""

    point: str
    stat: str | None
    granularity: tuple[str, int | None] | None


@dataclass(frozen=True)
class Route:
    """What becomes of one structure (seam) under a scheme: ``use`` an impl, or ``keep``."""

    structure: str
    seam: str | None
    stats: tuple[Stat, ...]
    use: str | None
    params: tuple[tuple[str, Decimal | str], ...]
    keep: str | None
    span: Span
    structure_version: int = 1


@dataclass(frozen=True)
class Scheme:
    name: str
    doc: str
    status: Status
    routes: tuple[Route, ...]
    otherwise: str
    origin: Origin
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class AutoTable:
    """Rows of (minimum compute capability as text, or None for else) -> scheme."""

    rows: tuple[tuple[Decimal | None, str], ...]
    origin: Origin

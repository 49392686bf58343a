"""The typed IR of schemes."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from frtspec.diag.source import Span
from frtspec.ir.decl.common import Origin, Status


@dataclass(frozen=True)
class Stat:
    """What is measured at a point. ``stat`` None: the format quantises it at run time.
    ``bins``: of a histogram."""

    point: str
    stat: str | None
    granularity: tuple[str, int | None] | None
    bins: int | None = None


@dataclass(frozen=True)
class Amount:
    """A number that a decision compares.

    ``kind``: ``number`` (``value``), ``dim`` (``name``), an amount of ``words.AMOUNTS``
    (``name``: its point or dim, where it has one; ``value``: its number, where it takes
    one), or ``+ - * /`` of two ``parts``.
    """

    kind: str
    name: str | None = None
    value: Decimal | None = None
    parts: tuple[Amount, ...] = ()


@dataclass(frozen=True)
class Comparison:
    left: Amount
    op: str
    right: Amount


@dataclass(frozen=True)
class Together:
    """``word``: ``and`` or ``or``."""

    word: str
    parts: tuple[Condition, ...]


Condition = Comparison | Together


@dataclass(frozen=True)
class Route:
    """What becomes of one structure (seam) under a scheme: ``use`` an impl, or ``keep``.

    ``params``: a number for every param of the impl. ``keep_when``: where it holds, the host
    is kept although there is an impl.
    """

    structure: str
    seam: str | None
    stats: tuple[Stat, ...]
    use: str | None
    params: tuple[tuple[str, Decimal], ...]
    keep: str | None
    span: Span
    structure_version: int = 1
    keep_when: Condition | None = None


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

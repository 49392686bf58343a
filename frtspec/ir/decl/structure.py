"""The typed IR of structures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from frtspec.diag.source import Span
from frtspec.dims import Constraint, Measured, Poly, Shape
from frtspec.ir.decl.common import Origin, Status
from frtspec.ir.decl.discover import Discover
from frtspec.ir.expr import Cond, Stmt
from frtspec.ir.types import ValueType


@dataclass(frozen=True)
class IndexVar:
    """``index i in lo..=hi`` (both ends inclusive here)."""

    name: str
    lo: int
    hi: int
    span: Span


@dataclass(frozen=True)
class Param:
    name: str
    default: Decimal | None
    span: Span


@dataclass(frozen=True)
class Port:
    """A tensor at the boundary. ``dtype`` is ``host`` or a concrete dtype name.

    ``shape`` is symbolic; ``rows`` axes fold any number of leading axes.
    ``default``: what an absent optional input stands for (``zeros``/``ones``) or None.
    """

    direction: str
    name: str
    index: str | None
    optional: bool
    shape: Shape
    dtype: str
    scale: str | None
    default: str | None
    updates: str | None
    aliases: str | None
    when: Cond | None
    span: Span


@dataclass(frozen=True)
class Inner:
    """A structure, or one seam of it, that stands as a slot of another.

    pins     variants of the inner structure that are settled here
    digest   the inner structure's contract digest
    inputs   what it is called with, in order; a seam's sources as ports
    outputs  what it gives
    dims     its dims in the outer ones; one that only its slots show is its own, ``ffn.F``
    whole    the inner structure; stands for itself in the contract by its digest
    """

    name: str
    version: int
    seam: str | None
    pins: tuple[tuple[str, str], ...]
    digest: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    whole: Structure
    dims: tuple[tuple[str, Poly], ...] = ()

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The inner slots that a call reads."""
        if self.seam is None:
            return self.whole.slots
        wanted = self.whole.seam(self.seam).slots
        return tuple(slot for slot in self.whole.slots if slot.name in wanted)


@dataclass(frozen=True)
class Slot:
    """A weight. ``inner`` is set for composition slots (then ``shape`` is None)."""

    name: str
    index: str | None
    optional: bool
    shape: Shape | None
    dtype: str | None
    inner: Inner | None
    when: Cond | None
    span: Span


@dataclass(frozen=True)
class Part:
    name: str
    params: tuple[str, ...]
    results: tuple[str, ...]
    when: Cond | None
    span: Span


@dataclass(frozen=True)
class Variant:
    name: str
    values: tuple[str, ...]
    default: str | None
    retired: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class Point:
    """A named position. ``kind``: statistic, content, observation.

    ``defined`` tells whether the reference defines it (else it was declared). ``was``: what
    the version before called it; no part of the contract."""

    name: str
    kind: str
    when: Cond | None
    defined: bool
    span: Span
    was: str | None = None


@dataclass(frozen=True)
class MetricBound:
    """``op`` is ``>=`` or ``<=``; both None when the metric is reported, not judged."""

    metric: str
    op: str | None
    bound: Decimal | None
    span: Span


@dataclass(frozen=True)
class Seam:
    """A cut of the dataflow. ``values`` are the statements between the ends, in order;
    ``slots`` and ``points`` those that lie inside; ``inputs`` the boundary inputs it reads
    besides its sources (must be empty for a seam a host module can stand for)."""

    name: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    gates: tuple[MetricBound, ...]
    body: tuple[Stmt, ...]
    slots: tuple[str, ...]
    points: tuple[str, ...]
    variants: tuple[str, ...]
    params: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class Gate:
    """``boundary`` or ``latency``; see the language reference."""

    kind: str
    on: str | None
    per: str | None
    metrics: tuple[MetricBound, ...]
    including: str | None
    against: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class Rule:
    """One rule of ``require`` or ``qualify`` (``kind``).

    ``form``: the impl or mechanism it is for, None for every one; ``when``: the variants.
    """

    kind: str
    form: str | None
    when: Cond | None
    test: Constraint | Measured
    span: Span


@dataclass(frozen=True)
class Structure:
    name: str
    version: int
    doc: str
    status: Status
    dims: tuple[str, ...]
    indexed_dims: tuple[tuple[str, str], ...]
    indexes: tuple[IndexVar, ...]
    params: tuple[Param, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    slots: tuple[Slot, ...]
    parts: tuple[Part, ...]
    variants: tuple[Variant, ...]
    excluded: tuple[Cond, ...]
    reference: tuple[Stmt, ...]
    points: tuple[Point, ...]
    seams: tuple[Seam, ...]
    gates: tuple[Gate, ...]
    rules: tuple[Rule, ...]
    evidence: tuple[str, ...]
    origin: Origin
    discover: tuple[Discover, ...] = ()
    types: Mapping[str, ValueType] = field(default_factory=dict, compare=False, repr=False)
    """The type of every value of the reference, as its last definition gives it."""

    def seam(self, name: str) -> Seam:
        return next(s for s in self.seams if s.name == name)

    @property
    def every_point(self) -> tuple[Point, ...]:
        """Its own points, then those of inner structures: ``ffn.act_after_mul``."""
        return (*self.points, *self.inner_points)

    @property
    def inner_points(self) -> tuple[Point, ...]:
        out = []
        for slot in self.slots:
            if slot.inner is None:
                continue
            whole, seam = slot.inner.whole, slot.inner.seam
            wanted = None if seam is None else whole.seam(seam).points
            for point in whole.every_point:
                if wanted is None or point.name in wanted:
                    name = f"{slot.name}.{point.name}"
                    out.append(Point(name, point.kind, slot.when, False, slot.span))
        return tuple(out)

    @property
    def requires(self) -> tuple[Constraint, ...]:
        """The rules on sizes that every seat has to obey, whatever its variants."""
        return tuple(
            rule.test
            for rule in self.rules
            if rule.kind == "require"
            and rule.form is None
            and rule.when is None
            and isinstance(rule.test, Constraint)
        )

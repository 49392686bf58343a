"""The typed IR of declarations: what every later phase reads.

All names are resolved and unique, defaults filled in, order as declared. Each
class keeps the span of its declaration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from frtspec.diag.source import Span
from frtspec.dims import Constraint, Shape
from frtspec.ir.expr import Cond, Expr, Stmt
from frtspec.syntax import ast


@dataclass(frozen=True)
class Origin:
    """Where a declaration came from. ``source_digest``: sha256 of the file's bytes;
    ``contract_digest``: sha256 of the canonical IR, filled in by ``ir.canon``."""

    path: str
    source_digest: str
    span: Span
    contract_digest: str = ""


@dataclass(frozen=True)
class Status:
    """draft | imported(reason)."""

    name: str
    reason: str | None = None


# ---------------------------------------------------------------- structures


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
class Slot:
    """A weight. ``structure`` is set for composition slots (then ``shape`` is None)."""

    name: str
    index: str | None
    optional: bool
    shape: Shape | None
    dtype: str | None
    structure: tuple[str, int] | None
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

    ``defined`` tells whether the reference defines it (else it was declared)."""

    name: str
    kind: str
    when: Cond | None
    defined: bool
    span: Span


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
class Qualify:
    form: str | None
    rules: tuple[Constraint, ...]
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
    requires: tuple[Constraint, ...]
    reference: tuple[Stmt, ...]
    points: tuple[Point, ...]
    seams: tuple[Seam, ...]
    gates: tuple[Gate, ...]
    qualify: tuple[Qualify, ...]
    evidence: tuple[str, ...]
    origin: Origin

    def seam(self, name: str) -> Seam:
        return next(s for s in self.seams if s.name == name)


# ---------------------------------------------------------------- impls


@dataclass(frozen=True)
class Pack:
    """``expr`` is built from pack ops (quantize, cat, transpose) over slots.

    ``format`` is a dtype name (fp8_e4m3, int8, bf16…), ``granularity`` a
    ``(kind, size)`` pair, or None for an unquantised pack. ``slots`` lists the
    packed slots in order along the concatenated (output) axis; ``transposed``
    tells that the pack is stored out_in ([N, K]) while slots are in_out.
    """

    name: str
    expr: Expr
    format: str | None
    granularity: tuple[str, int | None] | None
    slots: tuple[str, ...]
    index: str | None
    transposed: bool
    span: Span


@dataclass(frozen=True)
class Scale:
    """``static(point)``: from calibration. ``dynamic(point, per row)``: at run time."""

    name: str
    kind: str
    point: str
    granularity: tuple[str, int | None]
    span: Span


@dataclass(frozen=True)
class Numerics:
    """``acc`` dtype of every matmul; ``stores``: value name -> dtype it is rounded to;
    ``out``: dtype the kernel writes."""

    acc: str
    stores: tuple[tuple[str, str], ...]
    out: str | None


@dataclass(frozen=True)
class KernelArg:
    """One argument of a kernel entry.

    ``kind``: ``point`` (the tensor handed in), ``pack``, ``pack_scale``, ``scale``,
    ``slot``, ``dim``, ``const``. ``cast``: dtype it is cast to first (``bf16(x)``);
    ``quantize``: (format, scale name) it is quantised with first.
    """

    keyword: str | None
    kind: str
    name: str
    cast: str | None = None
    quantize: tuple[str, str] | None = None


@dataclass(frozen=True)
class KernelCall:
    """``arms``: (variant value or None, entry name, arguments); one arm with value None
    when ``axis`` is None."""

    axis: str | None
    arms: tuple[tuple[str | None, str, tuple[KernelArg, ...]], ...]
    span: Span


@dataclass(frozen=True)
class Rung:
    """``kind``: hub, local, torch, emulate. ``lower``: dataflow op -> torch op."""

    kind: str
    package: str | None
    version: int | None
    envelope: tuple[Constraint, ...]
    call: KernelCall | None
    lower: tuple[tuple[str, str], ...]
    span: Span


@dataclass(frozen=True)
class Band:
    dim: str
    lo: int
    hi: int | None
    rungs: tuple[Rung, ...]
    otherwise_host: bool
    span: Span


@dataclass(frozen=True)
class Impl:
    name: str
    structure: tuple[str, int]
    seam: str | None
    version: int
    doc: str
    status: Status
    packs: tuple[Pack, ...]
    scales: tuple[Scale, ...]
    numerics: Numerics
    admits: tuple[tuple[str, tuple[str, ...]], ...]
    only: tuple[tuple[str, tuple[str, ...]], ...]
    rungs: tuple[Rung, ...]
    bands: tuple[Band, ...]
    origin: Origin
    evidence: tuple[str, ...] = ()


# ---------------------------------------------------------------- schemes


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


# ---------------------------------------------------------------- bindings
#
# Config expressions stay syntax trees: they are evaluated on the host's config
# at run time, so codegen turns them into Python expressions.


@dataclass(frozen=True)
class WeightView:
    """``view``: param, zeros, ones, transpose, chunks, expert. ``layout``: in_out or
    out_in for matrices, None for vectors."""

    slot: str
    index: int | None
    view: str
    path: ast.HostPath | None
    args: tuple[str | int | tuple[str, ...], ...]
    layout: str | None
    span: Span


@dataclass(frozen=True)
class PlaceRef:
    """``kind``: input, output, arg; ``path`` relative to the seat, None for the seat itself."""

    kind: str
    path: ast.HostPath | None
    arg: str | None
    span: Span


@dataclass(frozen=True)
class BoundaryRef:
    path: ast.HostPath | None
    inputs: tuple[tuple[str, PlaceRef], ...]
    outputs: tuple[tuple[str, PlaceRef], ...]
    slots: tuple[WeightView, ...]
    none_reason: str | None
    span: Span


@dataclass(frozen=True)
class Expect:
    fact: str
    values: tuple[str, ...]
    of: tuple[ast.HostPath, ...]
    span: Span


@dataclass(frozen=True)
class Seat:
    """One ``seat`` declaration. ``form``: swap | siblings (others are unsupported yet)."""

    name: str
    structure: tuple[str, int]
    seam: str | None
    path: ast.HostPath
    when: ast.Expr | None
    form: str
    variants: tuple[tuple[str, ast.Expr], ...]
    params: tuple[tuple[str, ast.Expr], ...]
    dims: tuple[tuple[str, ast.Expr], ...]
    slots: tuple[WeightView, ...]
    points: tuple[tuple[str, PlaceRef], ...]
    siblings: tuple[WeightView, ...]
    prove: tuple[str, ...]
    boundary: BoundaryRef | None
    expects: tuple[Expect, ...]
    span: Span


@dataclass(frozen=True)
class EachSeats:
    """``each i in lo..hi where cond``; ``index`` None for seats outside any ``each``."""

    index: str | None
    lo: ast.Expr | None
    hi: ast.Expr | None
    inclusive: bool
    where: ast.Expr | None
    seats: tuple[Seat, ...]
    span: Span


@dataclass(frozen=True)
class HostRef:
    package: str
    versions: str | None
    classes: tuple[str, ...]


@dataclass(frozen=True)
class Binding:
    name: str
    doc: str
    status: Status
    hosts: tuple[HostRef, ...]
    dims: tuple[tuple[str, ast.Expr], ...]
    groups: tuple[EachSeats, ...]
    origin: Origin
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """Everything checked in one run and found right, sorted by key.

    Structures by (name, version); impls by (structure, its version, seam or None, impl
    name); schemes and bindings by name.
    """

    structures: dict[tuple[str, int], Structure] = field(default_factory=dict)
    impls: dict[tuple[str, int, str | None, str], Impl] = field(default_factory=dict)
    schemes: dict[str, Scheme] = field(default_factory=dict)
    auto: AutoTable | None = None
    bindings: dict[str, Binding] = field(default_factory=dict)

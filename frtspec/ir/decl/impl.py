"""The typed IR of impls."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.source import Span
from frtspec.dims import Constraint
from frtspec.ir.decl.common import Origin, Status
from frtspec.ir.expr import Expr


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

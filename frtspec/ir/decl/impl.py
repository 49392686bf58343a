"""The typed IR of impls."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from frtspec.diag.source import Span
from frtspec.dims import Constraint
from frtspec.ir.decl.common import Origin, Status
from frtspec.ir.decl.structure import Gate
from frtspec.ir.expr import Cond, Expr, Op
from frtspec.ir.walk import parts

Granularity = tuple[str, int | None]


@dataclass(frozen=True)
class ImplParam:
    """A number that a scheme's route may set, from ``lo`` to ``hi`` (None: no end)."""

    name: str
    default: Decimal
    span: Span
    lo: Decimal | None = None
    hi: Decimal | None = None

    def holds(self, value: Decimal) -> bool:
        return (self.lo is None or value >= self.lo) and (self.hi is None or value <= self.hi)


@dataclass(frozen=True)
class Pack:
    """``expr`` is built from pack ops (quantize, cat, transpose) over slots.

    ``format`` is a dtype name (fp8_e4m3, int8, bf16…), ``granularity`` a
    ``(kind, size)`` pair, or None for an unquantised pack. ``slots`` lists the
    packed slots in order along the concatenated (output) axis; ``transposed``
    tells that the pack is stored out_in ([N, K]) while slots are in_out. ``balance``:
    the scale whose factors the weight is multiplied by before it is quantised.
    """

    name: str
    expr: Expr
    format: str | None
    granularity: tuple[str, int | None] | None
    slots: tuple[str, ...]
    index: str | None
    transposed: bool
    span: Span
    balance: str | None = None


@dataclass(frozen=True)
class Scale:
    """What stands between a point's values and the codes that a product is handed.

    kind         ``static``: from calibration; ``dynamic``: at run time; ``balance``: factors
                 by channel, from calibration, that go into the weight
    format       of the codes; None for ``balance``, and where it could not be told
    granularity  of the scale; for ``balance`` of what is measured: by channel
    settings     of ``balance``: alpha and the limits, each a number or the name of a param
    """

    name: str
    kind: str
    point: str
    format: str | None
    granularity: Granularity
    span: Span
    settings: tuple[Decimal | str, ...] = ()

    @property
    def measured(self) -> Granularity | None:
        """The granularity of the largest magnitude that calibration has to measure."""
        return None if self.kind == "dynamic" else self.granularity


@dataclass(frozen=True)
class Need:
    """A rule on dims. ``why``: what it follows from, None where the spec states it."""

    rule: Constraint
    why: str | None


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

    ``kind``: ``point`` (the tensor handed in), ``pack``, ``pack_scale``,
    ``pack_tensor_scale``, ``scale``, ``slot``, ``param``, ``dim``, ``const``, ``literal``,
    ``text``. ``cast``: dtype it is cast to first (``bf16(x)``);
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
class Step:
    """One line of a call of several steps, or what is prepared for them.

    kind      ``prepare``: once, when a seat is bound; ``let``; ``yield``: names are outputs
    names     what gets the value; ``_`` drops one of several
    several   the value is a tuple of as many as there are names
    value     ops of the dataflow, those of ``ir.stepops``, and ``entry``, a call into the
              package. Names are ``Ref``s of kind input, value, prepared, slot, pack, pack_scale,
              pack_tensor_scale, scale, param, reference (a value of the reference), literal
              (true, false, none) and text
    rebinds   a false ``when`` keeps the value that the name had before
    """

    kind: str
    names: tuple[str, ...]
    several: bool
    value: Expr
    when: Cond | None
    otherwise: Expr | None
    rebinds: bool
    span: Span


@dataclass(frozen=True)
class Rung:
    """``kind``: hub, local, torch, emulate. ``lower``: dataflow op -> torch op. ``only``:
    variants that this rung serves of those that the impl does. ``prepared``: what the package
    needs once, when a seat is bound; ``steps``: the call, where it is more than one entry."""

    kind: str
    package: str | None
    version: int | None
    envelope: tuple[Constraint, ...]
    call: KernelCall | None
    lower: tuple[tuple[str, str], ...]
    span: Span
    only: tuple[tuple[str, tuple[str, ...]], ...] = ()
    prepared: tuple[Step, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def entries(self) -> tuple[str, ...]:
        """Entries of the package that the rung calls, each once."""
        arms = () if self.call is None else self.call.arms
        found = [entry for _, entry, _ in arms]
        for step in (*self.prepared, *self.steps):
            values = [step.value] if step.otherwise is None else [step.value, step.otherwise]
            for part in (part for value in values for part in parts(value)):
                if isinstance(part, Op) and part.op == "entry":
                    found.append(str(part.attr("name")))
        return tuple(dict.fromkeys(found))


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
    """``wire``: the format that a chain carries its output in; None: it is no producer.
    ``gates``: what the gate harness holds it to, in place of the structure's bounds."""

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
    params: tuple[ImplParam, ...] = ()
    needs: tuple[Need, ...] = ()
    wire: str | None = None
    gates: tuple[Gate, ...] = ()

    def measured(self) -> dict[str, Granularity]:
        """Point -> the granularity at which a scheme has to measure its largest magnitude.

        By channel covers the whole tensor.
        """
        out: dict[str, Granularity] = {}
        for scale in self.scales:
            if scale.measured is not None and out.get(scale.point, ("tensor",))[0] == "tensor":
                out[scale.point] = scale.measured
        return out

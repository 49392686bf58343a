"""Typed-IR expressions and statements of a reference dataflow.

Names are resolved (a ``Ref`` always points at something declared), operators
are ops of the closed table in ``ops.py``, dims used as scalars are polynomials.
Spans stay for messages and are left out of every digest.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from frtspec.diag.source import Span
from frtspec.dims import Poly


@dataclass(frozen=True, slots=True)
class Const:
    """A number, exact."""

    value: Decimal
    span: Span


@dataclass(frozen=True, slots=True)
class DimValue:
    """A dim (polynomial) used as a scalar: ``Dk ** -0.5``."""

    poly: Poly
    span: Span


@dataclass(frozen=True, slots=True)
class Ref:
    """A value by name. ``kind``: input, slot, param, value (let/point), carry, index.

    ``index`` is the index variable of a repeated value (``w[i]``), or None.
    """

    name: str
    kind: str
    index: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class SliceArg:
    """One item of an ``index`` op: a slice, a position (``lo``), a step variable, or ``...``."""

    kind: str  # "slice" | "at" | "step" | "ellipsis"
    lo: Poly | None
    hi: Poly | None
    step: str | None


@dataclass(frozen=True, slots=True)
class Op:
    """An op of the table. ``attrs`` holds what is no tensor (axis, dtype, formats)."""

    op: str
    args: tuple[Expr, ...]
    attrs: tuple[tuple[str, Attr], ...]
    span: Span

    def attr(self, name: str, default: Attr | None = None) -> Attr | None:
        return dict(self.attrs).get(name, default)


@dataclass(frozen=True, slots=True)
class Select:
    """``match axis {…}`` on a variant axis; arms cover every value of the axis."""

    axis: str
    arms: tuple[tuple[tuple[str, ...], Expr], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Absent:
    """What an optional value is where it is not given (``= zeros``)."""

    form: str
    span: Span


@dataclass(frozen=True, slots=True)
class EachOf:
    """``each i => w[i].T``: one value per index, in order (an argument of ``cat`` only)."""

    index: str
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Invalid:
    """Stands where an error was reported; never part of a checked program.

    ``reads``: values that were named there, so that they count as read.
    """

    span: Span
    reads: tuple[str, ...] = ()


Attr = (
    str
    | int
    | Decimal
    | Poly
    | tuple[str, ...]
    | tuple[int, ...]
    | tuple[SliceArg, ...]
    | tuple[Poly, ...]
)
Expr = Const | DimValue | Ref | Op | Select | Absent | EachOf | Invalid


# ---------------------------------------------------------------- conditions


@dataclass(frozen=True, slots=True)
class AxisIs:
    axis: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IsPresent:
    name: str


@dataclass(frozen=True, slots=True)
class Not:
    cond: Cond


@dataclass(frozen=True, slots=True)
class AllOf:
    conds: tuple[Cond, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    conds: tuple[Cond, ...]


Cond = AxisIs | IsPresent | Not | AllOf | AnyOf


# ---------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Let:
    """One definition. ``kind``: let, point, yield, next, emit.

    ``rebinds`` tells whether the name had a value before (then a false
    ``when`` keeps the old value; otherwise ``otherwise`` supplies it).
    """

    kind: str
    name: str
    index: str | None
    value: Expr
    when: Cond | None
    otherwise: Expr | None
    rebinds: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Each:
    index: str
    body: tuple[Stmt, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Scan:
    """A recurrence over the axis ``dim``. ``over`` maps a name to its axis in the value."""

    step: str
    dim: Poly
    over: tuple[tuple[str, int], ...]
    carries: tuple[tuple[str, Expr], ...]
    body: tuple[Stmt, ...]
    span: Span


Stmt = Let | Each | Scan

"""Expressions: values, indices, conditions and matches."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from frtspec.diag.source import Span


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier. Soft keywords may appear here."""

    id: str
    span: Span


@dataclass(frozen=True, slots=True)
class Number:
    """A number with its exact value; ``text`` is how it was written."""

    value: Decimal
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class String:
    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class Field:
    """``base.name``: ``w_gate.T``, ``gate_up.scale``, ``config.hidden_size``."""

    base: Expr
    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Slice:
    """``lo:hi`` inside an index; either side may be absent."""

    lo: Expr | None
    hi: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class EllipsisItem:
    """``...`` inside an index."""

    span: Span


@dataclass(frozen=True, slots=True)
class Index:
    """``base[items]``: ``w[i]``, ``k[:, t]``, ``config.layer_types[i]``."""

    base: Expr
    items: tuple[Expr | Slice | EllipsisItem, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Granularity:
    """``per tensor|channel|row|token``, ``per block 16``, ``per group 128``."""

    kind: str
    size: int | None
    span: Span


@dataclass(frozen=True, slots=True)
class OverDim:
    """``over Dk`` as an argument: the axis a reduction or contraction runs over."""

    dim: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Arg:
    """A call argument, positional or ``name = value``."""

    value: Expr | Granularity | OverDim
    name: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    func: Name
    args: tuple[Arg, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Unary:
    """``-x`` or ``not x``."""

    op: str
    operand: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Binary:
    """``+ - * / // % ** @ ?? and or`` and the comparisons ``== !=``."""

    op: str
    left: Expr
    right: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Compare:
    """A chain: ``512 <= D <= 16384`` or ``D % 16 == 0`` (one link)."""

    first: Expr
    links: tuple[tuple[str, Expr], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Is:
    """``axis is value`` or ``axis is (a, b)``: a test on a variant axis."""

    axis: Name
    values: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class FactIs:
    """``dtype(x) is f32``: a test on a measured fact that is a word."""

    fact: Call
    values: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class OneOf:
    """``D in (64, 96, 128)``: one of several sizes."""

    subject: Expr
    values: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Present:
    """``present name``: whether an optional input or slot was given."""

    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Else:
    """The ``else`` pattern of a match arm."""

    span: Span


@dataclass(frozen=True, slots=True)
class MatchArm:
    pattern: Name | String | Number | Else
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Match:
    """``match subject { a => x, else => y }``. ``refuse`` is a ``Name`` value."""

    subject: Expr
    arms: tuple[MatchArm, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Tuple_:
    items: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class EachExpr:
    """``each i => w[i].T`` as a call argument: one value per index, in order."""

    index: Name
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class ErrorNode:
    """A member or expression that could not be parsed."""

    span: Span


Expr = (
    Name
    | Number
    | String
    | Field
    | Index
    | Call
    | Unary
    | Binary
    | Compare
    | Is
    | FactIs
    | OneOf
    | Present
    | Match
    | Tuple_
    | EachExpr
    | ErrorNode
)

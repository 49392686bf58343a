"""The typed IR of bindings.

Config expressions stay syntax trees: they are evaluated on the host's config at run
time, so code generation turns them into Python expressions.
"""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.source import Span
from frtspec.ir.decl.common import Origin, Status
from frtspec.syntax import ast


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

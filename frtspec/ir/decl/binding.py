"""The typed IR of bindings.

Config expressions stay syntax trees: they are evaluated on the host's config at run
time, so code generation turns them into Python expressions.
"""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.source import Span
from frtspec.ir.decl.common import Origin, Status
from frtspec.ir.decl.pipeline import BoundPipeline
from frtspec.syntax import ast


@dataclass(frozen=True)
class WeightView:
    """``view``: one of words.VIEWS. ``args``: of chunks the one wanted and all names in order,
    of part which and of how many, of expert its number or the index of an ``each``.
    ``layout``: in_out or out_in for matrices, None for vectors."""

    slot: str
    index: int | None
    view: str
    path: ast.HostPath | None
    args: tuple[str | int, ...]
    layout: str | None
    span: Span


@dataclass(frozen=True)
class PlaceRef:
    """``kind``: input, output, arg; ``path`` relative to the seat, None for the seat itself.

    ``item``: the place in a tuple. ``layout``: how the host lays a port out (words.PORT_LAYOUTS).
    ``routed``: the place is at the seat's routed function, not at a module.
    """

    kind: str
    path: ast.HostPath | None
    arg: str | None
    item: int | None
    layout: str | None
    routed: bool
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
class RouteRef:
    """The function of a route. ``via``: how the host finds it (words.LOOKUPS); ``args``: what
    it is handed, name here -> the function's own name for it; ``calls``: which calls are the
    seat's, by the function's own arguments that have to be true or may not be."""

    name: str
    via: str
    function: str
    args: tuple[tuple[str, str], ...]
    span: Span
    calls: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True)
class PartRef:
    """Where a part of the structure is on the host: modules called in turn, relative to the
    seat. ``given``: arguments of the seat's call for the last one. ``places``: argument of the
    part -> what gives it to the host's code; ``result``: what takes the part's result, None
    where that is what the last module returns."""

    part: str
    paths: tuple[ast.HostPath, ...]
    given: tuple[str, ...]
    places: tuple[tuple[str, PlaceRef], ...]
    result: PlaceRef | None
    span: Span


@dataclass(frozen=True)
class Seat:
    """One ``seat`` declaration. ``form``: swap | siblings | block | route | update.

    ``placeless``: points that the host shows nowhere, with the reason.
    ``route`` is there for a route, ``cadence`` (words.CADENCES) for an update.
    """

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
    placeless: tuple[tuple[str, str], ...]
    siblings: tuple[WeightView, ...]
    prove: tuple[str, ...]
    boundary: BoundaryRef | None
    expects: tuple[Expect, ...]
    route: RouteRef | None
    cadence: str | None
    span: Span
    parts: tuple[PartRef, ...] = ()


@dataclass(frozen=True)
class Chain:
    """``chain norm.y -> qkv.x wire fp8_e4m3 require (…)``: (seat, port) at both ends."""

    producer: tuple[str, str]
    consumer: tuple[str, str]
    wire: str
    facts: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class SeatGroup:
    """``group style over (a, b) writer first_called``; ``writer``: that word or a seat."""

    name: str
    seats: tuple[str, ...]
    writer: str
    facts: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class Loop:
    """``each i in lo..hi where cond``."""

    index: str
    lo: ast.Expr
    hi: ast.Expr
    inclusive: bool
    where: ast.Expr | None
    span: Span


@dataclass(frozen=True)
class EachSeats:
    """Seats under the same loops, the outermost first; none for seats outside any ``each``.

    ``chains`` and ``groups`` join seats of the same numbers.
    """

    loops: tuple[Loop, ...]
    seats: tuple[Seat, ...]
    chains: tuple[Chain, ...]
    groups: tuple[SeatGroup, ...]
    span: Span


@dataclass(frozen=True)
class HostRef:
    """``classes`` of a package, or a native ``module`` that is no host to attach to."""

    package: str
    versions: str | None
    classes: tuple[str, ...]
    module: str | None = None


@dataclass(frozen=True)
class ExportEntry:
    """``sub``: what the entry is about, as ``prefill`` in ``m_profile[prefill]``."""

    key: str
    sub: str | None
    text: str
    span: Span


@dataclass(frozen=True)
class Export:
    """What an export to the catalog ``target`` needs and nothing else says."""

    target: str
    entries: tuple[ExportEntry, ...]
    span: Span

    def get(self, key: str, sub: str | None = None) -> str | None:
        found = (e.text for e in self.entries if (e.key, e.sub) == (key, sub))
        return next(found, None)


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
    exports: tuple[Export, ...] = ()
    pipelines: tuple[BoundPipeline, ...] = ()

"""The members of a `discover` block: what a module looks like that a structure can sit on."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.source import Span
from frtspec.syntax.ast.binding import FormDecl, PointNone, VariantSet
from frtspec.syntax.ast.expr import ErrorNode, MatchArm, Name, Number


@dataclass(frozen=True, slots=True)
class RoleSlot:
    """``w_gate``, or ``chunks(w_up, w_gate)``: the slots that one parameter holds."""

    name: Name
    chunks: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TellsDecl:
    """``tells activation { gelu_tanh => gelu, silu => silu }``; without arms each value
    is told by its own name."""

    axis: Name
    arms: tuple[MatchArm, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class RoleDecl:
    """``role gate : linear (w_gate)``, ``role norm : rms_norm (w_norm) around seat …``.

    ``where`` is ``at`` (the seat's own module), ``around`` (below the module around it)
    or ``below``; ``gives`` the param that it sets.
    """

    name: Name
    index: Name | None
    kind: Name
    slots: tuple[RoleSlot, ...]
    where: str
    tells: tuple[TellsDecl, ...]
    gives: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class CalledDecl:
    """``called part (q_proj, k_proj, v_proj)``: names that a role, or an argument, has
    on known hosts."""

    role: Name
    names: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class RolePlace:
    """``input of down``: a value at a role, at the seat's module where ``role`` is None, or
    at the routed function where it has that name.

    ``kind`` is ``input``, ``output`` or ``arg``; ``arg`` names a keyword, ``item`` the place
    in a tuple, ``layout`` how the host lays the value out.
    """

    kind: str
    role: Name | None
    arg: Name | None
    item: Number | None
    layout: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class RolePoint:
    """``point act_after_mul = input of down``."""

    point: Name
    place: RolePlace
    span: Span


@dataclass(frozen=True, slots=True)
class DiscoverBoundary:
    """``boundary around seat { x = input of norm, y = output }``: where the structure's
    full boundary lies, ``at`` the seat's module or ``around`` it."""

    where: str
    ports: tuple[tuple[Name, RolePlace], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class DiscoverDims:
    """``dims (H, Hkv, D)``: sizes that are the host's, where no weight shows them."""

    names: tuple[Name, ...]
    span: Span


DiscoverMember = (
    RoleDecl
    | CalledDecl
    | RolePoint
    | PointNone
    | VariantSet
    | DiscoverBoundary
    | DiscoverDims
    | FormDecl
    | ErrorNode
)


@dataclass(frozen=True, slots=True)
class DiscoverDecl:
    """``discover mlp { … }``: a pattern of the structure, or of one of its seams."""

    seam: Name | None
    members: tuple[DiscoverMember, ...]
    span: Span

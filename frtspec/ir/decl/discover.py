"""The typed IR of `discover` blocks: where a structure can sit, as data for a matcher.

They say where to look, not what is computed, so they are no part of the contract.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from frtspec.diag.source import Span
from frtspec.ir.expr import Cond

if TYPE_CHECKING:  # bindings name pipelines, whose gates are those of structures
    from frtspec.ir.decl.binding import RouteRef


@dataclass(frozen=True)
class RoleSlots:
    """The slots that one parameter of a role holds: one, or equal chunks in some order.

    ``when``: where they exist (None always). ``optional``: whether they may be missing there.
    """

    slots: tuple[str, ...]
    optional: bool
    when: Cond | None


@dataclass(frozen=True)
class Role:
    """One thing that the module holds. ``parameters`` in the order of its kind's parameters.

    ``where``: ``below`` the seat's module, ``at`` it, or ``around`` it. ``tells``: axis ->
    (fact of the kind, value of the axis). ``gives``: the param that the kind's number sets.
    """

    name: str
    index: str | None
    kind: str
    where: str
    parameters: tuple[RoleSlots, ...]
    called: tuple[tuple[str, ...], ...]
    tells: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    gives: str | None
    span: Span


@dataclass(frozen=True)
class RolePlace:
    """``input of down``: a value at the seat's module (``role`` None), at a role, or, where
    ``routed``, at the function that the seat's module looks up. ``item``: the place in a
    tuple, ``layout``: how the host lays it out."""

    kind: str
    role: str | None
    arg: str | None
    item: int | None
    layout: str | None
    routed: bool


@dataclass(frozen=True)
class Discover:
    """One pattern of a structure, or of its seam. ``around``: whether the boundary lies
    around the seat's module; ``ports`` is empty where no boundary is given. ``dims``: sizes
    that a seat sets although no weight shows them. ``placeless``: points that no host
    shows anywhere, with the reason. ``called``: names of arguments. ``update``: the seat is a
    module whose result changes more slowly than its host runs it. ``block``: the seat is a whole
    module that owns what its roles hold and leaves the structure's parts to the host; roles
    stand in the order in which the module calls them."""

    seam: str | None
    roles: tuple[Role, ...]
    points: tuple[tuple[str, RolePlace], ...]
    variants: tuple[tuple[str, str], ...]
    around: bool
    ports: tuple[tuple[str, RolePlace], ...]
    placeless: tuple[tuple[str, str], ...]
    dims: tuple[str, ...]
    route: RouteRef | None
    called: tuple[tuple[str, tuple[str, ...]], ...]
    update: bool
    block: bool
    span: Span

"""What a module looks like that a structure can sit on: the data of `discover` blocks.

Plain facts of generated structures; ``frtspec.live.scan`` matches live models with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frtspec.runtime.spec import Routed

Condition = Callable[[Mapping[str, str]], bool]
"""Whether something is there, for one value of every variant axis."""


@dataclass(frozen=True)
class Held:
    """The slots that one parameter holds: one, or several as equal chunks in some order.

    ``optional``: it may be missing where ``when`` holds, and is never there elsewhere.
    """

    slots: tuple[str, ...]
    optional: bool = False
    when: Condition | None = None

    def exists(self, variants: Mapping[str, str]) -> bool:
        return self.when is None or self.when(variants)


@dataclass(frozen=True)
class Role:
    """One thing that a module holds.

    kind      linear | conv | layer_norm | rms_norm | activation | parameter
    where     ``below`` the seat's module, ``at`` it, or ``around`` it
    repeated  several of them share one input; they are the members of one seat
    holds     what its parameters are, in the order of the kind's (weight, bias)
    called    lists of names that such a thing has on known hosts
    tells     variant axis -> fact of the kind -> value of the axis
    gives     the param that the kind's number (a norm's eps) sets
    """

    name: str
    kind: str
    where: str = "below"
    repeated: bool = False
    holds: tuple[Held, ...] = ()
    called: tuple[tuple[str, ...], ...] = ()
    tells: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    gives: str | None = None


@dataclass(frozen=True)
class RoleAt:
    """A value at a role, at the seat's own module, or, where ``routed``, at the function that
    it looks up. ``kind``: input | output | arg. ``item``: the place in a tuple; ``layout``:
    how the host lays it out."""

    kind: str
    role: str | None = None
    arg: str | None = None
    item: int | None = None
    layout: str | None = None
    routed: bool = False


@dataclass(frozen=True)
class Pattern:
    """Where a structure, or its seam, can sit.

    points    point -> where it lies
    variants  what every seat of this pattern has
    around    whether the boundary lies around the seat's module; ``ports``: where its
              values are
    excluded  combinations of variants that do not exist
    placeless points that no host shows anywhere, with the reason
    dims      sizes that are the host's, where no weight shows them
    route     the function that the seat's module looks up; None where the module is the seat
    called    argument in ``ports`` -> names that it has on known hosts
    update    the seat is a module whose result changes more slowly than its host runs it
    block     the seat is a whole module: it owns what its roles hold, in the order in which
              they are called, and leaves the structure's parts to the host
    """

    seam: str | None
    roles: tuple[Role, ...]
    points: Mapping[str, RoleAt] = field(default_factory=dict)
    variants: Mapping[str, str] = field(default_factory=dict)
    around: bool = False
    ports: Mapping[str, RoleAt] = field(default_factory=dict)
    excluded: Condition | None = None
    placeless: Mapping[str, str] = field(default_factory=dict)
    dims: tuple[str, ...] = ()
    route: Routed | None = None
    called: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    update: bool = False
    block: bool = False

    @property
    def needs_run(self) -> bool:
        """Whether the seat's module is called with several values, or gives several; of a
        seam, whether no weight shows some of its sizes."""
        if self.block:
            return False
        if self.seam is not None:
            return bool(self.dims)
        several = any(at.arg is not None or at.item is not None for at in self.ports.values())
        return self.route is None and several

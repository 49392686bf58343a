"""What the scan found, as data: seats as a binding would write them, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from frtspec.runtime.hosts.patterns import Pattern
from frtspec.runtime.spec import (
    Boundary,
    Expect,
    Place,
    Seat,
    Siblings,
    StructureSpec,
    Weight,
)


@dataclass(frozen=True)
class FoundSeat:
    """One place where a structure sits. Paths are absolute.

    members   the modules of a siblings seat, else empty
    A seat on a function that its module looks up has the pattern's ``route``.
    boundary  (module, ports, slots) around a seam; None with ``no_boundary`` saying why
    claims    parameters that the seat's module reads
    proof     how it was shown that the module computes this
    why       variant -> how it was told
    cadence   of an update: how often it is likely to change
    """

    structure: StructureSpec
    pattern: Pattern
    path: str
    variants: Mapping[str, str]
    params: Mapping[str, float]
    dims: Mapping[str, int]
    slots: Mapping[str, Weight | tuple[Weight, ...]]
    points: Mapping[str, Place]
    claims: frozenset[str]
    members: tuple[str, ...] = ()
    boundary: Boundary | None = None
    expects: tuple[Expect, ...] = ()
    proof: str = ""
    why: Mapping[str, str] = field(default_factory=dict)
    cadence: str | None = None

    @property
    def seam(self) -> str | None:
        return self.pattern.seam

    @property
    def form(self) -> str:
        if self.pattern.update or self.pattern.block:
            return "update" if self.pattern.update else "block"
        return "route" if self.pattern.route else "siblings" if self.members else "swap"

    @property
    def target(self) -> str:
        """``decoder_ffn.mlp``"""
        return f"{self.structure.name}.{self.seam}" if self.seam else self.structure.name

    def modules(self) -> tuple[str, ...]:
        """The modules whose calls are the seat's."""
        return self.members or (self.path,)

    def seat(self, name: str) -> Seat:
        """As the runtime knows it."""
        return Seat(
            name=name,
            structure=self.structure,
            seam=self.seam,
            path=self.path,
            form=self.form,
            routed=self.pattern.route,
            cadence=self.cadence,
            variants=dict(self.variants),
            params=dict(self.params),
            dims=dict(self.dims),
            slots=dict(self.slots),
            points=dict(self.points),
            placeless=dict(self.pattern.placeless),
            boundary=self.boundary,
            siblings=Siblings(self.members, ("shared_input", "call_order"))
            if self.members
            else None,
            expects=self.expects,
        )


@dataclass(frozen=True)
class LeftOut:
    """A module in no seat. ``code``: why, one word of ``reasons.REASONS``."""

    path: str
    kind: str
    code: str
    reason: str


@dataclass(frozen=True)
class Coverage:
    """Share of the model inside seats, by parameters and by FLOPs of matrix products.

    ``measured``: the FLOPs are those of a run, else two for each weight of a product.
    """

    parameters: int
    parameters_seated: int
    flops: int
    flops_seated: int
    measured: bool

    def line(self) -> str:
        how = "measured" if self.measured else "by weights"
        return (
            f"{_share(self.parameters_seated, self.parameters)} of {self.parameters:,} parameters, "
            f"{_share(self.flops_seated, self.flops)} of FLOPs ({how})"
        )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"

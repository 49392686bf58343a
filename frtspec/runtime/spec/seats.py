"""One place on one host where a structure sits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from frtspec.runtime.spec.places import InputOf, OutputOf, Place, Weight
from frtspec.runtime.spec.structures import StructureSpec


@dataclass(frozen=True)
class Routed:
    """A function that the seat's module looks up when it runs.

    ``via``: registry, global, attribute, processor or cache (see ``runtime.routes``);
    ``args``: name here -> the function's own name of what it is handed; ``calls``: argument
    of the function -> whether it is true in the calls that are the seat's (all of them where
    nothing is said).
    """

    name: str
    via: str
    function: str
    args: Mapping[str, str]
    calls: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Boundary:
    """Where the structure's full boundary lies. ``none`` holds the reason when the host
    has no such place; then the seam's own gate judges the seat. A repeated output maps to
    a tuple, one place an index (for siblings: the output of each member)."""

    path: str | None = None
    inputs: Mapping[str, Place] = field(default_factory=dict)
    outputs: Mapping[str, Place | tuple[OutputOf, ...]] = field(default_factory=dict)
    slots: Mapping[str, Weight] = field(default_factory=dict)
    none: str | None = None


@dataclass(frozen=True)
class Expect:
    """A host fact checked at bind: see ``runtime.facts`` for the closed list."""

    fact: str
    values: tuple[str, ...]
    of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Siblings:
    """Modules that share one input, replaced leaf by leaf. ``prove``: facts to show
    at calibration (shared_input, call_order). ``members``: module paths in order."""

    members: tuple[str, ...]
    prove: tuple[str, ...]


@dataclass(frozen=True)
class HostPart:
    """A part of a structure on the host: what a form calls for it.

    modules  absolute paths, called in turn, each on what the one before it gave
    given    arguments of the seat's own call that the last one is handed, by name
    places   argument of the part -> the module inside the last one that gives it to the
             host's code; there the part begins. Empty: the first module takes it
    result   the module inside that takes the part's result; there it ends
    """

    modules: tuple[str, ...]
    given: tuple[str, ...] = ()
    places: Mapping[str, OutputOf] = field(default_factory=dict)
    result: InputOf | None = None


@dataclass(frozen=True)
class Seat:
    """One place on one host where a structure (or its seam) sits.

    ``variants`` maps every axis to a value, or to a ``Refused`` when the host's
    config asks for something the structure has no variant for. ``placeless``: points that
    this host shows nowhere, with the reason. ``form``: swap, siblings, block, route (then
    ``routed``) or update (then ``cadence``: observation or prompt).
    """

    name: str
    structure: StructureSpec
    seam: str | None
    path: str
    form: str
    variants: Mapping[str, str | Refused]
    params: Mapping[str, float]
    dims: Mapping[str, int]
    slots: Mapping[str, Weight | tuple[Weight, ...]]
    points: Mapping[str, Place]
    placeless: Mapping[str, str] = field(default_factory=dict)
    boundary: Boundary | None = None
    siblings: Siblings | None = None
    expects: tuple[Expect, ...] = ()
    routed: Routed | None = None
    cadence: str | None = None
    parts: Mapping[str, HostPart] = field(default_factory=dict)

    @property
    def target(self) -> str:
        seam = f".{self.seam}" if self.seam else ""
        return f"{self.structure.name}{seam} v{self.structure.version}"

    def facts(self) -> dict[str, Any]:
        """What it is and how it is set, as plain data."""
        return {
            "name": self.name,
            "target": self.target,
            "path": self.path,
            "form": self.form,
            "variants": {axis: str(value) for axis, value in self.variants.items()},
            "params": dict(self.params),
            "dims": dict(self.dims),
        }


@dataclass(frozen=True)
class Refused:
    """A config value that no arm of a ``match`` serves."""

    what: str
    value: Any
    known: tuple[Any, ...]


def choose(value: Any, arms: Mapping[Any, str], *, what: str, otherwise: str | None = None) -> Any:
    """The arm for ``value``; else ``otherwise``; else a ``Refused`` that names the choice."""
    if value in arms:
        return arms[value]
    return otherwise if otherwise is not None else Refused(what, value, tuple(arms))

"""The facts that generated code hands to the runtime.

Everything here is plain, frozen data: what a structure is, where it sits on a
host, which impls serve it. Mechanism lives in the other modules of the runtime;
all of them import from here.
"""

from __future__ import annotations

from frtspec.runtime.spec.bindings import (
    Chain,
    Host,
    HostBinding,
    SeatGroup,
    no_links,
    numbers_of,
)
from frtspec.runtime.spec.impls import (
    BandSpec,
    ImplSpec,
    Need,
    RungSpec,
    ScaleSpec,
)
from frtspec.runtime.spec.places import (
    InputOf,
    OutputOf,
    Place,
    RoutedInput,
    RoutedOutput,
    Weight,
)
from frtspec.runtime.spec.schemes import (
    Route,
    SchemeSpec,
    Stat,
)
from frtspec.runtime.spec.seats import (
    Boundary,
    Expect,
    HostPart,
    Refused,
    Routed,
    Seat,
    Siblings,
    choose,
)
from frtspec.runtime.spec.structures import (
    Bound,
    InnerSpec,
    SeamSpec,
    StructureSpec,
    Wire,
)

RUNTIME_ABI = 1
"""Version of the contract between generated code and this package."""

__all__ = [
    "RUNTIME_ABI",
    "BandSpec",
    "Bound",
    "Boundary",
    "Chain",
    "Expect",
    "Host",
    "HostBinding",
    "HostPart",
    "ImplSpec",
    "InnerSpec",
    "InputOf",
    "Need",
    "OutputOf",
    "Place",
    "Refused",
    "Route",
    "Routed",
    "RoutedInput",
    "RoutedOutput",
    "RungSpec",
    "ScaleSpec",
    "SchemeSpec",
    "SeamSpec",
    "Seat",
    "SeatGroup",
    "Siblings",
    "Stat",
    "StructureSpec",
    "Weight",
    "Wire",
    "choose",
    "no_links",
    "numbers_of",
]

"""What generated code imports, and what its users hold: plans, refusals, receipts.

Facts come from generated code (``spec``), mechanism is here. Nothing below imports
the compiler.
"""

from __future__ import annotations

import logging

from frtspec.runtime import decisions, numerics, ops, receipt
from frtspec.runtime.activation import NothingBoundWarning
from frtspec.runtime.attach import attach, build
from frtspec.runtime.calibration.data import Calibration
from frtspec.runtime.eligibility.rules import Rule, qualify, require
from frtspec.runtime.errors import Failure, Refusal, TrailRow
from frtspec.runtime.gating.gates import GateResult
from frtspec.runtime.gating.latency import Latency
from frtspec.runtime.hosts.host import exact_div, first, get
from frtspec.runtime.hosts.patterns import Held, Pattern, Role, RoleAt
from frtspec.runtime.options import AttachOptions, BuildOptions
from frtspec.runtime.plan import Plan
from frtspec.runtime.records import SeatRecord, UnitRecord
from frtspec.runtime.rungs.impl import BoundImpl
from frtspec.runtime.rungs.racing import Race, race
from frtspec.runtime.seats.ledger import FallbackWarning, Ledger
from frtspec.runtime.seats.swap import detach
from frtspec.runtime.spec import (
    RUNTIME_ABI,
    BandSpec,
    Bound,
    Boundary,
    Chain,
    Expect,
    Host,
    HostBinding,
    HostPart,
    ImplSpec,
    InnerSpec,
    InputOf,
    Need,
    OutputOf,
    Refused,
    Route,
    Routed,
    RoutedInput,
    RoutedOutput,
    RungSpec,
    ScaleSpec,
    SchemeSpec,
    SeamSpec,
    Seat,
    SeatGroup,
    Siblings,
    Stat,
    StructureSpec,
    Weight,
    Wire,
    choose,
    numbers_of,
)
from frtspec.runtime.trace.spec import PipelineSpec

__all__ = [
    "RUNTIME_ABI",
    "AttachOptions",
    "BandSpec",
    "Bound",
    "BoundImpl",
    "Boundary",
    "BuildOptions",
    "Calibration",
    "Chain",
    "Expect",
    "Failure",
    "FallbackWarning",
    "GateResult",
    "Held",
    "Host",
    "HostBinding",
    "HostPart",
    "ImplSpec",
    "InnerSpec",
    "InputOf",
    "Latency",
    "Ledger",
    "Need",
    "NothingBoundWarning",
    "OutputOf",
    "Pattern",
    "Plan",
    "Race",
    "Refusal",
    "Refused",
    "Role",
    "RoleAt",
    "Route",
    "Routed",
    "RoutedInput",
    "RoutedOutput",
    "Rule",
    "RungSpec",
    "ScaleSpec",
    "SchemeSpec",
    "SeamSpec",
    "Seat",
    "SeatGroup",
    "SeatRecord",
    "Siblings",
    "Stat",
    "StructureSpec",
    "TrailRow",
    "UnitRecord",
    "Weight",
    "Wire",
    "attach",
    "build",
    "check_abi",
    "choose",
    "decisions",
    "detach",
    "exact_div",
    "first",
    "get",
    "numbers_of",
    "numerics",
    "ops",
    "qualify",
    "race",
    "receipt",
    "require",
    "require_digest",
]

logging.getLogger("frtspec").addHandler(logging.NullHandler())


def check_abi(abi: int, module: str) -> None:
    """Whether generated code fits this runtime. Raises Refusal ``host.abi`` when it does not."""
    if abi != RUNTIME_ABI:
        raise Refusal(
            "host.abi",
            f"{module} was generated for runtime ABI {abi}; this is ABI {RUNTIME_ABI}",
            fix="run `frtspec gen` again with the installed frtspec",
        )


def require_digest(
    spec: StructureSpec | ImplSpec | SchemeSpec | PipelineSpec, contract_digest: str
) -> None:
    """Whether an imported declaration is still the one that generated code was made for.

    Raises Refusal ``host.digest`` when its contract is another one.
    """
    if spec.contract_digest != contract_digest:
        raise Refusal(
            "host.digest",
            f"{spec.name} was generated with the contract {contract_digest[:12]}…, and the one"
            f" installed is {spec.contract_digest[:12]}…",
            fix="run `frtspec gen` again with the installed frtspec",
        )

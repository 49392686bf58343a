"""What generated code imports, and what its users hold: plans, refusals, receipts.

Facts come from generated code (``spec``), mechanism is here. Nothing below imports
the compiler.
"""

from __future__ import annotations

import logging

from frtspec.runtime import numerics, ops, receipt
from frtspec.runtime.attach import attach, build
from frtspec.runtime.errors import Failure, Refusal, TrailRow
from frtspec.runtime.gates import GateResult
from frtspec.runtime.host import exact_div, first, get
from frtspec.runtime.impl import BoundImpl
from frtspec.runtime.latency import Latency
from frtspec.runtime.ledger import FallbackWarning, Ledger
from frtspec.runtime.plan import Plan
from frtspec.runtime.records import SeatRecord, UnitRecord
from frtspec.runtime.spec import (
    RUNTIME_ABI,
    BandSpec,
    Bound,
    Boundary,
    Expect,
    HostBinding,
    ImplSpec,
    InputOf,
    OutputOf,
    Refused,
    Route,
    RungSpec,
    SchemeSpec,
    SeamSpec,
    Seat,
    Siblings,
    Stat,
    StructureSpec,
    Weight,
    choose,
)

__all__ = [
    "RUNTIME_ABI",
    "BandSpec",
    "Bound",
    "BoundImpl",
    "Boundary",
    "Expect",
    "Failure",
    "FallbackWarning",
    "GateResult",
    "HostBinding",
    "ImplSpec",
    "InputOf",
    "Latency",
    "Ledger",
    "OutputOf",
    "Plan",
    "Refusal",
    "Refused",
    "Route",
    "RungSpec",
    "SchemeSpec",
    "SeamSpec",
    "Seat",
    "SeatRecord",
    "Siblings",
    "Stat",
    "StructureSpec",
    "TrailRow",
    "UnitRecord",
    "Weight",
    "attach",
    "build",
    "check_abi",
    "choose",
    "exact_div",
    "first",
    "get",
    "numerics",
    "ops",
    "receipt",
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

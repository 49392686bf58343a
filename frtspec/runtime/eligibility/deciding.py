"""The decision of a scheme on one seat: use an impl, or keep the host, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from frtspec.runtime.decisions import Evidence, Figure

if TYPE_CHECKING:
    from frtspec.runtime.spec import Route


@dataclass(frozen=True)
class Decision:
    """What the scheme made of one seat.

    outcome    ``use`` (the impl) or ``keep`` (the host)
    condition  the route's ``keep when``, with what it came to; empty figures where it was
               not asked, because the seat was settled before
    """

    outcome: str
    reason: str
    impl: str | None = None
    params: Mapping[str, float] = field(default_factory=dict)
    condition: str | None = None
    figures: tuple[Figure, ...] = ()


def decide(scheme: str, route: Route, evidence: Evidence) -> Decision:
    """The decision of a scheme's route on a seat, as far as the evidence goes.

    Before calibration a condition on what it measures is left open: the decision is
    ``use`` and says so.
    """
    if route.impl is None:
        return Decision("keep", route.keep or "the scheme keeps this structure")
    name, condition = route.impl.SPEC.name, route.keep_when
    use = f"scheme {scheme} uses {name}"
    if condition is None:
        return Decision("use", use, name, route.params)
    if condition.measured and evidence.seen is None:
        reason = f"{use}; whether {condition.text} was not asked"
        return Decision("use", reason, name, route.params, condition.text)
    found = condition.find(evidence)
    if found.holds:
        reason = f"scheme {scheme} keeps the host: {found.reason}"
        return Decision("keep", reason, None, {}, condition.text, found.figures)
    reason = f"{use}: {found.reason}"
    return Decision("use", reason, name, route.params, condition.text, found.figures)

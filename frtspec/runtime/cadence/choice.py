"""Whether an update seat is held, before the host runs: the caller's choice, and who computes."""

from __future__ import annotations

from collections.abc import Sequence

from frtspec.runtime.eligibility.deciding import Decision
from frtspec.runtime.errors import Refusal
from frtspec.runtime.spec import SchemeSpec, Seat


def decide(seat: Seat, scheme: SchemeSpec, *, prefix_cadence: bool) -> tuple[Decision, str]:
    """What becomes of an update seat, and the code of it where it is kept."""
    structure = seat.structure
    for row in scheme.routes:
        named = row.structure == structure.name and row.version in (None, structure.version)
        if named and row.impl is None and row.keep:
            return Decision("keep", row.keep), "scheme"
    if not prefix_cadence:
        reason = (
            f"holds what changes with the {seat.cadence}: offered with prefix_cadence=True, to "
            "callers that run plan.refresh() when it does"
        )
        return Decision("keep", reason), "prefix_cadence"
    return Decision("use", f"held between refreshes, at the cadence of {seat.cadence}s", "held"), ""


def check_producer(seat: Seat, others: Sequence[Seat]) -> None:
    """Raises Refusal ``update.siblings`` where the module that would be refreshed is read in the
    order of siblings: such a reader hands on what a pack left for it, which by itself is stale."""
    for other in others:
        for member in other.siblings.members if other.siblings is not None else ():
            if f"{seat.path}.".startswith(f"{member}.") or f"{member}.".startswith(f"{seat.path}."):
                raise Refusal(
                    "update.siblings",
                    f"{seat.path} is read in the order of the siblings of {other.name}, so it can't "
                    "be computed anew by itself",
                    fix=f"leave out one of the two: name the structures to attach, without "
                    f"{other.structure.name}",
                    seat=seat.name,
                )

"""Activating what was chosen, in one transaction, and the plan that tells of it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import nn

from frtspec.runtime import receipt
from frtspec.runtime.chains.negotiate import settled
from frtspec.runtime.eligibility.selecting import disowned
from frtspec.runtime.environment import environment
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.coverage import coverage
from frtspec.runtime.isolation import isolated
from frtspec.runtime.memory.originals import Originals
from frtspec.runtime.plan import Plan
from frtspec.runtime.records import SeatRecord
from frtspec.runtime.reporting import document, explain
from frtspec.runtime.reporting.modelprecision import ModelPrecisionSpec
from frtspec.runtime.reporting.precision import precision_spec
from frtspec.runtime.seats import swap
from frtspec.runtime.seats.watch import Watch
from frtspec.runtime.session import Session

if TYPE_CHECKING:
    from frtspec.runtime.seats.swap import Attachment


def activate(session: Session, chosen: Sequence[SeatRecord], door: str) -> Plan:
    watch = Watch(session.model, chosen)
    attachment = _swap_in(session.model, chosen)
    for record in chosen:
        if record.open:
            record.bind(_why(record, door))
    disowned(session)
    if attachment is not None:
        attachment.originals = Originals(session.model, session.records)
        if session.options.originals == "consumed":
            attachment.originals.consume(session.store)
    return _plan(session, door, attachment, watch)


def _swap_in(model: nn.Module, chosen: Sequence[SeatRecord]) -> Attachment | None:
    """Activates the chosen seats together; a seat that can't be is refused, the rest go on."""
    attachment: Attachment | None = None
    while attachment is None and (left := [record for record in chosen if record.open]):
        with isolated(left, "activating"):
            bound = [record.bound for record in left if record.bound is not None]
            try:
                attachment = swap.activate(model, bound)
            except Refusal as refusal:
                named = [record for record in left if record.name == refusal.seat]
                for record in named or left:
                    record.refuse(refusal)
    return attachment


def _why(record: SeatRecord, door: str) -> str:
    if door == "build":
        return "bound without judging"
    seam = record.gate("seam")
    return "boundary gate held" if seam is None else f"seam gate held; {'; '.join(seam.notes)}"


def _plan(session: Session, door: str, attachment: Attachment | None, watch: Watch) -> Plan:
    plan = Plan(
        door=door,
        binding=session.binding,
        model=session.model,
        options=session.options,
        scheme=session.scheme,
        environment=environment(session.device, session.binding.package),
        seats=tuple(session.records),
        units=tuple(session.units),
        unions=tuple(session.unions),
        noise=session.noise,
        output_kind=session.untouched.kind,
        calibration=session.calibration,
        coverage=coverage(session.parameters, session.records),
        precision_spec=ModelPrecisionSpec(
            precision_spec(session.parameters, session.records, session.calibrated),
            session.records,
        ),
        attachment=attachment,
        watch=watch,
        costs=session.costs.settled(session.records),
        chains=settled(session.chains, session.records),
        before=attachment.ledger() if attachment is not None else {},
    )
    plan.receipt = receipt.seal(document.document(plan))
    if session.options.strict:
        plan.require()
    elif not plan.bound and not _asked_for(session):
        warnings.warn(explain.headline(plan), NothingBoundWarning, stacklevel=4)
    return plan


class NothingBoundWarning(UserWarning):
    """``attach`` or ``build`` left the host as it was: no seat is bound."""


def _asked_for(session: Session) -> bool:
    """Whether the caller named a scheme that keeps every seat on the host."""
    kept = all(r.state == "kept" and r.code == "scheme" for r in session.records)
    return kept and session.options.scheme != "auto"

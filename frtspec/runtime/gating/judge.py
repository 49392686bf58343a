"""Judging on the whole host: each unit alone, then those that hold together."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating import trial
from frtspec.runtime.gating.trial import Outcome
from frtspec.runtime.gating.union import Found, search
from frtspec.runtime.gating.units import Unit, units_of
from frtspec.runtime.hosts.coverage import weight_paths
from frtspec.runtime.records import SeatRecord

if TYPE_CHECKING:
    from frtspec.runtime.session import Session

log = logging.getLogger("frtspec.runtime")


def judge(session: Session) -> list[SeatRecord]:
    """Judges every bound seat on the host; returns those to activate, in host order."""
    winners: list[tuple[Unit, Outcome]] = []
    for unit in units_of(session.open_records(), session.chains, _sizes(session)):
        trial.enforce_rules(session, unit.records)
        outcome, left = _until_clean(session, unit.name, unit.records)
        if outcome is None:
            continue
        unit.records = left
        session.units.append(outcome.record(unit.name, left, kind=unit.kind))
        log.info("unit %s: %s, %s", unit.name, outcome.verdict, outcome.reason)
        if outcome.verdict == "accepted":
            winners.append((unit, outcome))
        else:
            outcome.settle(left)
    found = search(winners, lambda units: _together(session, units), session.options.max_trials)
    _drop(session, [unit for unit, _ in winners], found)
    chosen = {record.name for unit in found.chosen for record in unit.records if record.open}
    return [record for record in session.open_records() if record.name in chosen]


def _sizes(session: Session) -> dict[str, float]:
    """How much each open seat stands for: the parameters of its weights."""
    return {
        record.name: float(
            sum(session.parameters[p][0] for p in weight_paths(record) if p in session.parameters)
        )
        for record in session.open_records()
    }


def _together(session: Session, units: Sequence[Unit]) -> Outcome | None:
    """One trial of several units. A seat that goes astray beside the others is refused only
    while nothing was found to hold without it."""
    name = " + ".join(unit.name for unit in units)
    records = [record for unit in units for record in unit.records if record.open]
    if any(union.verdict == "accepted" for union in session.unions):
        outcome: Outcome | None = trial.attempt(session, name, records)
    else:
        outcome, records = _until_clean(session, name, records)
    if outcome is not None:
        session.unions.append(outcome.record(name, records, kind="union"))
        log.info("union %s: %s, %s", name, outcome.verdict, outcome.reason)
    return outcome


def _drop(session: Session, winners: Sequence[Unit], found: Found[Outcome]) -> None:
    """Settles the units that held alone and are not among those that hold together."""
    others = " + ".join(unit.name for unit in found.chosen)
    for unit in winners:
        if unit.name not in found.dropped:
            continue
        left = [record for record in unit.records if record.open]
        outcome = found.dropped[unit.name]
        if outcome is not None:
            _in_union(outcome, others).settle(left)
            continue
        for record in left:
            record.keep(
                "max_trials",
                f"held alone; no trial was left to tell whether it holds together with {others}:"
                f" {found.trials} of max_trials={session.options.max_trials} were spent",
            )


def _in_union(outcome: Outcome, others: str) -> Outcome:
    """The outcome as the reason why one unit had to go."""
    reason = f"together with {others}: {outcome.reason}"
    refusal = outcome.refusal
    if refusal is not None:
        refusal = Refusal("gate.union", reason, fix=refusal.fix, trail=refusal.trail)
    return replace(outcome, reason=reason, refusal=refusal)


def _until_clean(
    session: Session, name: str, records: Sequence[SeatRecord]
) -> tuple[Outcome | None, list[SeatRecord]]:
    """Trials until every seat that is left does its part; None when no seat is left."""
    left = [record for record in records if record.open]
    while left:
        outcome = trial.attempt(session, name, left)
        if not outcome.astray:
            return outcome, left
        for record in left:
            if record.name in outcome.astray:
                record.refuse(outcome.astray[record.name])
        left = [record for record in left if record.open]
    return None, left

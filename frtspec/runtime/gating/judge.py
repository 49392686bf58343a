"""Judging on the whole host: each unit alone, then those that hold together."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating import trial, within
from frtspec.runtime.gating.trial import Outcome
from frtspec.runtime.gating.union import Found, search
from frtspec.runtime.gating.units import Unit, units_of
from frtspec.runtime.hosts.coverage import weight_paths
from frtspec.runtime.records import SeatRecord, Trial

if TYPE_CHECKING:
    from frtspec.runtime.session import Session

log = logging.getLogger("frtspec.runtime")


def judge(session: Session) -> list[SeatRecord]:
    """Judges every bound seat on the host; returns those to activate, in host order."""
    winners: list[tuple[Unit, Outcome]] = []
    trials, spent = session.options.max_trials, 0
    for unit in units_of(session.open_records(), session.chains, _sizes(session)):
        trial.enforce_rules(session, unit.records)
        outcome, left = _until_clean(session, unit.name, unit.records)
        if outcome is None:
            continue
        unit.records = left
        rows: list[Trial] = []
        if outcome.missed:
            outcome, rows = _backed_off(session, unit, outcome, trials // 2 - spent)
            spent += max(0, len(rows) - 1)
        made = outcome.record(unit.name, unit.records, kind=unit.kind)
        session.units.append(replace(made, trials=tuple(rows)))
        log.info("unit %s: %s, %s", unit.name, outcome.verdict, outcome.reason)
        if outcome.verdict == "accepted":
            winners.append((unit, outcome))
        else:
            outcome.settle(unit.records)
    union = search(winners, lambda units: _together(session, units), trials - spent)
    _drop(session, [unit for unit, _ in winners], union)
    chosen = {record.name for unit in union.chosen for record in unit.records if record.open}
    return [record for record in session.open_records() if record.name in chosen]


def _sizes(session: Session) -> dict[str, float]:
    """How much each open seat stands for: the parameters of its weights."""
    return {
        record.name: float(
            sum(session.parameters[p][0] for p in weight_paths(record) if p in session.parameters)
        )
        for record in session.open_records()
    }


def _backed_off(
    session: Session, unit: Unit, whole: Outcome, budget: int
) -> tuple[Outcome, list[Trial]]:
    """A unit that misses what the host requires, without its most sensitive seats, which are
    refused; the unit keeps the others. Where no trial held, it is left as it is. With it all
    trials, that of the whole first; none where there was none to make."""
    order = within.groups(unit)

    def left(drop: int) -> list[SeatRecord]:
        gone = {record.name for group in order[:drop] for record in group}
        return [record for record in unit.records if record.open and record.name not in gone]

    found = within.search(len(order), lambda n: trial.attempt(session, unit.name, left(n)), budget)
    if not found.trials:
        return whole, []
    rows = [Trial((), whole.verdict, whole.reason)]
    for drop, outcome in found.trials:
        gone = tuple(record.name for group in order[:drop] for record in group)
        rows.append(Trial(gone, outcome.verdict, outcome.reason))
    if found.dropped is None or found.outcome is None:
        return whole, rows
    for record in (record for group in order[: found.dropped] for record in group):
        record.refuse(
            Refusal(
                "gate.host",
                f"with all of {unit.name}, {whole.reason}; without its {found.dropped} most"
                f" sensitive of {len(order)} it holds, and this one is among them (rel_l2"
                f" {within.error(record):.3g} at its boundary)",
                fix="use a finer scheme for this seat, or lower floors=",
                seat=record.name,
            )
        )
    unit.records = [record for record in unit.records if record.open]
    return found.outcome, rows


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

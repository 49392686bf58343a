"""Builds every open seat through its ladder, and joins what declared chains can join."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from frtspec.runtime.cadence.bind import bind_held
from frtspec.runtime.chains.negotiate import negotiate, writers, written
from frtspec.runtime.eligibility.selecting import owned, yields
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.host import seat_weights
from frtspec.runtime.isolation import isolated
from frtspec.runtime.memory.budget import Budget, estimate
from frtspec.runtime.rungs import ladder
from frtspec.runtime.steptable.bind import bind_table

if TYPE_CHECKING:
    from frtspec.runtime.records import SeatRecord
    from frtspec.runtime.rungs.ladder import BoundSeat
    from frtspec.runtime.session import Session
    from frtspec.runtime.spec import Chain, Route, Seat

log = logging.getLogger("frtspec.runtime")


def bind(session: Session) -> None:
    """Builds each seat through its ladder: what holds values first, then blocks, whose children
    are seats of their own only where the block is not bound; producers of chains after their consumers."""
    declared = session.binding.links(session.model)
    later = writers(declared, session.links)
    budget = Budget(session.options.memory_budget, session.device)
    order = {
        r.name: (r.seat.form != "update", r.seat.form != "block", r.name in later)
        for r in session.records
    }
    for record in sorted(session.open_records(), key=lambda record: order[record.name]):
        if not record.open:  # a child of a block that is bound by now
            continue
        if record.seat.form == "block" and yields(session, record):
            continue
        with isolated([record], "binding"):
            budget.admit(record.name, _needed(session, record.seat))
            built = _built(session, record, later.get(record.name))
            budget.spend(record.name, built.bytes_added)
            record.build(built)
            if record.seat.form == "block":
                owned(session, record)
    with isolated(session.open_records(), "joining chains"):
        session.chains = negotiate(session.model, session.records, declared, session.links)


def _needed(session: Session, seat: Seat) -> int:
    impl = session.route(seat).impl
    return 0 if impl is None else estimate(impl.SPEC, seat_weights(session.model, seat))


def _built(session: Session, record: SeatRecord, chain: Chain | None) -> BoundSeat:
    """The seat on the form that writes its chain's wire, else on that of its own route."""
    if record.seat.form == "update":
        return _holding(session, record.seat)
    if session.tabled(record.seat):
        assert session.calibrated is not None
        return bind_table(
            session.model,
            record.seat,
            session.calibrated,
            session.locators,
            rungs=session.options.rungs,
            on_guard_fail=session.options.on_guard_fail,
        )
    own = session.route(record.seat)
    route = written(own, chain, session.records)
    if route is not own:
        try:
            return _bound(session, record.seat, route)
        except Refusal as refusal:  # a refused end leaves both in their standalone form
            log.info("%s in a chain: %s", record.name, refusal.what)
    return _bound(session, record.seat, own)


def _holding(session: Session, seat: Seat) -> BoundSeat:
    assert session.calibrated is not None
    return bind_held(
        session.model,
        seat,
        session.calibrated,
        rungs=session.options.rungs,
        on_guard_fail=session.options.on_guard_fail,
    )


def _bound(session: Session, seat: Seat, route: Route) -> BoundSeat:
    assert session.calibrated is not None
    return ladder.bind_seat(
        session.model,
        seat,
        route,
        session.calibrated,
        rungs=session.options.rungs,
        on_guard_fail=session.options.on_guard_fail,
        decisions=session.rungs,
    )

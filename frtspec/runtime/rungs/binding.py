"""Builds every open seat through its ladder, and joins what declared chains can join."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from frtspec.runtime.chains.negotiate import negotiate, writers, written
from frtspec.runtime.errors import Refusal
from frtspec.runtime.isolation import isolated
from frtspec.runtime.rungs import ladder

if TYPE_CHECKING:
    from frtspec.runtime.records import SeatRecord
    from frtspec.runtime.rungs.ladder import BoundSeat
    from frtspec.runtime.session import Session
    from frtspec.runtime.spec import Chain, Route, Seat

log = logging.getLogger("frtspec.runtime")


def bind(session: Session) -> None:
    """Builds each seat through its ladder; producers of chains after their consumers."""
    declared = session.binding.links(session.model)
    later = writers(declared, session.links)
    for record in sorted(session.open_records(), key=lambda record: record.name in later):
        with isolated([record], "binding"):
            record.build(_built(session, record, later.get(record.name)))
    with isolated(session.open_records(), "joining chains"):
        session.chains = negotiate(session.model, session.records, declared, session.links)


def _built(session: Session, record: SeatRecord, chain: Chain | None) -> BoundSeat:
    """The seat on the form that writes its chain's wire, else on that of its own route."""
    own = session.route(record.seat)
    route = written(own, chain, session.records)
    if route is not own:
        try:
            return _bound(session, record.seat, route)
        except Refusal as refusal:  # a refused end leaves both in their standalone form
            log.info("%s in a chain: %s", record.name, refusal.what)
    return _bound(session, record.seat, own)


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

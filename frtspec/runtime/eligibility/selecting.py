"""Which seats are worth looking at further: what was asked for, what the scheme keeps, what
the host, its facts and the structure's rules allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frtspec.runtime.cadence import choice as holding
from frtspec.runtime.decisions import Evidence
from frtspec.runtime.eligibility import deciding, eligible, qualification, schemes
from frtspec.runtime.eligibility.qualification import Found
from frtspec.runtime.hosts import facts
from frtspec.runtime.hosts import host as hosts
from frtspec.runtime.isolation import isolated
from frtspec.runtime.observation import measure, observe
from frtspec.runtime.options import one_of
from frtspec.runtime.records import SeatRecord
from frtspec.runtime.spec import Seat
from frtspec.runtime.steptable import bind as steptable

if TYPE_CHECKING:
    from frtspec.runtime.session import Session


def select(session: Session) -> None:
    """Settles the seats that were not asked for, or that their binding or scheme keeps."""
    wanted = session.options.structures
    known = sorted({name for r in session.records for name in _names(r.seat)})
    for name in wanted or ():
        one_of("structures", name, known)
    for record in session.records:
        record.rules = qualification.judge(
            record.seat.structure, record.seat.variants, Found(record.seat.dims)
        )
        decision = record.decision = _decided(session, record.seat)
        if wanted is not None and not set(wanted) & set(_names(record.seat)):
            record.keep("structures", "not asked for: another structure was named")
            continue
        if record.seat.form == "update":
            _update(session, record)
            continue
        if session.tabled(record.seat):
            _tabled(session, record)
            continue
        route = session.route(record.seat)
        if route.impl is None or decision.outcome == "keep":
            record.keep("scheme", decision.reason)
            continue
        with isolated([record], "checking the host's facts"):
            eligible.check_verified(record.seat, session.scheme, route.impl)
            eligible.check_variants(record.seat)
            rule(session, record, measure.at_rest(session.model, record.seat), pending=True)
            modules = hosts.seat_modules(session.model, record.seat)
            eligible.check_modules(session.model, record.seat, modules)
            facts.check_expects(session.model, record.seat)
            eligible.check_form(record.seat)
    _producers(session)


def _update(session: Session, record: SeatRecord) -> None:
    """A seat that holds what its module gave: the caller decides, and no scheme's impl runs."""
    seat = record.seat
    record.decision, code = holding.decide(
        seat, session.scheme, prefix_cadence=session.options.prefix_cadence
    )
    if code:
        record.keep(code, record.decision.reason)
        return
    with isolated([record], "checking the host's facts"):
        eligible.check_verified(seat, session.scheme, None)
        eligible.check_variants(seat)
        rule(session, record, measure.at_rest(session.model, seat), pending=True)
        eligible.check_modules(session.model, seat, hosts.seat_modules(session.model, seat))
        facts.check_expects(session.model, seat)
        eligible.check_form(seat)


def _tabled(session: Session, record: SeatRecord) -> None:
    """A seat whose projection is looked up by step, which the caller asked for."""
    seat, model = record.seat, session.model
    record.decision = steptable.decide(seat)
    with isolated([record], "checking the host's facts"):
        eligible.check_verified(seat, session.scheme, None)
        eligible.check_variants(seat)
        rule(session, record, measure.at_rest(model, seat), pending=True)
        eligible.check_modules(model, seat, hosts.seat_modules(model, seat))
        facts.check_expects(model, seat)
        steptable.projection(model, seat)


def _producers(session: Session) -> None:
    """A held value is computed anew by its module alone, which no reader of siblings can."""
    others = [record.seat for record in session.open_records()]
    for record in session.open_records():
        if record.seat.form == "update":
            with isolated([record], "looking at what computes a held value"):
                holding.check_producer(record.seat, others)


def _decided(
    session: Session, seat: Seat, seen: observe.Observation | None = None
) -> deciding.Decision:
    """What the scheme makes of a seat, by what is known now."""
    capability = schemes.capability(session.device)
    evidence = Evidence(seat, capability, seen)
    return deciding.decide(session.scheme.name, session.route(seat), evidence)


def decide(session: Session, seen: observe.Observation) -> None:
    """The decisions that calibration was needed for."""
    for record in session.open_records():
        if session.route(record.seat).keep_when is None or session.tabled(record.seat):
            continue
        with isolated([record], "deciding by what was measured"):
            record.decision = _decided(session, record.seat, seen)
            if record.decision.outcome == "keep":
                record.keep("scheme", record.decision.reason)


def yields(session: Session, block: SeatRecord) -> bool:
    """Keeps the host's block where the caller asked for values inside to be held: a bound
    block would compute them anew at every call."""
    held = [record.name for record in _inside(session, block) if record.seat.form == "update"]
    if held:
        names = ", ".join(held)
        block.keep("block", f"{names} inside hold what the caller refreshes, as asked for")
    return bool(held)


def _inside(session: Session, block: SeatRecord) -> list[SeatRecord]:
    at = f"{block.seat.path}."
    return [record for record in session.open_records() if record.seat.path.startswith(at)]


def owned(session: Session, block: SeatRecord) -> None:
    """Seats inside a bound block are its own: the block computes what they would."""
    for record in _inside(session, block):
        record.keep("block", f"inside the block {block.name}, which owns its children")


def disowned(session: Session) -> None:
    """Says of seats inside a block what became of the block, where it is not bound after all."""
    for block in session.records:
        if block.seat.form != "block" or block.state == "bound":
            continue
        for record in session.records:
            if record.code == "block" and record.seat.path.startswith(f"{block.seat.path}."):
                why = f"{block.state}: {block.reason}" if block.state else "not activated"
                record.reason = (
                    f"inside the block {block.name}, which was built and is {why}; the seats"
                    " inside were not tried apart from it"
                )
                record.fix = "name the structures inside in structures= to bind them instead"


def rule(session: Session, record: SeatRecord, found: Found, *, pending: bool = False) -> None:
    """Judges the structure's rules with what is known now; raises Refusal
    ``structure.requires``."""
    seat, route = record.seat, session.route(record.seat)
    forms: tuple[str, ...] = () if route.impl is None else (route.impl.SPEC.name, *found.forms)
    if session.tabled(seat):
        forms = (steptable.NAME,)
    record.rules = qualification.judge(seat.structure, seat.variants, found, forms)
    qualification.enforce(seat, record.rules, pending=pending)


def _names(seat: Seat) -> tuple[str, ...]:
    name = seat.structure.name
    return (name, f"{name}.{seat.seam}") if seat.seam else (name,)

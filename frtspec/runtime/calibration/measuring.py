"""The runs of the untouched host: its own noise, the scheme's statistics, what gates run on."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from frtspec.runtime.calibration.state import draft
from frtspec.runtime.eligibility import eligible, selecting
from frtspec.runtime.gating import metrics
from frtspec.runtime.gating.outputs import noise_of
from frtspec.runtime.hosts import links
from frtspec.runtime.isolation import isolated
from frtspec.runtime.observation import measure, observe, samples
from frtspec.runtime.observation.capture import budget
from frtspec.runtime.observation.samples import Thunk
from frtspec.runtime.options import one_of
from frtspec.runtime.records import CalibrationRecord, SeatRecord
from frtspec.runtime.reporting.costs import of_host
from frtspec.runtime.seats.guard import Band, bands_of
from frtspec.runtime.spec import Seat

if TYPE_CHECKING:
    from frtspec.runtime.session import Session

log = logging.getLogger("frtspec.runtime")

JUDGED_SAMPLES = 8
"""Without held-out samples the gates run on this many of the calibration's own."""


def run_untouched(session: Session) -> None:
    """The untouched host twice on one judged sample: output kind and noise floor."""
    first = session.held_out[0] if session.held_out else session.stream.first
    form = session.host_runner
    forms = [] if form.form == "eager" else [form]
    session.noise = noise_of(session.untouched, first, forms)
    assert session.untouched.kind is not None
    for metric in session.options.floors:
        one_of("floors", metric, metrics.KINDS[session.untouched.kind])
    log.info("untouched host: %s output, %s", session.untouched.kind, session.noise.note)
    for variation in session.noise.variations:
        log.info("untouched host, %s", variation.note)


def calibrate(session: Session, *, judge: bool) -> None:
    """Measures the scheme's statistics, and with ``judge`` what the gates run on."""
    records = session.open_records()
    seats = [record.seat for record in records]
    routes = {seat.name: session.route(seat) for seat in seats}
    requests = {name: route.measured() for name, route in routes.items()}
    bands = {name: bands_of(r.impl.SPEC) for name, r in routes.items() if r.impl is not None}
    capture = _capture(session, seats) if judge else None
    apart = session.held_out if judge else None
    every = [record.seat for record in session.records]
    with links.watching(session.model, every, session.binding.links(session.model)) as shown:
        seen = _saved(session, seats, requests, bands)
        if seen is not None:
            session.calibrated = seen
            apart = apart or (list(islice(session.stream, JUDGED_SAMPLES)) if judge else None)
        else:
            seen = observe.observe(
                session.model,
                seats,
                requests,
                _stream(session, record=judge and apart is None),
                bands=bands,
                percentile=session.options.percentile,
                capture=None if apart else capture,
                banks=True,
            )
            measured = draft(seen, session.model, session.binding, session.scheme, every)
            percentile = session.options.percentile
            session.calibrated = session.source.united(seen, measured, session.ranks, percentile)
        session.links = shown()
    _settle(session, session.calibrated, records, "calibration")
    selecting.decide(session, session.calibrated)
    for record in session.open_records():
        with isolated([record], "judging the structure's rules"):
            found = measure.after_calls(
                session.model,
                record.seat,
                session.calibrated,
                exact=None if session.noise is None else session.noise.bit_equal,
            )
            selecting.rule(session, record, found)
    session.judged = seen
    left = [record for record in records if record.open]
    if apart and left:
        thunks = [session.untouched.recording(thunk) for thunk in apart]
        session.judged = observe.observe(
            session.model,
            [record.seat for record in left],
            requests,
            thunks,
            bands=bands,
            percentile=100.0,
            capture=capture,
        )
        _settle(session, session.judged, left, "held-out samples")
    for record in session.open_records() if judge else ():
        with isolated([record], "looking at row counts"):
            eligible.check_rows(record.seat, bands.get(record.name, ()), session.judged)
    session.calibration = _told(session, judge=judge)
    if judge and session.open_records():
        run = partial(samples.run, session.untouched.thunks[0])
        session.costs = of_host(session.model, session.open_records(), run, session.device)


def _told(session: Session, *, judge: bool) -> CalibrationRecord:
    assert session.calibrated is not None
    chained = links.chain_names(session.binding.links(session.model))  # told by their own records
    return CalibrationRecord(
        session.calibrated.samples,
        session.options.percentile,
        len(session.untouched.thunks),
        held_out=judge and bool(session.held_out),
        diagnostics=(
            *(f"{n.seat} {n.point}: {n.text}" for n in session.calibrated.notes),
            *(proof.text for proof in session.links if proof.link not in chained),
            *session.source.notes,
            *(() if session.rungs is None else session.rungs.problems),
        ),
        origin=session.source.origin,
        digest=session.source.digest,
        runs=session.source.runs,
        draft=session.source.saved or session.source.draft,
    )


def _saved(
    session: Session,
    seats: Sequence[Seat],
    requests: Mapping[str, observe.Requests],
    bands: Mapping[str, Sequence[Band]],
) -> observe.Observation | None:
    """The saved statistics, where there are some to use. One sample runs all the same: how
    the host calls its seats is a fact of this process."""
    if session.source.saved is None:
        return None
    look = observe.observe(session.model, seats, requests, [session.stream.first], bands=bands)
    return session.source.used(look, session.options.percentile)


def _stream(session: Session, *, record: bool) -> Iterator[Thunk]:
    for place, thunk in enumerate(session.stream):
        yield session.untouched.recording(thunk) if record and place < JUDGED_SAMPLES else thunk


def _capture(session: Session, seats: Sequence[Seat]) -> observe.Capture:
    judged = len(session.held_out) if session.held_out else JUDGED_SAMPLES
    return budget(seats, session.parameters, min(judged, JUDGED_SAMPLES))


def _settle(
    session: Session, seen: observe.Observation, records: Sequence[SeatRecord], where: str
) -> None:
    for record in records:
        refusal = seen.refusals.get(record.name)
        if refusal is not None and record.open:
            record.refuse(refusal)
    log.info("%s: %d samples", where, seen.samples)

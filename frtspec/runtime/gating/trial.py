"""One trial: some seats attached to the host, judged by what the host returns and takes.

Modules are swapped for the length of a trial and put back in every case, whatever
is raised.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from torch import nn

from frtspec.runtime.eligibility import qualification
from frtspec.runtime.environment import device_is_lost
from frtspec.runtime.errors import Failure, Refusal
from frtspec.runtime.gating import baselines, gates, latency, metrics, refusing
from frtspec.runtime.gating.arms import Runner
from frtspec.runtime.gating.gates import GateResult
from frtspec.runtime.gating.latency import Arm, Latency
from frtspec.runtime.observation import samples
from frtspec.runtime.records import SeatRecord, UnitRecord, failure_of
from frtspec.runtime.seats import swap
from frtspec.runtime.seats.ledger import FallbackWarning

if TYPE_CHECKING:
    from frtspec.runtime.seats.ledger import Ledger
    from frtspec.runtime.seats.swap import Attachment
    from frtspec.runtime.session import Session

FORM_SAMPLES = 4
"""Samples that the host gate takes in a form other than eager: each new shape compiles."""


@dataclass(frozen=True)
class Outcome:
    """What one trial says. ``verdict``: accepted, kept, refused or failed.

    astray   seats that did not do their part (never ran, fell back); the trial then
             says nothing about the others
    """

    verdict: str
    reason: str
    host: GateResult | None = None
    latency: Latency | None = None
    refusal: Refusal | None = None
    failure: Failure | None = None
    astray: Mapping[str, Refusal] = field(default_factory=dict)

    def record(self, name: str, records: Sequence[SeatRecord], *, kind: str) -> UnitRecord:
        seats = tuple(record.name for record in records)
        return UnitRecord(name, seats, self.verdict, self.reason, self.host, self.latency, kind)

    def settle(self, records: Sequence[SeatRecord]) -> None:
        """Settles seats by an outcome that is not ``accepted``."""
        for record in records:
            if self.failure is not None:
                record.fail(self.failure)
            elif self.refusal is not None:
                record.refuse(self.refusal)
            else:
                record.keep("latency", self.reason)

    @property
    def accurate(self) -> bool:
        """Whether every seat did its part and the host gate holds; speed is another question."""
        return self.verdict in ("accepted", "kept")

    @property
    def missed(self) -> bool:
        """Whether the host gate, and nothing else, speaks against the seats."""
        return self.host is not None and not self.host.holds and not self.astray

    @property
    def closeness(self) -> float:
        """How close the trial left the host to itself, in the metric of its band."""
        for band in metrics.BANDS.values():
            if self.host is not None and band.metric in self.host.metrics:
                return self.host.metrics[band.metric]
        return float("-inf")

    @property
    def speedup(self) -> float | None:
        return None if self.latency is None else self.latency.speedup


def attempt(session: Session, name: str, records: Sequence[SeatRecord]) -> Outcome:
    """One trial; what it raises becomes its outcome, except what must pass through."""
    try:
        return _trial(session, records)
    except Refusal as refusal:
        astray = {record.name: refusal for record in records if record.name == refusal.seat}
        return Outcome("refused", refusal.what, refusal=refusal, astray=astray)
    except Exception as error:  # kept whole, as the outcome of these seats
        if device_is_lost(error):
            raise
        what = f"running {name} on the host"
        failure = failure_of(error, what, [record.name for record in records])
        return Outcome("failed", f"{what}: {failure.exception}", failure=failure)


def _trial(session: Session, records: Sequence[SeatRecord]) -> Outcome:
    with _attached(session.model, records) as attachment:
        before = attachment.ledger()
        host, busy = _accuracy(session, attachment)
        astray = _astray(before, attachment.ledger())
        if astray:
            reason = f"{len(astray)} seats did not do their part"
            return Outcome("refused", reason, host=host, astray=astray)
        runner = Runner(session.options.form, session.device)
        if host.holds and runner.form != "eager":
            host = _in_form(session, attachment, runner, busy, host)
        if not host.holds:
            refusal = refusing.refusal(host)
            return Outcome("refused", refusal.what, host=host, refusal=refusal)
        speed = _speed(session, records, attachment, runner, busy)
        verdict, reason = _weigh(session, records, host, speed)
        return Outcome(verdict, reason, host=host, latency=speed)


@contextmanager
def _attached(model: nn.Module, records: Sequence[SeatRecord]) -> Iterator[Attachment]:
    with swap.undone_on_error(model):
        attachment = swap.activate(model, [r.bound for r in records if r.bound is not None])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)  # a fallback here is an outcome
            yield attachment
        attachment.detach()


# ---------------------------------------------------------------- accuracy and duty


def _accuracy(session: Session, attachment: Attachment) -> tuple[GateResult, int]:
    """The host gate over every judged sample, one at a time; and the first sample in which
    some seat ran (in all others every row count was the host's)."""
    untouched, noise = session.untouched, session.noise
    assert untouched.kind is not None and session.calibration is not None

    def as_it_was(thunk: samples.Thunk) -> object:
        with attachment.disabled():
            return samples.run(thunk)

    busy: list[int] = []

    def treated(place: int) -> metrics.View:
        before = _ran(attachment)
        attachment.refresh()
        view = untouched.judged(samples.run(untouched.thunks[place]))
        busy.extend([place] if _ran(attachment) > before else [])
        return view

    places = range(len(untouched.thunks))
    result = gates.host(
        (untouched.view(place, as_it_was) for place in places),
        (treated(place) for place in places),
        untouched.kind,
        floors=session.options.floors,
        noise=noise.floor(metrics.BANDS[untouched.kind].metric) if noise else None,
        label=session.calibration.label,
    )
    return result, busy[0] if busy else 0


def _fresh(attachment: Attachment, runner: Runner, thunk: samples.Thunk) -> object:
    """One sample as its caller runs it: what is held is refreshed for each."""
    attachment.refresh()
    return runner(thunk)


def _in_form(
    session: Session, attachment: Attachment, runner: Runner, busy: int, eager: GateResult
) -> GateResult:
    """The host gate again in the form that will be deployed, on the samples from ``busy`` on.

    The ledger counts eager calls only, so that the eager run before this one shows that the
    seats do their part.
    """
    untouched, noise = session.untouched, session.noise
    assert untouched.kind is not None and session.calibration is not None
    places = range(busy, min(len(untouched.thunks), busy + FORM_SAMPLES))
    result = gates.host(
        (untouched.view(place, session.host_runner) for place in places),
        (untouched.judged(_fresh(attachment, runner, untouched.thunks[place])) for place in places),
        untouched.kind,
        floors=session.options.floors,
        noise=noise.floor(metrics.BANDS[untouched.kind].metric) if noise else None,
        label=session.calibration.label,
    )
    note = f"judged {runner.form}, on {len(places)} samples; eager: {eager.verdict}, {eager.reason}"
    return replace(result, notes=(*result.notes, note))


def _ran(attachment: Attachment) -> int:
    """Calls that were not left to the host by their row count, or to compute what is held."""
    rows = attachment.ledger().values()
    return sum(row.calls - row.otherwise_host - row.refreshes for row in rows)


def _astray(before: Mapping[str, Ledger], after: Mapping[str, Ledger]) -> dict[str, Refusal]:
    """Seats that the host never called, or that ran the host's module instead of ours."""
    found = {}
    for seat, row in after.items():
        calls, fallbacks = row.calls - before[seat].calls, row.fallbacks - before[seat].fallbacks
        host = row.otherwise_host - before[seat].otherwise_host
        if calls == 0:
            found[seat] = Refusal(
                "seat.never_ran",
                "attached, but executed 0 times while the judged samples ran",
                fix="the host does not call this module here: bind a module it calls",
                seat=seat,
            )
        elif calls == host:
            found[seat] = Refusal(
                "seat.never_ran",
                f"all {calls} calls while the judged samples ran had row counts that are the "
                "host's by design",
                fix="judge on traffic with row counts that the impl is for",
                seat=seat,
            )
        elif calls == row.refreshes - before[seat].refreshes:
            found[seat] = Refusal(
                "seat.never_ran",
                f"all {calls} calls while the judged samples ran computed anew: nothing was held",
                fix="judge on samples that run the whole loop of one observation",
                seat=seat,
            )
        elif fallbacks:
            found[seat] = Refusal(
                "seat.fell_back",
                f"ran the host's module in {fallbacks} of {calls} calls: {row.last_reason}",
                fix="calibrate on traffic of the same form (dtype, device, width, rows)",
                seat=seat,
            )
    return found


# ---------------------------------------------------------------- speed


def _unjudgeable(session: Session, records: Sequence[SeatRecord]) -> Latency | None:
    bound = [record.bound for record in records if record.bound is not None]
    rungs = [rung.kind for seat in bound for rung in seat.rungs]
    return latency.unjudgeable(session.device, rungs, session.options.latency)


def enforce_rules(session: Session, records: Sequence[SeatRecord]) -> None:
    """Profit rules bind where speed is judged; elsewhere they are only recorded."""
    if _unjudgeable(session, records) is not None:
        return
    for record in records:
        missed = qualification.missed(record.rules)
        if missed:
            record.keep("qualify", f"not expected to gain: {'; '.join(missed)}")


def _speed(
    session: Session,
    records: Sequence[SeatRecord],
    attachment: Attachment,
    runner: Runner,
    busy: int,
) -> Latency:
    """Speed on the judged sample ``busy``, one in which the seats run, in the form that will
    be deployed on both sides."""
    verdict = _unjudgeable(session, records)
    if verdict is not None:
        return replace(verdict, form=session.options.form)
    thunk = session.untouched.thunks[busy]
    options = session.options

    def host(run: Runner, name: str = "host") -> Arm:
        return Arm(name, lambda: attachment.disable(), lambda: run(thunk))

    named = {b for record in records for b in record.seat.structure.latency_against}
    others: dict[str, Arm | str] = {}
    for name in sorted(named):
        found = baselines.on_host(name, session.runner, options.baselines)
        others[name] = found if isinstance(found, str) else host(found, name)
    result = latency.measure(
        host(session.host_runner),
        Arm("attached", lambda: attachment.enable(), lambda: _fresh(attachment, runner, thunk)),
        rounds=options.rounds,
        iters=options.iters,
        min_speedup=options.min_speedup,
        clock=latency.device_clock(session.device),
        baselines=others,
        form=options.form,
    )
    attachment.enable()
    return result


def _weigh(
    session: Session, records: Sequence[SeatRecord], host: GateResult, speed: Latency
) -> tuple[str, str]:
    """Accepted or kept, and why: accuracy holds already, so speed decides."""
    if speed.verdict in ("win", "skipped"):
        return "accepted", f"{host.reason}; {speed.reason}"
    if speed.verdict == "not_applicable":
        asked = session.options.rungs or ()
        bound = [record.bound for record in records if record.bound is not None]
        if all(rung.kind in asked for seat in bound for rung in seat.rungs):
            return "accepted", f"{host.reason}; speed is not judged: {speed.reason}"
        return "kept", (
            f"speed can't be judged here ({speed.reason}), and the rung was not asked for: "
            "name it in rungs=, or pass latency='skip'"
        )
    return "kept", speed.reason

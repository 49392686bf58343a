"""One run of ``attach`` or ``build``: from options to bound seats, host unchanged.

Hooks come and go with each observation; nothing here swaps a module. A step that
concerns one seat settles that seat: a Refusal is an outcome, anything else that is
raised is kept whole as the seat's failure, and the other seats go on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from frtspec.runtime import environment
from frtspec.runtime.calibration.ranks import Ranks
from frtspec.runtime.calibration.source import Source
from frtspec.runtime.calibration.state import draft
from frtspec.runtime.decisions import Evidence
from frtspec.runtime.eligibility import deciding, eligible, qualification, schemes
from frtspec.runtime.eligibility.qualification import Found
from frtspec.runtime.environment import device_is_lost
from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating import gates, metrics
from frtspec.runtime.gating.outputs import Untouched, noise_of
from frtspec.runtime.gating.reference import SeatReference
from frtspec.runtime.hosts import facts, links
from frtspec.runtime.hosts import host as hosts
from frtspec.runtime.hosts.coverage import inventory
from frtspec.runtime.observation import measure, observe, samples
from frtspec.runtime.observation.capture import budget
from frtspec.runtime.observation.samples import Thunk
from frtspec.runtime.options import Options, one_of
from frtspec.runtime.records import CalibrationRecord, Noise, SeatRecord, UnitRecord, failure_of
from frtspec.runtime.rungs import ladder
from frtspec.runtime.rungs.rungcache import RungCache
from frtspec.runtime.seats.guard import Band, bands_of
from frtspec.runtime.spec import HostBinding, Route, Seat

if TYPE_CHECKING:
    from frtspec.runtime.plan import Plan

log = logging.getLogger("frtspec.runtime")

JUDGED_SAMPLES = 8
"""Without held-out samples the gates run on this many of the calibration's own."""


class Session:
    """The state that the steps share; made by ``open``."""

    def __init__(
        self,
        binding: HostBinding,
        model: nn.Module,
        stream: samples.Samples,
        held_out: list[Thunk] | None,
        options: Options,
    ) -> None:
        self.binding, self.model, self.options = binding, model, options
        self.stream, self.held_out = stream, held_out
        self.device = environment.device_of(model)
        self.scheme = schemes.resolve(binding, options.scheme, self.device)
        self.parameters = inventory(model)
        self.untouched = Untouched()
        self.noise: Noise | None = None
        self.calibration: CalibrationRecord | None = None
        self.calibrated: observe.Observation | None = None
        self.judged: observe.Observation | None = None
        self.units: list[UnitRecord] = []
        self.unions: list[UnitRecord] = []
        self.records = [SeatRecord(seat) for seat in binding.seats(model)]
        self.references: dict[str, SeatReference] = {}
        self.links: tuple[links.Proof, ...] = ()
        self.source, self.ranks = Source(), Ranks()
        self.rungs: RungCache | None = None

    @staticmethod
    def open(
        binding: HostBinding,
        model: nn.Module,
        forward: Any,
        observations: Any,
        held_out: Any,
        options: Options,
        calibration: Any = None,
        ranks: Ranks | None = None,
        rungs: RungCache | None = None,
    ) -> Session:
        """Checks everything that concerns the whole host; raises Refusal before touching it."""
        binding = hosts.check_host(binding, model)
        _check_eval(model)
        stream = samples.calibration(forward, observations, max_samples=options.max_samples)
        apart = samples.held_out(
            held_out,
            forward,
            observed=observations is not None,
            max_samples=options.max_samples,
        )
        session = Session(binding, model, stream, apart, options)
        session.ranks, session.rungs = ranks or session.ranks, rungs
        session._select()
        places = [record.seat for record in session.records]
        session.source = Source.open(
            calibration, model, binding, session.scheme, places, session.ranks
        )
        if session.source.key is not None:
            session.ranks.agree(session.source.key, options)
        session.source.settle(session.ranks)
        return session

    # ------------------------------------------------------------ seats

    def open_records(self) -> list[SeatRecord]:
        """Seats that nothing has settled yet."""
        return [record for record in self.records if record.open]

    def route(self, seat: Seat) -> Route:
        return self.scheme.route(seat.structure.name, seat.seam, seat.structure.version)

    def _select(self) -> None:
        """Settles the seats that were not asked for, or that their binding or scheme keeps."""
        wanted = self.options.structures
        known = sorted({name for r in self.records for name in _names(r.seat)})
        for name in wanted or ():
            one_of("structures", name, known)
        for record in self.records:
            record.rules = qualification.judge(
                record.seat.structure, record.seat.variants, Found(record.seat.dims)
            )
            decision = record.decision = self._decided(record.seat)
            if wanted is not None and not set(wanted) & set(_names(record.seat)):
                record.keep("structures", "not asked for: another structure was named")
                continue
            route = self.route(record.seat)
            if route.impl is None or decision.outcome == "keep":
                record.keep("scheme", decision.reason)
                continue
            with isolated([record], "checking the host's facts"):
                eligible.check_verified(record.seat, self.scheme, route.impl)
                eligible.check_variants(record.seat)
                self._rule(record, measure.at_rest(self.model, record.seat), pending=True)
                modules = hosts.seat_modules(self.model, record.seat)
                eligible.check_modules(self.model, record.seat, modules)
                facts.check_expects(self.model, record.seat)
                eligible.check_form(record.seat)
        self._owned()

    def _decided(self, seat: Seat, seen: observe.Observation | None = None) -> deciding.Decision:
        """What the scheme makes of a seat, by what is known now."""
        capability = schemes.capability(self.device)
        evidence = Evidence(seat, capability, seen)
        return deciding.decide(self.scheme.name, self.route(seat), evidence)

    def _decide(self, seen: observe.Observation) -> None:
        """The decisions that calibration was needed for."""
        for record in self.open_records():
            if self.route(record.seat).keep_when is None:
                continue
            with isolated([record], "deciding by what was measured"):
                record.decision = self._decided(record.seat, seen)
                if record.decision.outcome == "keep":
                    record.keep("scheme", record.decision.reason)

    def _owned(self) -> None:
        """Seats inside a block are its own: the block computes what they would."""
        blocks = [r for r in self.open_records() if r.seat.form == "block"]
        for block in blocks:
            for record in self.open_records():
                if record.seat.path.startswith(f"{block.seat.path}."):
                    record.keep("block", f"inside the block {block.name}, which owns its children")

    def _rule(self, record: SeatRecord, found: Found, *, pending: bool = False) -> None:
        """Judges the structure's rules with what is known now; raises Refusal
        ``structure.requires``."""
        seat, route = record.seat, self.route(record.seat)
        forms = () if route.impl is None else (route.impl.SPEC.name,)
        record.rules = qualification.judge(seat.structure, seat.variants, found, forms)
        qualification.enforce(seat, record.rules, pending=pending)

    # ------------------------------------------------------------ running the host

    def run_untouched(self) -> None:
        """The untouched host twice on one judged sample: output kind and noise floor."""
        first = self.held_out[0] if self.held_out else self.stream.first
        self.noise = noise_of(self.untouched, first)
        assert self.untouched.kind is not None
        for metric in self.options.floors:
            one_of("floors", metric, metrics.KINDS[self.untouched.kind])
        log.info("untouched host: %s output, %s", self.untouched.kind, self.noise.note)

    def calibrate(self, *, judge: bool) -> None:
        """Measures the scheme's statistics, and with ``judge`` what the gates run on."""
        records = self.open_records()
        seats = [record.seat for record in records]
        routes = {seat.name: self.route(seat) for seat in seats}
        requests = {name: route.measured() for name, route in routes.items()}
        bands = {name: bands_of(r.impl.SPEC) for name, r in routes.items() if r.impl is not None}
        capture = self._capture(seats) if judge else None
        apart = self.held_out if judge else None
        every = [record.seat for record in self.records]
        with links.watching(self.model, every, self.binding.links(self.model)) as shown:
            seen = self._saved(seats, requests, bands)
            if seen is not None:
                self.calibrated = seen
                apart = apart or (list(islice(self.stream, JUDGED_SAMPLES)) if judge else None)
            else:
                seen = observe.observe(
                    self.model,
                    seats,
                    requests,
                    self._stream(record=judge and apart is None),
                    bands=bands,
                    percentile=self.options.percentile,
                    capture=None if apart else capture,
                )
                measured = draft(seen, self.model, self.binding, self.scheme, every)
                percentile = self.options.percentile
                self.calibrated = self.source.united(seen, measured, self.ranks, percentile)
            self.links = shown()
        self._settle(self.calibrated, records, "calibration")
        self._decide(self.calibrated)
        for record in self.open_records():
            with isolated([record], "judging the structure's rules"):
                found = measure.after_calls(
                    self.model,
                    record.seat,
                    self.calibrated,
                    exact=None if self.noise is None else self.noise.bit_equal,
                )
                self._rule(record, found)
        self.judged = seen
        left = [record for record in records if record.open]
        if apart and left:
            thunks = [self.untouched.recording(thunk) for thunk in apart]
            self.judged = observe.observe(
                self.model,
                [record.seat for record in left],
                requests,
                thunks,
                bands=bands,
                percentile=100.0,
                capture=capture,
            )
            self._settle(self.judged, left, "held-out samples")
        for record in self.open_records() if judge else ():
            with isolated([record], "looking at row counts"):
                eligible.check_rows(record.seat, bands[record.name], self.judged)
        self.calibration = self._told(judge=judge)

    def _told(self, *, judge: bool) -> CalibrationRecord:
        assert self.calibrated is not None
        return CalibrationRecord(
            self.calibrated.samples,
            self.options.percentile,
            len(self.untouched.thunks),
            held_out=judge and bool(self.held_out),
            diagnostics=(
                *(f"{n.seat} {n.point}: {n.text}" for n in self.calibrated.notes),
                *(proof.text for proof in self.links),
                *self.source.notes,
                *(() if self.rungs is None else self.rungs.problems),
            ),
            origin=self.source.origin,
            digest=self.source.digest,
            runs=self.source.runs,
            draft=self.source.saved or self.source.draft,
        )

    def _saved(
        self,
        seats: Sequence[Seat],
        requests: Mapping[str, observe.Requests],
        bands: Mapping[str, Sequence[Band]],
    ) -> observe.Observation | None:
        """The saved statistics, where there are some to use. One sample runs all the same: how
        the host calls its seats is a fact of this process."""
        if self.source.saved is None:
            return None
        look = observe.observe(self.model, seats, requests, [self.stream.first], bands=bands)
        return self.source.used(look, self.options.percentile)

    def _stream(self, *, record: bool) -> Iterator[Thunk]:
        for place, thunk in enumerate(self.stream):
            yield self.untouched.recording(thunk) if record and place < JUDGED_SAMPLES else thunk

    def _capture(self, seats: Sequence[Seat]) -> observe.Capture:
        judged = len(self.held_out) if self.held_out else JUDGED_SAMPLES
        return budget(seats, self.parameters, min(judged, JUDGED_SAMPLES))

    def _settle(self, seen: observe.Observation, records: Sequence[SeatRecord], where: str) -> None:
        for record in records:
            refusal = seen.refusals.get(record.name)
            if refusal is not None and record.open:
                record.refuse(refusal)
        log.info("%s: %d samples", where, seen.samples)

    # ------------------------------------------------------------ binding and per-seat gates

    def check_references(self) -> None:
        """Each structure's reference against what the host computed at its seat."""
        assert self.judged is not None
        for record in self.open_records():
            with isolated([record], "running the structure's reference"):
                reference = SeatReference(record.seat, self.model)
                self.references[record.name] = reference
                result = gates.reference_agreement(reference, self.judged.captured(record.name))
                record.gates.append(result)
                gates.require(record.seat, [result])

    def bind(self) -> None:
        """Builds each seat through its ladder."""
        assert self.calibrated is not None
        for record in self.open_records():
            with isolated([record], "binding"):
                bound = ladder.bind_seat(
                    self.model,
                    record.seat,
                    self.route(record.seat),
                    self.calibrated,
                    rungs=self.options.rungs,
                    on_guard_fail=self.options.on_guard_fail,
                    decisions=self.rungs,
                )
                record.build(bound)

    def judge_seats(self) -> None:
        """Saturation, kernel parity and boundary, seat by seat."""
        assert self.calibrated and self.judged and self.calibration
        label = self.calibration.label
        for record in self.open_records():
            bound, name = record.bound, record.name
            assert bound is not None
            reference = self.references[name]
            captures = [c for c in self.judged.captured(name) if bound.runs(c.seat_inputs)]
            scales = bound.impl.SPEC.scales.values()
            points = [scale.point for scale in scales if scale.kind != "balance"]
            with isolated([record], "judging the seat"), torch.no_grad():
                for result in (
                    gates.saturation(record.seat, points, self.calibrated, self.judged),
                    gates.kernel_parity(bound, reference, captures),
                    gates.boundary(bound, reference, captures, label=label),
                ):
                    record.gates.append(result)
                gates.require(record.seat, record.gates, form=record.form)

    def agree(self, chosen: Sequence[SeatRecord]) -> None:
        """Leaves of ``chosen`` only what every rank would activate."""
        if self.ranks.several:
            self.ranks.same_outcome(self.records, chosen)

    def agreed(self, plan: Plan) -> Plan:
        """The plan, once every rank has activated the same seats."""
        self.ranks.same_seats(plan.bound)
        return plan


@contextmanager
def isolated(records: Sequence[SeatRecord], what: str) -> Iterator[None]:
    """Settles ``records`` by what the block raises: a Refusal refuses, a fault fails.

    A device that stopped working takes the whole attachment with it; KeyboardInterrupt
    and SystemExit are not caught here.
    """
    try:
        yield
    except Refusal as refusal:
        for record in records:
            if record.open:
                record.refuse(refusal)
    except Exception as error:  # kept whole, as the outcome of these seats
        if device_is_lost(error):
            raise
        failure = failure_of(error, what, [record.name for record in records])
        log.warning("%s failed for %s: %s", what, ", ".join(failure.seats), failure.exception)
        for record in records:
            if record.open:
                record.fail(failure)


def _check_eval(model: nn.Module) -> None:
    training = [name or "the model" for name, module in model.named_modules() if module.training]
    if training:
        more = f" and {len(training) - 1} more" if len(training) > 1 else ""
        raise Refusal(
            "host.training",
            f"{training[0]}{more} is in training mode: its output is not repeatable",
            fix="call model.eval() first",
        )


def _names(seat: Seat) -> tuple[str, ...]:
    name = seat.structure.name
    return (name, f"{name}.{seat.seam}") if seat.seam else (name,)

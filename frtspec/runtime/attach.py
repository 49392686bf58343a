"""The two doors: ``attach`` judges before it activates, ``build`` binds without judging.

Both run the untouched host first, and change nothing on it before the one
transaction that activates. Whatever fails puts everything back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import nn

from frtspec.runtime import receipt
from frtspec.runtime.calibration.ranks import Ranks
from frtspec.runtime.environment import environment
from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating.judge import judge
from frtspec.runtime.hosts.coverage import coverage
from frtspec.runtime.options import Options
from frtspec.runtime.plan import Plan
from frtspec.runtime.records import SeatRecord
from frtspec.runtime.reporting import document
from frtspec.runtime.reporting.precision import precision_spec
from frtspec.runtime.rungs.rungcache import RungCache
from frtspec.runtime.seats import swap
from frtspec.runtime.seats.watch import Watch
from frtspec.runtime.session import Session, isolated
from frtspec.runtime.spec import HostBinding

if TYPE_CHECKING:
    from frtspec.runtime.seats.swap import Attachment

Forward = Callable[..., Any] | Sequence[Callable[[], Any]]


def attach(
    binding: HostBinding,
    model: nn.Module,
    forward: Forward,
    *,
    scheme: str = "auto",
    structures: Sequence[str] | None = None,
    observations: Iterable[Any] | None = None,
    held_out: Any = None,
    percentile: float = 99.9,
    max_samples: int | None = None,
    floors: Mapping[str, float] | None = None,
    min_speedup: float = 1.02,
    rounds: int = 5,
    iters: int = 10,
    on_guard_fail: str = "fallback",
    rungs: Sequence[str] | None = None,
    latency: str = "auto",
    calibration: Any = None,
    group: Any = None,
    decisions: Any = "auto",
) -> Plan:
    """Find the seats, calibrate, gate, and activate what holds.

    model          the host, in eval mode; nothing on it changes before activation
    forward        runs the host once: ``forward()``, ``forward(obs)`` with
                   ``observations``, or a list of thunks, one a sample
    scheme         a quantisation scheme by name, or "auto" by device
    structures     names of structures (or ``structure.seam``) to attach; None: all
    observations   what to calibrate on; any iterable, pulled one at a time
    held_out       samples to judge on: more observations where there are
                   ``observations``, else functions like ``forward``; without them the
                   gates run on calibration samples and say ``fit residual``
    percentile     across samples, of each sample's largest magnitude
    max_samples    at most this many samples are pulled from either stream
    floors         metric -> number that the host's output must meet
    min_speedup    a unit whose gain is not surely this large is kept
    rounds, iters  of the latency gate: rounds of four legs, calls a leg
    on_guard_fail  "fallback" to the host's module, or "raise"
    rungs          only these kinds of rung: hub, local, torch, emulate (the last runs
                   only when named here)
    latency        "auto", or "skip" to activate on accuracy alone
    calibration    a saved one (a file, a folder of them, or a Calibration), or "auto" to use
                   the cache's and keep it there; None: measure
    group          ``torch.distributed`` group, or "world", whose ranks attach as one: samples
                   united, a seat bound on all or on none; None: this process alone
    decisions      which rung was measured first on this box: a file, "auto" for the cache's,
                   or None to try rungs in the impl's order

    Returns a Plan, also when nothing is bound. Raises Refusal when the host as a whole
    is not one that can be attached: wrong class or version, training mode, options that
    make no sense, no samples, an output that can't be judged, a calibration that is not
    this host's.
    """
    options = Options.of(
        scheme=scheme,
        structures=structures,
        percentile=percentile,
        max_samples=max_samples,
        floors=floors,
        min_speedup=min_speedup,
        rounds=rounds,
        iters=iters,
        on_guard_fail=on_guard_fail,
        rungs=rungs,
        latency=latency,
    )
    ranks, measured = Ranks(group), RungCache.open(decisions)
    with ranks.together():
        session = Session.open(
            binding, model, forward, observations, held_out, options, calibration, ranks, measured
        )
        chosen: list[SeatRecord] = []
        with swap.undone_on_error(model):
            if session.open_records():
                session.run_untouched()
                session.calibrate(judge=True)
                session.check_references()
                session.bind()
                session.judge_seats()
                chosen = judge(session)
            session.agree(chosen)
            return session.agreed(_activate(session, chosen, "attach"))


def build(
    binding: HostBinding,
    model: nn.Module,
    forward: Forward,
    *,
    scheme: str = "auto",
    structures: Sequence[str] | None = None,
    observations: Iterable[Any] | None = None,
    percentile: float = 99.9,
    max_samples: int | None = None,
    on_guard_fail: str = "fallback",
    rungs: Sequence[str] | None = None,
    calibration: Any = None,
    group: Any = None,
    decisions: Any = "auto",
) -> Plan:
    """Calibrate and bind without judging: every seat that binds is active.

    No gate decides and nothing is compared with the untouched host; the plan and its
    receipt say so. Options and errors are those of ``attach``.
    """
    options = Options.of(
        scheme=scheme,
        structures=structures,
        percentile=percentile,
        max_samples=max_samples,
        on_guard_fail=on_guard_fail,
        rungs=rungs,
        latency="skip",
    )
    ranks, measured = Ranks(group), RungCache.open(decisions)
    with ranks.together():
        session = Session.open(
            binding, model, forward, observations, None, options, calibration, ranks, measured
        )
        with swap.undone_on_error(model):
            if session.open_records():
                session.calibrate(judge=False)
                session.bind()
            session.agree(session.open_records())
            return session.agreed(_activate(session, session.open_records(), "build"))


def _activate(session: Session, chosen: Sequence[SeatRecord], door: str) -> Plan:
    watch = Watch(session.model, chosen)
    attachment = _swap_in(session.model, chosen)
    for record in chosen:
        if record.open:
            record.bind(_why(record, door))
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
        precision_spec=precision_spec(session.parameters, session.records, session.calibrated),
        attachment=attachment,
        watch=watch,
        before=attachment.ledger() if attachment is not None else {},
    )
    plan.receipt = receipt.seal(document.document(plan))
    return plan

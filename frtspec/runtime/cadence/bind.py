"""Binding a seat of the form update: what calibration has to have shown, and its module.

Nothing is packed and no kernel runs: the form is the host's own computation, done once a
refresh. So no scheme decides on it, unless a row keeps it by name; the caller does, with
``prefix_cadence=True``, which says that he refreshes when the observation (or prompt) changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from frtspec.runtime.cadence.held import Figures, Held, HeldModule
from frtspec.runtime.eligibility import eligible
from frtspec.runtime.errors import Refusal, TrailRow
from frtspec.runtime.gating.gates import GateResult, boundary_of
from frtspec.runtime.hosts import facts
from frtspec.runtime.hosts.host import seat_modules
from frtspec.runtime.observation.recorders import named_inputs
from frtspec.runtime.rungs.impl import BoundImpl
from frtspec.runtime.rungs.ladder import BoundSeat
from frtspec.runtime.seats.forms import Form, Forms
from frtspec.runtime.seats.guard import Band, Contract, Guard
from frtspec.runtime.seats.ledger import Counter
from frtspec.runtime.spec import ImplSpec, RungSpec, Seat

if TYPE_CHECKING:
    from frtspec.runtime.observation.observe import Observation
    from frtspec.runtime.observation.values import Passed

TORCH = RungSpec("torch", run="run_torch")
"""Where the form runs: a tensor is handed on, on any device."""


class HeldImpl(BoundImpl):
    """Stands for an impl in what is told of a seat; the seat's module does the work."""

    def __init__(self, seat: Seat, host: nn.Module) -> None:
        super().__init__()
        self.__dict__["_host"] = host
        structure = seat.structure
        self.SPEC = ImplSpec(  # type: ignore[misc]
            name="held",
            structure=structure.name,
            structure_version=structure.version,
            seam=None,
            version=1,
            source_digest="",
            contract_digest="",
            scales={},
            admits={},
            only={},
            rungs=(TORCH,),
        )

    def run_torch(self, *inputs: Tensor) -> Any:
        return self.__dict__["_host"].forward(*inputs)


def bind_held(
    model: nn.Module,
    seat: Seat,
    seen: Observation,
    *,
    rungs: Sequence[str] | None = None,
    on_guard_fail: str = "fallback",
) -> BoundSeat:
    """The seat with an empty buffer; nothing on the host changes.

    Raises Refusal: what calibration found, ``update.unproven`` where it did not show that the
    value stays while the host's loop runs, ``host.*``, ``rung.none``.
    """
    if seat.name in seen.refusals:
        raise seen.refusals[seat.name]
    if rungs is not None and TORCH.kind not in rungs:
        row = TrailRow(TORCH.label, "rung.not_asked", "another rung was asked for", "not_tried")
        raise Refusal(
            "rung.none",
            f"a held value is handed on by torch (asked for: {', '.join(rungs)})",
            fix='add "torch" to rungs=',
            seat=seat.name,
            trail=(row,),
        )
    form = seen.form(seat.name)
    ((path, host),) = seat_modules(model, seat).items()
    eligible.check_form(seat)
    eligible.check_modules(model, seat, {path: host})
    facts.check_expects(model, seat, form)
    eligible.check_calls(seat, form)
    eligible.check_executed(seat, form)
    figures = _figures(seat, seen)
    device = eligible.one_device(seat, {}, form)
    (widths,) = form.widths
    contract = Contract(widths, device, dict(form.out_dtypes))
    impl = HeldImpl(seat, host).on(TORCH)
    forms = Forms(contract, (Form(Band(), impl),))
    guard = Guard(contract, {path: host})
    label = f"held between refreshes ({seat.cadence})"
    counter = Counter(seat.name, label, on_guard_fail)
    counter.refreshes = 0
    held = Held(seat.cadence or "observation", figures)
    module = HeldModule(host, forms, guard, counter, named=named_inputs(seat), held=held)
    shown = f"stays over {_shortest(seat, seen)} calls a sample"
    trail = (TrailRow(TORCH.label, "rung.bound", shown, "bound"),)
    return BoundSeat(
        seat, impl, TORCH, trail, {path: module}, forms, guard, counter, figures.nbytes, held=held
    )


def _figures(seat: Seat, seen: Observation) -> Figures:
    passed = _kept(seat, seen)
    last = [shape[-1:] for sample in passed for shape in sample.shapes]
    if len(set(last)) != 1 or last[0] == ():
        raise _unproven(seat, f"its results have the last axes {sorted(set(last))}")
    dtypes = frozenset(dtype for sample in passed for dtype in sample.dtypes)
    contents = [value for sample in passed for value in sample.contents or ()]
    return Figures(dtypes, last[0][0], max(value.nbytes for value in contents))


def _kept(seat: Seat, seen: Observation) -> list[Passed]:
    """What the seat gave in the samples that were kept whole. Raises Refusal
    ``update.unproven`` where less than two calls of some sample show that it stays."""
    contents = [name for name, kind in seat.structure.points.items() if kind == "content"]
    passed = [sample for name in contents for sample in seen.values(seat.name, name)]
    whole = [sample for sample in passed if sample.contents]
    if not whole:
        raise _unproven(seat, "its result was not seen whole")
    if _shortest(seat, seen) < 2:
        raise _unproven(seat, "a sample called it once: there is nothing to hold between calls")
    return whole


def _shortest(seat: Seat, seen: Observation) -> int:
    return min(seen.calls_per_sample(seat.name))


def _unproven(seat: Seat, why: str) -> Refusal:
    return Refusal(
        "update.unproven",
        f"nothing shows that {seat.path} may be held while the host's loop runs: {why}",
        fix="let forward run the whole loop (two steps or more) for one observation, and bind "
        "the point whose content is held",
        seat=seat.name,
    )


def judged(seat: Seat, seen: Observation, label: str) -> list[GateResult]:
    """The seat's own gates: the first value of each sample against every later one, which is
    what holding it puts in their place."""
    point = next(name for name, kind in seat.structure.points.items() if kind == "content")
    pairs = [
        ({point: sample.contents[0]}, {point: later})
        for sample in seen.values(seat.name, point)
        if sample.contents
        for later in sample.contents[1:]
    ]
    none = "the form is the host's own computation"
    return [
        GateResult("reference", "not_applicable", none),
        GateResult("parity", "not_applicable", none),
        boundary_of(seat.structure, pairs, label=label),
    ]

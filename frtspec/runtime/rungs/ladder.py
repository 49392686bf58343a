"""Building a seat's impl and finding the rung that runs it.

Rungs are tried in the order the impl lists them. A rung is admitted when the seat's
sizes lie in its envelope, its kernel loads, and one probe at the bound shape gives
what the impl's own emulation gives. ``emulate`` runs only when it is asked for by
name: falling through to arithmetic that is slower than the host would look bound.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.dims import Constraint, DimError
from frtspec.runtime import numerics
from frtspec.runtime.blocks.block import BlockForms, BlockModule
from frtspec.runtime.blocks.parts import hosted
from frtspec.runtime.cadence.held import Held
from frtspec.runtime.eligibility import eligible
from frtspec.runtime.errors import Refusal, TrailRow
from frtspec.runtime.gating.metrics import row_distance, row_errors
from frtspec.runtime.hosts import facts
from frtspec.runtime.hosts.host import SlotValue, seat_modules, seat_weights, solved_dims
from frtspec.runtime.hosts.siblings import SiblingModule, Stash
from frtspec.runtime.observation.observe import Observation
from frtspec.runtime.observation.recorders import named_inputs
from frtspec.runtime.routed.bind import (
    check_seen,
    mechanisms,
    probe_values,
    routed_forms,
    stand_of,
)
from frtspec.runtime.routed.forms import PACKED
from frtspec.runtime.routed.plan import plan_of
from frtspec.runtime.routed.stands import FunctionStand, SpanStand
from frtspec.runtime.rungs import kernels
from frtspec.runtime.rungs.impl import BoundImpl
from frtspec.runtime.rungs.probe import probe, probe_inputs
from frtspec.runtime.rungs.rungcache import Decision, Key, RungCache
from frtspec.runtime.seats.calls import row_count
from frtspec.runtime.seats.forms import BandUse, Form, Forms
from frtspec.runtime.seats.guard import Band, Contract, Guard
from frtspec.runtime.seats.ledger import Counter
from frtspec.runtime.seats.seatmodule import SeatModule
from frtspec.runtime.spec import BandSpec, Route, RungSpec, ScaleSpec, Seat
from frtspec.runtime.steptable.table import Table

KINDS = ("hub", "local", "torch", "emulate")


@dataclass
class BoundSeat:
    """A seat with its impl packed and a rung chosen; nothing on the host has changed.

    impl         the impl on the chosen rung (the first band's, where there are bands)
    trail        every rung that was looked at, in order, and what came of it
    modules      host path -> the module that will stand there
    bytes_added  what the packs and scales hold
    bands        where the impl has bands: what runs for which rows
    stand        of a seat on a route, which replaces no module: what serves its calls
    held         of an update seat: what its module gave, between refreshes
    table        of a seat whose projection is looked up by step
    """

    seat: Seat
    impl: BoundImpl
    rung: RungSpec
    trail: tuple[TrailRow, ...]
    modules: dict[str, SeatModule]
    forms: Forms
    guard: Guard
    counter: Counter
    bytes_added: int
    bands: tuple[BandUse, ...] = ()
    stand: FunctionStand | SpanStand | None = None
    held: Held | None = None
    table: Table | None = None

    @property
    def rungs(self) -> tuple[RungSpec, ...]:
        """The rungs of every band."""
        return tuple(form.impl.rung for form in self.forms.forms if form.impl.rung is not None)

    def runs(self, inputs: tuple[Tensor, ...]) -> bool:
        """Whether the seat's form is for such a call; without bands any call shows it."""
        return not self.bands or self.forms.holds(row_count(inputs[0]))

    def call(self, *inputs: Tensor) -> Any:
        """The bound form on the host's shapes and dtypes, without guard or ledger."""
        return self.forms(*inputs)


@torch.no_grad()
def bind_seat(
    model: nn.Module,
    seat: Seat,
    route: Route,
    observation: Observation,
    *,
    rungs: Sequence[str] | None = None,
    on_guard_fail: str = "fallback",
    decisions: RungCache | None = None,
) -> BoundSeat:
    """Pack the seat's weights and bind them to a rung.

    rungs          kinds to try; None: all but ``emulate``
    decisions      which rung was measured first on this box: it is tried first
    on_guard_fail  ``fallback`` or ``raise``: what a call does that the seat is not bound for

    Raises Refusal: what calibration found, ``host.*`` (the host is not what the binding
    says), ``impl.*`` (the impl has no form for it), ``rung.none`` with the whole trail.
    """
    _check_options(rungs, on_guard_fail)
    if route.impl is None:
        raise Refusal(
            "scheme.keep",
            route.keep or "the scheme keeps this structure at the host's precision",
            fix="choose another scheme to have it bound",
            seat=seat.name,
        )
    if seat.name in observation.refusals:
        raise observation.refusals[seat.name]
    form = observation.form(seat.name)
    hosts = seat_modules(model, seat)
    eligible.check_form(seat)
    eligible.check_modules(model, seat, hosts)
    facts.check_expects(model, seat, form)
    eligible.check_calls(seat, form)
    eligible.check_executed(seat, form)
    eligible.check_impl(seat, route.impl, form)
    weights = seat_weights(model, seat)
    device = eligible.one_device(seat, weights, form)
    dims = solved_dims(seat, weights)
    eligible.check_needs(seat, route.impl, dims)
    sizes = {name: dims[dim] for name, dim in route.impl.SPEC.sizes.items()}
    impl = build(seat, route.impl, weights, observation, {**route.params, **sizes})
    impl.hosted = hosted(model, seat)
    climb = _Climb(seat, impl, observation, device, dims, rungs, decisions)
    if impl.hosted is not None:
        k = _contraction(weights)
        return _block(seat, hosts, observation, climb, k, on_guard_fail)
    if seat.routed is not None:
        return _routed(model, seat, observation, climb, on_guard_fail)
    forms = climb.forms(_contraction(weights))
    (widths,) = form.widths
    bands = tuple(item.band for item in forms)
    contract = Contract(widths, device, dict(form.out_dtypes), bands)
    whole = Forms(contract, forms)
    alone: list[Forms | None] = [None] * len(hosts)
    if seat.siblings is not None:
        alone = _alone(whole, len(hosts), probe_inputs(seat, observation, bands[0], device))
    bound = _bound(seat, hosts, whole, alone, tuple(climb.trail), on_guard_fail)
    if impl.SPEC.bands:
        bound.bands = whole.uses(observation.calls_by_rows(seat.name))
    return bound


def _block(
    seat: Seat,
    hosts: Mapping[str, nn.Module],
    observation: Observation,
    climb: _Climb,
    k: int,
    on_guard_fail: str,
) -> BoundSeat:
    """A seat whose form calls parts of the host: it is tried on a call that was kept."""
    form = observation.form(seat.name)
    captured = observation.captured(seat.name)
    if not captured:
        raise Refusal(
            "calibration.rows",
            f"no call of {seat.path} was kept that its form could be tried on",
            fix="calibrate on samples that reach this block",
            seat=seat.name,
        )
    climb.given = captured[0].seat_inputs
    count = climb.impl.hosted.inputs
    forms = climb.forms(k)
    widths = tuple(x.shape[-1] for x in climb.given[:count])
    bands = tuple(item.band for item in forms)
    contract = Contract(widths, climb.device, dict(form.out_dtypes), bands)
    whole = BlockForms(contract, forms, tuple(x.dim() for x in climb.given[:count]))
    return _bound(seat, hosts, whole, [None], tuple(climb.trail), on_guard_fail)


def _routed(
    model: nn.Module,
    seat: Seat,
    observation: Observation,
    climb: _Climb,
    on_guard_fail: str,
) -> BoundSeat:
    """A seat on a function that the host looks up: nothing is replaced, calls are served."""
    seen, plan = observation.routed(seat.name), plan_of(model, seat)
    check_seen(seat, seen)
    climb.given = probe_values(seat, observation, climb.device)
    forms = climb.forms(1)
    base = Contract((), climb.device, dict(seen.contexts))
    packs = PACKED in mechanisms(seat, seen)
    whole = routed_forms(seat, plan, base, forms, packs)
    impl = forms[0].impl
    assert impl.rung is not None
    counter = Counter(seat.name, whole.label(), on_guard_fail)
    stand = stand_of(model, seat, plan, whole, seen, counter)
    trail, guard = tuple(climb.trail), stand.guard.weights
    return BoundSeat(
        seat, impl, impl.rung, trail, {}, whole, guard, counter, impl.bytes(), stand=stand
    )


def _check_options(rungs: Sequence[str] | None, on_guard_fail: str) -> None:
    unknown = [kind for kind in rungs or () if kind not in KINDS]
    if unknown or isinstance(rungs, str):
        raise Refusal(
            "option.rungs",
            f"rungs={rungs!r} is no list of {', '.join(KINDS)}",
            fix='pass for instance rungs=("torch",)',
        )
    if on_guard_fail not in ("fallback", "raise"):
        raise Refusal(
            "option.on_guard_fail",
            f"on_guard_fail={on_guard_fail!r} is neither 'fallback' nor 'raise'",
            fix="pass one of the two",
        )


def build(
    seat: Seat,
    impl: type[BoundImpl],
    weights: Mapping[str, SlotValue],
    observation: Observation,
    params: Mapping[str, float] | None = None,
) -> BoundImpl:
    """The impl of a seat, packed: it is handed what its constructor names.

    ``params``: what a scheme's route sets of the impl's own, and sizes that it is told.
    """
    known: dict[str, Any] = {
        **impl.SPEC.params,
        **(params or {}),
        **seat.structure.params,
        **seat.params,
        **seat.variants,
        **dict.fromkeys(seat.structure.optional),
        **weights,
    }
    for name, scale in impl.SPEC.scales.items():
        like = next(iter(weights.values()))
        device = (like if isinstance(like, Tensor) else like[0]).device
        amax = _amax(observation, seat, scale)
        known[name] = numerics.calibrated(scale.kind, amax).to(device)
    wanted = inspect.signature(impl).parameters
    return impl(**{name: known[name] for name in wanted if name in known})


def _amax(observation: Observation, seat: Seat, scale: ScaleSpec) -> Tensor:
    """The largest magnitude that a scale is made of; by channel serves the whole tensor too."""
    stats = observation.stats(seat.name, scale.point)
    found = {stat.per: stat for stat in stats if stat.stat == "amax"}
    stat = found.get(scale.per, found.get("channel"))
    return observation.statistic(seat.name, scale.point, stat)


def _contraction(weights: Mapping[str, SlotValue]) -> int:
    """K: the longest contraction among the seat's products (in_out: the axis before last)."""
    several = [(v,) if isinstance(v, Tensor) else v for v in weights.values()]
    return max((w.shape[-2] for group in several for w in group if w.dim() > 1), default=1)


def _bound(
    seat: Seat,
    hosts: Mapping[str, nn.Module],
    forms: Forms,
    alone: Sequence[Forms | None],
    trail: tuple[TrailRow, ...],
    on_guard_fail: str,
) -> BoundSeat:
    impl = forms.forms[0].impl
    assert impl.rung is not None
    guard = Guard(forms.contract, hosts)
    counter = Counter(seat.name, forms.label(), on_guard_fail)
    modules: dict[str, SeatModule] = {}
    stash = Stash()
    for member, (path, host) in enumerate(hosts.items()):
        if isinstance(forms, BlockForms):
            modules[path] = BlockModule(host, forms, guard, counter, named_inputs(seat))
        elif seat.siblings is None:
            modules[path] = SeatModule(host, forms, guard, counter, named_inputs(seat))
        else:
            modules[path] = SiblingModule(
                host, forms, guard, counter, member=member, alone=alone[member], stash=stash
            )
    return BoundSeat(seat, impl, impl.rung, trail, modules, forms, guard, counter, impl.bytes())


def _alone(whole: Forms, members: int, inputs: tuple[Tensor, ...]) -> list[Forms | None]:
    """Each sibling's forms on its own, where they give what the whole gives; None where
    its part of the pack is not known or does not run by itself."""
    wanted = whole(*inputs)
    found: list[Forms | None] = []
    for position in range(members):
        alone = whole.member(position)
        try:
            (mine,) = alone(*inputs)
        except torch.AcceleratorError:
            raise
        except (RuntimeError, ValueError, IndexError):
            found.append(None)
            continue
        theirs = wanted[position]
        close = mine.shape == theirs.shape and row_distance(row_errors(mine, theirs)) <= 2.0**-6
        found.append(alone if close else None)
    return found


# ---------------------------------------------------------------- the ladder


@dataclass
class _Climb:
    """One seat on its way up: bands in order, in each the first rung that is admitted."""

    seat: Seat
    impl: BoundImpl
    observation: Observation
    device: torch.device
    dims: Mapping[str, int]
    asked: Sequence[str] | None
    decisions: RungCache | None = None
    given: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        self.trail: list[TrailRow] = []

    def forms(self, k: int) -> tuple[Form, ...]:
        """A form for each band that some rung serves. Raises Refusal ``rung.none``."""
        found = [form for band in self._bands() if (form := self._first(band, k)) is not None]
        if found:
            return tuple(found)
        spec = self.impl.SPEC
        asked = "" if self.asked is None else f" (asked for: {', '.join(self.asked)})"
        raise Refusal(
            "rung.none",
            f"no rung of {spec.name} serves here{asked}",
            fix="see what each rung lacks; rungs=('emulate',) runs the arithmetic anywhere, slowly",
            seat=self.seat.name,
            form=spec.name,
            shape=self.dims,
            trail=tuple(self.trail),
        )

    def _bands(self) -> list[tuple[Band, Sequence[RungSpec]]]:
        spec = self.impl.SPEC
        if not spec.bands:
            return [(Band(), spec.rungs)]
        return [(_band(item), (*item.rungs, *spec.rungs)) for item in spec.bands]

    def _first(self, band: tuple[Band, Sequence[RungSpec]], k: int) -> Form | None:
        whole, rungs = band
        decided = self._decided(whole)
        first, why = ("", "") if decided is None else (decided.winner, f"{decided.why}; ")
        for rung in sorted(rungs, key=lambda rung: rung.label != first):
            if not self._asked_for(rung):
                continue
            try:
                form, reason = self._admit(rung, whole, k)
            except Refusal as refusal:
                self.trail.append(TrailRow(rung.label, refusal.code, refusal.what, fix=refusal.fix))
                continue
            reason = (why if rung.label == first else "") + reason
            self.trail.append(TrailRow(rung.label, "rung.bound", reason, "bound"))
            return form
        return None

    def _decided(self, band: Band) -> Decision | None:
        """What a measurement on this box left for just this seat's sizes and rows."""
        if self.decisions is None:
            return None
        spec = self.impl.SPEC
        return self.decisions.find(Key.of(self.seat, spec, self.dims, band, self.device))

    def _asked_for(self, rung: RungSpec) -> bool:
        if self.asked is None:
            wanted, reason = rung.kind != "emulate", "runs only when asked for by name"
        else:
            wanted, reason = rung.kind in self.asked, "another rung was asked for by name"
        if not wanted:
            self.trail.append(TrailRow(rung.label, "rung.not_asked", reason, "not_tried"))
        return wanted

    def _admit(self, rung: RungSpec, band: Band, k: int) -> tuple[Form, str]:
        """Variants, envelope, kernel, probe. Raises Refusal with what the rung lacks."""
        eligible.check_rung(self.seat, rung)
        eligible.check_given(rung, self._given())
        band = self._inside(rung, band)
        kernel, origin = None, ""
        if rung.package is not None:
            loaded = kernels.load(rung.kind, rung.package, rung.version, rung.entries)
            kernel, origin = loaded.module, f"{loaded.origin}; "
        impl = self.impl.on(rung, kernel)
        inputs = self.given
        if inputs is None:
            inputs = probe_inputs(self.seat, self.observation, band, self.device)
        elif rung.without:
            names = self.seat.structure.inputs
            kept = [None if n in rung.without else x for n, x in zip(names, inputs, strict=False)]
            inputs = tuple(kept)
        return Form(band, impl), origin + probe(impl, self.seat, inputs, k)

    def _given(self) -> frozenset[str]:
        """Inputs of the structure that some call has, as a form is handed them: a mask that is
        answered by packing keys is none."""
        if self.seat.routed is None:
            boundary = self.seat.boundary
            return frozenset(() if boundary is None else boundary.inputs)
        seen = self.observation.routed(self.seat.name)
        packed = {"mask"} if PACKED in mechanisms(self.seat, seen) else set()
        return frozenset(name for name in seen.names if seen.saw(name)) - packed

    def _inside(self, rung: RungSpec, band: Band) -> Band:
        """The band that the rung's envelope leaves. Raises Refusal ``rung.envelope``."""
        rows = rows_symbol(self.seat)
        for rule in rung.envelope:
            if rows in rule.symbols():
                band = _narrowed(band, rule, rows, self.dims)
                continue
            try:
                holds = rule.check(self.dims)
            except DimError as error:
                raise _outside(rule, str(error)) from None
            if not holds:
                sizes = ", ".join(
                    f"{name} = {self.dims[name]}" for name in rule.symbols() if name in self.dims
                )
                raise _outside(rule, sizes)
        return band


def _outside(rule: Constraint, why: str) -> Refusal:
    return Refusal(
        "rung.envelope",
        f"needs {rule.text}" + (f"; {why}" if why else ""),
        fix="sizes outside a rung's envelope are for another rung",
    )


def _band(spec: BandSpec) -> Band:
    return Band(spec.lo, spec.hi)


def rows_symbol(seat: Seat) -> str | None:
    """The dim that stands for rows: ``M`` in ``x [rows M, D]``."""
    for name in seat.structure.inputs:
        axis = seat.structure.shapes[name][0]
        if axis.rows:
            return axis.symbols()[0]
    return None


def _narrowed(band: Band, rule: Constraint, rows: str | None, dims: Mapping[str, int]) -> Band:
    """The band inside a rule on rows alone: a bound, a range, a divisor."""
    args = [str(arg) if rows in arg.symbols() else arg.value(dims) for arg in rule.args]
    lo, hi, multiple = band.lo, band.hi or 1 << 62, band.multiple
    match rule.kind, args:
        case "at_least", [str(symbol), int(least)] if symbol == rows:
            lo = max(lo, least)
        case "at_most", [str(symbol), int(most)] if symbol == rows:
            hi = min(hi, most)
        case "between", [int(least), str(symbol), int(most)] if symbol == rows:
            lo, hi = max(lo, least), min(hi, most)
        case "divides", [int(step), str(symbol)] if symbol == rows:
            multiple = math.lcm(multiple, step)
        case _:
            raise _outside(rule, f"a rule on {rows} must be a bound, a range or a divisor of it")
    return Band(lo, None if hi == 1 << 62 else hi, multiple)

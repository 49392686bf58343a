"""Whether a seat can be bound at all: its modules, how the host calls them, its impl."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from frtspec.dims import DimError
from frtspec.runtime.dtypes import DTYPES
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts import routes
from frtspec.runtime.hosts.host import SlotValue
from frtspec.runtime.hosts.standing import check_standing
from frtspec.runtime.observation.recorders import CallForm
from frtspec.runtime.routed.bind import check_route
from frtspec.runtime.rungs.impl import BoundImpl
from frtspec.runtime.seats.guard import Band
from frtspec.runtime.seats.seatmodule import SeatModule
from frtspec.runtime.spec import InputOf, OutputOf, Refused, RungSpec, SchemeSpec, Seat

if TYPE_CHECKING:
    from frtspec.runtime.observation.observe import Observation


def check_modules(model: nn.Module, seat: Seat, hosts: Mapping[str, nn.Module]) -> None:
    """Raises Refusal ``host.attached``, ``host.route``, ``route.form``, ``host.training``,
    ``host.hooks``, and what ``check_standing`` raises."""
    check_free(seat, hosts)
    if seat.routed is not None:
        for host in hosts.values():
            routes.check(host, seat.routed)
        check_route(model, seat, hosts)
        return
    check_standing(model, seat.name, hosts)
    for path, host in hosts.items():
        training = [name or path for name, part in host.named_modules() if part.training]
        if training:
            raise Refusal(
                "host.training",
                f"{path} is in training mode ({', '.join(training)})",
                fix="call model.eval() before attaching",
                seat=seat.name,
            )
        hooked = [
            f"{path}.{name}"
            for name, part in host.named_modules()
            if name and (part._forward_hooks or part._forward_pre_hooks)
        ]
        if hooked:
            raise Refusal(
                "host.hooks",
                f"{', '.join(hooked)} has hooks, and the bound form would not call it",
                fix="remove the hooks (those on the seat's own module may stay), or leave this "
                "seat out",
                seat=seat.name,
            )


def check_form(seat: Seat) -> None:
    """Raises Refusal ``seat.form`` for a form that nothing executes yet, ``seat.parts`` for a
    structure whose parts nobody hands in, ``seat.inner`` for one made of structures and
    ``seat.wire`` for one with codes at its boundary."""
    if (
        seat.form not in EXECUTED
        or (seat.form == "route" and seat.routed is None)
        or (seat.form == "update" and seat.cadence is None)
    ):
        raise Refusal(
            "seat.form",
            f"{seat.path} is a seat of the form {seat.form}, which is checked and observed, "
            "and not executed yet",
            fix="nothing to mend: the host's own code runs here",
            seat=seat.name,
        )
    if seat.structure.inner and seat.seam is None:
        raise Refusal(
            "seat.inner",
            f"{seat.structure.key} is made of {', '.join(seat.structure.inner)}, structures of "
            "their own, and no bound form runs them as one",
            fix="bind them by seats of their own",
            seat=seat.name,
        )
    if seat.structure.wires and seat.seam is None:
        raise Refusal(
            "seat.wire",
            f"{seat.structure.key} has codes at {', '.join(seat.structure.wires)}, and the host "
            "has none there",
            fix="bind a structure of the host's dtype; codes pass between two seats only",
            seat=seat.name,
        )
    lost = [name for name in seat.structure.parts if name not in seat.parts]
    if lost and seat.seam is None and seat.form != "update":
        raise Refusal(
            "seat.parts",
            f"{seat.structure.key} holds {', '.join(lost)}, parts of the host that a bound form "
            "would have to call, and the binding does not say where they are",
            fix="nothing to mend: the host's own code runs here",
            seat=seat.name,
        )


EXECUTED = ("swap", "siblings", "block", "route", "update")
"""Forms of a seat that can be bound. A block is a module that is replaced whole; on a route the
module stays, and a function that it looks up is served; an update holds what its module gave."""


def check_free(seat: Seat, hosts: Mapping[str, nn.Module]) -> None:
    """Raises Refusal ``host.attached`` where a seat of another attachment stands."""
    for path, host in hosts.items():
        if isinstance(host, SeatModule):
            raise Refusal(
                "host.attached",
                f"{path} holds the attached seat {host._frt.counter.seat} already",
                fix="detach the other attachment first: its plan.detach(), or "
                "frtspec.runtime.detach(model) where the plan is lost",
                seat=seat.name,
            )


def check_calls(seat: Seat, form: CallForm) -> None:
    """Raises Refusal ``host.returns``, ``host.arguments`` or ``host.width``. How a route's
    module is called is no matter of its function; what a structure's parts are handed is no
    matter of ours."""
    if seat.routed is not None:
        return
    if form.returns != {"tensor"} and not _by_item(seat):
        raise Refusal(
            "host.returns",
            f"{seat.path} returns {' and '.join(sorted(form.returns))}; a seat returns a tensor",
            fix="bind a module that returns one tensor",
            seat=seat.name,
        )
    extra = form.extra - _named(seat)
    if extra and not seat.structure.parts:
        raise Refusal(
            "host.arguments",
            f"the host calls {seat.path} with {', '.join(sorted(extra))}, "
            f"which {seat.structure.key} has no input for",
            fix="this host's module does more than the structure: leave this seat out",
            seat=seat.name,
        )
    if len(form.widths) != 1:
        raise Refusal(
            "host.width",
            f"{seat.path} was called with inputs of several widths: "
            f"{', '.join(map(str, sorted(form.widths)))}",
            fix="a seat has one width: bind a module that is called with one",
            seat=seat.name,
        )


def check_executed(seat: Seat, form: CallForm) -> None:
    """Raises Refusal ``seat.returns`` or ``seat.optional`` for calls that the binding
    describes and no bound form takes yet. What a routed function is handed and returns is
    looked at where it is bound."""
    if seat.routed is not None:
        return
    if form.returns != {"tensor"}:
        raise Refusal(
            "seat.returns",
            f"{seat.path} returns {' and '.join(sorted(form.returns))}; a bound form returns one "
            "tensor",
            fix="nothing to mend: the host's own code runs here",
            seat=seat.name,
        )
    if form.extra:
        raise Refusal(
            "seat.optional",
            f"the host hands {seat.path} {', '.join(sorted(form.extra))}, an optional input of "
            f"{seat.structure.key} that no bound form takes",
            fix="nothing to mend: the host's own code runs here",
            seat=seat.name,
        )


def _by_item(seat: Seat) -> bool:
    """Whether the binding says which items of a tuple the outputs are."""
    outputs = seat.boundary.outputs.values() if seat.boundary else ()
    return any(isinstance(place, OutputOf) and place.item is not None for place in outputs)


def _named(seat: Seat) -> set[str]:
    """Arguments of the seat's module that its boundary names."""
    inputs = seat.boundary.inputs.values() if seat.boundary else ()
    here = [p for p in inputs if isinstance(p, InputOf) and p.path == seat.path]
    return {place.arg for place in here if place.arg is not None}


def check_rows(seat: Seat, bands: Sequence[Band], judged: Observation) -> None:
    """Raises Refusal ``calibration.rows`` where no judged call has rows that the impl is for."""
    rows = judged.rows(seat.name)
    if bands and not any(band.holds(count) for band in bands for count in rows):
        raise Refusal(
            "calibration.rows",
            f"the judged samples call this seat with {', '.join(map(str, rows))} rows; the impl "
            f"is for {' and '.join(map(str, bands))}",
            fix="judge on traffic with such row counts (a decode step has one row a sequence), "
            "or use a scheme without bands",
            seat=seat.name,
        )


def check_variants(seat: Seat) -> None:
    """Raises Refusal ``host.variant`` where the host's config has no variant here."""
    for axis, value in seat.variants.items():
        if isinstance(value, Refused):
            raise Refusal(
                "host.variant",
                f"{value.what} is {value.value!r}; {seat.structure.key} has {axis} for "
                f"{', '.join(map(repr, value.known))}",
                fix="this host computes something else here: leave this seat out",
                seat=seat.name,
            )


def check_verified(seat: Seat, scheme: SchemeSpec, impl: type[BoundImpl] | None) -> None:
    """Raises Refusal ``spec.imported`` where what would run was never verified."""
    specs = [
        (f"scheme {scheme.name}", scheme.imported),
        (f"structure {seat.structure.key}", seat.structure.imported),
    ]
    if impl is not None:
        specs.append((f"impl {impl.SPEC.name}", impl.SPEC.imported))
    for what, reason in specs:
        if reason is not None:
            raise Refusal(
                "spec.imported",
                f"{what} was imported and not verified: {reason}",
                fix="verify it, then say `status draft` in its spec and generate again",
                seat=seat.name,
            )


def check_impl(seat: Seat, impl: type[BoundImpl], form: CallForm) -> None:
    """Raises Refusal ``host.variant``, ``impl.variant`` or ``impl.dtype``."""
    spec = impl.SPEC
    check_variants(seat)
    for axis, value in seat.variants.items():
        allowed = spec.only.get(axis)
        if allowed is not None and value not in allowed:
            raise Refusal(
                "impl.variant",
                f"{spec.name} has no form for {axis} = {value}; it has one for "
                f"{', '.join(allowed)}",
                fix="use a scheme with an impl for this variant",
                seat=seat.name,
                form=spec.name,
            )
    for point, names in spec.admits.items():
        admitted = {DTYPES[name] for name in names}
        found = {context.dtype for context in form.out_dtypes}
        if not found <= admitted:
            raise Refusal(
                "impl.dtype",
                f"{point} is {', '.join(sorted(map(str, found)))} on this host; "
                f"impl {spec.name} admits {', '.join(names)}",
                fix="load the host in a dtype that the impl admits",
                seat=seat.name,
                form=spec.name,
            )


def check_rung(seat: Seat, rung: RungSpec) -> None:
    """Raises Refusal ``rung.variant`` for a variant that the rung does not serve."""
    for axis, allowed in rung.only.items():
        if seat.variants[axis] not in allowed:
            raise Refusal(
                "rung.variant",
                f"serves {axis} = {', '.join(allowed)}, and this seat has {seat.variants[axis]}",
                fix="another rung serves this variant, or none",
            )


def check_given(rung: RungSpec, given: Collection[str]) -> None:
    """Raises Refusal ``rung.input`` for an optional input that the rung's kernel is not handed."""
    for name in rung.without:
        if name in given:
            raise Refusal(
                "rung.input",
                f"serves calls without {name}, and calls of this seat have it",
                fix="another rung serves such calls; a host that leaves it out gets this one",
            )


def check_needs(seat: Seat, impl: type[BoundImpl], dims: Mapping[str, int]) -> None:
    """Raises Refusal ``impl.dims`` where a size breaks a rule that the impl's form rests on."""
    for need in impl.SPEC.needs:
        try:
            if need.rule.check(dims):
                continue
            sizes = ", ".join(f"{n} = {dims[n]}" for n in need.rule.symbols() if n in dims)
        except DimError as error:
            sizes = str(error)
        because = "" if need.why is None else f" ({need.why})"
        raise Refusal(
            "impl.dims",
            f"{impl.SPEC.name} needs {need.rule.text}{because}; {sizes}",
            fix="use a scheme whose impl takes this size; nothing is padded",
            seat=seat.name,
            form=impl.SPEC.name,
            shape=dims,
        )


def one_device(seat: Seat, weights: Mapping[str, SlotValue], form: CallForm) -> torch.device:
    """The device of the seat's weights and inputs. Raises Refusal ``host.device``."""
    found = set(form.devices)
    for value in weights.values():
        found |= {item.device for item in ((value,) if isinstance(value, Tensor) else value)}
    if len(found) != 1:
        raise Refusal(
            "host.device",
            f"weights and inputs lie on {' and '.join(sorted(map(str, found)))}",
            fix="a seat lies on one device: place this layer whole on one",
            seat=seat.name,
        )
    return found.pop()

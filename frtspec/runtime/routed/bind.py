"""Binding a seat on a routed function: its form on a rung, its contract, and its stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts import routes
from frtspec.runtime.hosts.host import submodule
from frtspec.runtime.observation.routedcalls import ABSENT, RouteSeen
from frtspec.runtime.routed.forms import PACKED, RoutedForms
from frtspec.runtime.routed.guard import RouteContract, RouteGuard
from frtspec.runtime.routed.plan import RoutePlan, plan_of
from frtspec.runtime.routed.stands import FunctionStand, SpanStand
from frtspec.runtime.seats.guard import Contract
from frtspec.runtime.seats.ledger import Counter
from frtspec.runtime.spec import RoutedOutput, Seat

if TYPE_CHECKING:
    from frtspec.runtime.observation.observe import Observation
    from frtspec.runtime.seats.forms import Form

_ONLY = {"dropout": (0, None), "dropout_p": (0, None), "softcap": (None,), "s_aux": (None,)}
_ONLY |= {"position_bias": (None,), "head_mask": (None,)}
"""Arguments of attention functions that change what is computed, and where they don't."""


def check_route(model: nn.Module, seat: Seat, modules: Mapping[str, nn.Module]) -> None:
    """Raises Refusal ``route.form`` or ``host.attached``."""
    plan = plan_of(model, seat)
    for path, module in modules.items():
        taken = [
            stand
            for stand in routes.stands(module, plan.routed)
            if stand.outer == plan.span and not _apart(stand.calls, plan.routed.calls)
        ]
        if taken:
            counter: Counter | None = getattr(taken[0], "counter", None)
            raise Refusal(
                "host.attached",
                f"{plan.routed.name} of {path} is served by the attached seat "
                f"{counter.seat if counter else ''} already",
                fix="detach the other attachment first: its plan.detach(), or "
                "frtspec.runtime.detach(model) where the plan is lost",
                seat=seat.name,
            )


def _apart(one: Mapping[str, bool], other: Mapping[str, bool]) -> bool:
    """Whether no call is both seats'."""
    return any(name in other and other[name] != wanted for name, wanted in one.items())


def mechanisms(seat: Seat, seen: RouteSeen) -> tuple[str, ...]:
    """How the seat's form would execute what calibration saw, where rules ask about it."""
    ruled = any(rule.form == PACKED for rule in seat.structure.rules)
    return (PACKED,) if ruled and "mask" in seen.names and seen.saw("mask") else ()


def check_seen(seat: Seat, seen: RouteSeen) -> None:
    """Raises Refusal ``route.returns`` or ``route.arguments`` for calls that no form takes."""
    places = seat.boundary.outputs.values() if seat.boundary else ()
    returned = {getattr(at, "item", None) or 0 for at in places if isinstance(at, RoutedOutput)}
    for count, tensors in seen.returns:
        more = set(tensors) - returned
        if (returned and more) or len(seen.returns) != 1:
            shown = "a tensor" if count is None else f"tensors at {list(tensors)} of {count}"
            raise Refusal(
                "route.returns",
                f"{_name(seat)} returns {shown}; the form gives {sorted(returned)}",
                fix="have the host return no attention weights, or leave this seat out",
                seat=seat.name,
            )
    for name, allowed in _ONLY.items():
        other = [value for value in seen.extras.get(name, ()) if value not in (*allowed, ABSENT)]
        if other:
            raise Refusal(
                "route.arguments",
                f"{_name(seat)} is called with {name}={other[0]}, which "
                f"{seat.structure.key} does not compute",
                fix="this host computes something else here: leave this seat out",
                seat=seat.name,
            )


def _name(seat: Seat) -> str:
    return seat.routed.name if seat.routed is not None else seat.path


def probe_values(seat: Seat, observation: Observation, device: torch.device) -> tuple[Any, ...]:
    """One call's inputs for a probe: what the host really handed, else random values of the
    shapes that it did."""
    seen = observation.routed(seat.name)
    generator = torch.Generator().manual_seed(0)
    found: list[Tensor | None] = []
    dtypes = next(iter(seen.dtypes))
    for name, dtype in zip(seen.names, dtypes, strict=True):
        if name in seen.first:
            found.append(seen.first[name].to(device))
        elif name in seen.shapes and dtype is not None:
            made = torch.randn(seen.shapes[name], generator=generator)
            found.append((made > -3).to(device) if dtype == torch.bool else made.to(device, dtype))
        else:
            found.append(None)
    return tuple(found)


def routed_forms(
    seat: Seat, plan: RoutePlan, base: Contract, forms: tuple[Form, ...], packs: bool
) -> RoutedForms:
    """The forms of a routed seat, on whole tensors."""
    structure = seat.structure
    outputs = {o: structure.dtypes.get(o) for o in structure.outputs if o in plan.outputs}
    return RoutedForms(base, forms, structure.inputs, outputs, packs)


def stand_of(
    model: nn.Module,
    seat: Seat,
    plan: RoutePlan,
    forms: RoutedForms,
    seen: RouteSeen,
    counter: Counter,
) -> FunctionStand | SpanStand:
    """What will serve the seat's calls; nothing on the host changes yet."""
    module = submodule(model, seat.path)
    passing = {path: submodule(model, path) for path in plan.passing}
    contract = RouteContract(forms.contract, plan, seen, _causal(seat), forms.packs)
    guard = RouteGuard(contract, module, passing)
    if plan.span:
        return SpanStand(plan, forms, guard, counter, module)
    return FunctionStand(plan, forms, guard, counter)


def _causal(seat: Seat) -> bool | None:
    """Whether no mask means a causal one; None for what is no attention."""
    shapes = seat.structure.shapes
    axes = {str(axis) for name in ("q", "k") for axis in shapes.get(name, ())}
    if not {"Sq", "Skv"} <= axes:
        return None
    return seat.variants.get("unmasked") == "causal"

"""What must hold for a call of a routed function to run the bound form instead of the host's.

A seat is bound for what calibration saw: which inputs were there and in which dtypes, and what
else the function was handed. Batch, tokens and keys may have any number that fits together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from frtspec.dims import DimError, Shape
from frtspec.runtime.observation.routedcalls import ABSENT, RouteSeen, described
from frtspec.runtime.routed import masks
from frtspec.runtime.routed.plan import RoutePlan
from frtspec.runtime.seats.calls import autocast_dtype
from frtspec.runtime.seats.guard import Check, Contract, Failed, Guard


@dataclass(frozen=True)
class RouteContract:
    """What a routed seat was bound for.

    causal  whether a call without a mask means a causal one; None: no attention
    packs   whether the mask is answered by packing keys
    """

    base: Contract
    plan: RoutePlan
    seen: RouteSeen
    causal: bool | None = None
    packs: bool = False


class RoutedCall(NamedTuple):
    """One call: the structure's inputs by port (None where not there), and what else came."""

    values: Mapping[str, Tensor | None]
    extra: Mapping[str, Any]


class RouteGuard:
    """The contract of one routed seat, the module it is on, and the modules it passes by."""

    def __init__(
        self, contract: RouteContract, module: nn.Module, passing: Mapping[str, nn.Module]
    ) -> None:
        self.contract, self.module = contract, module
        self.passing = dict(passing)
        seat = contract.plan.seat
        shapes = seat.structure.shapes
        self.axes = {
            name: _axes(shapes[name], seat.dims) for name in seat.structure.inputs if name in shapes
        }
        self.weights = Guard(contract.base, self.passing)
        own = self.weights.links  # a seat on a route gives its modules a forward itself
        self.weights.links = tuple(link for link in own if link.name != "forward")

    # ------------------------------------------------------------ a function's call

    def failed(self, call: RoutedCall) -> Failed | None:
        """The first check that this call fails."""
        for name, check in _CHECKS.items():
            if name in _UNTRACED and torch.compiler.is_compiling():
                continue
            reason = check(self, call)
            if reason is not None:
                return failed(name, reason)
        return None

    def stale(self) -> str | None:
        """Why the packs are no longer the host's weights; None when they are."""
        return self.weights.stale()

    # ------------------------------------------------------------ a span's beginning

    def before(self, tables: Mapping[str, Any]) -> Failed | None:
        """What can be told before the module runs: its own state, and its tables."""
        for path, part in self.passing.items():
            if part._forward_hooks or part._forward_pre_hooks:
                return failed("hooks", f"{path} has hooks, and the bound form does not run it")
        reason = self.stale()
        if reason is not None:
            return failed("weights", reason)
        if torch.is_grad_enabled() and any(p.requires_grad for p in self.weights.parameters):
            return failed("grad", _GRAD)
        for name, value in tables.items():
            if not isinstance(value, Tensor):
                what = "nothing" if value is None else f"a {type(value).__name__}"
                return failed("arguments", f"called with {what} for {name}")
        return None


def failed(name: str, reason: str) -> Failed:
    """A check that a call fails, for the ledger."""
    return Failed(Check(name, lambda *_: reason), reason)


_GRAD = "gradients are recorded; run inference under torch.no_grad()"
_UNTRACED = frozenset({"weights"})


# ---------------------------------------------------------------- checks


def _training(guard: RouteGuard, call: RoutedCall) -> str | None:
    if guard.module.training:
        return f"{type(guard.module).__name__} is in training mode"
    return None


def _inputs(guard: RouteGuard, call: RoutedCall) -> str | None:
    """The same inputs are there as calibration saw in some call."""
    seen = guard.contract.seen.dtypes
    there = tuple([value is not None for value in call.values.values()])
    if any(tuple([d is not None for d in dtypes]) == there for dtypes in seen):
        return None
    for place, (name, given) in enumerate(zip(call.values, there, strict=True)):
        if given not in {dtypes[place] is not None for dtypes in seen}:
            return f"called {'with' if given else 'without'} {name}; no calibrated call was"
    named = [name for name, given in zip(call.values, there, strict=True) if given]
    return f"called with {', '.join(named)}, which calibration did not see together"


def _dtype(guard: RouteGuard, call: RoutedCall) -> str | None:
    found = tuple([None if v is None else v.dtype for v in call.values.values()])
    seen = guard.contract.seen.dtypes
    if found in seen:
        return None
    for place, (name, dtype) in enumerate(zip(call.values, found, strict=True)):
        known = {dtypes[place] for dtypes in seen}
        if dtype not in known:
            return f"{name} is {dtype}; bound for {_listed(known)}"
    return f"inputs of {_listed(found)}, which calibration did not see together"


def _listed(dtypes: Sequence[Any] | set[Any] | tuple[Any, ...]) -> str:
    return ", ".join(sorted("none given" if d is None else str(d) for d in dtypes))


NEUTRAL = frozenset(
    {"use_cache", "position_ids", "cache_position", "output_hidden_states", "num_items_in_batch"}
)
"""What models pass along to every layer and no attention function reads."""


def _arguments(guard: RouteGuard, call: RoutedCall) -> str | None:
    seen = guard.contract.seen.extras
    for name, value in call.extra.items():
        if name in NEUTRAL:
            continue
        known, found = seen.get(name), described(value)
        if known is None:
            if value is not None:
                return f"called with {name}={found}, which calibration did not see"
        elif not _among(found, known):
            return f"called with {name}={found}; bound for {', '.join(sorted(map(str, known)))}"
    for name, known in seen.items():
        if name not in call.extra and not {ABSENT, None} & known and name not in NEUTRAL:
            return f"called without {name}; bound for {', '.join(sorted(map(str, known)))}"
    return None


def _among(found: Any, known: set[Any]) -> bool:
    """``True`` is not 1 here."""
    return any(type(found) is type(value) and found == value for value in known)


def _device(guard: RouteGuard, call: RoutedCall) -> str | None:
    for name, value in call.values.items():
        if value is not None and value.device != guard.contract.base.device:
            return f"{name} on {value.device}; bound on {guard.contract.base.device}"
    return None


def _autocast(guard: RouteGuard, call: RoutedCall) -> str | None:
    x = next(value for value in call.values.values() if value is not None)
    found = autocast_dtype(x.device.type)
    known = {context.autocast for context in guard.contract.base.out_dtypes}
    if found in known:
        return None
    return (
        f"autocast is {found or 'off'}; bound with it {' or '.join(str(k or 'off') for k in known)}"
    )


def _shapes(guard: RouteGuard, call: RoutedCall) -> str | None:
    """Sizes of the seat are its own; those of a call fit together over its inputs."""
    known: dict[str, int] = {}
    optional = guard.contract.plan.seat.structure.optional
    for name, value in call.values.items():
        axes = guard.axes.get(name)
        if value is None or axes is None:
            continue
        if value.dim() != len(axes):
            return f"{name} of shape {list(value.shape)}; bound for {len(axes)} axes"
        for wanted, size in zip(axes, value.shape, strict=True):
            if size == 1 and name in optional:
                continue  # a mask of one row is spread over all
            if isinstance(wanted, str):
                if known.setdefault(wanted, size) != size:
                    return f"{name} of shape {list(value.shape)}; {wanted} is {known[wanted]}"
            elif wanted and size not in wanted:
                allowed = " or ".join(map(str, wanted))
                return f"{name} of shape {list(value.shape)}; bound for {allowed}, not {size}"
    return None


def _axes(shape: Shape, dims: Mapping[str, int]) -> tuple[str | tuple[int, ...], ...]:
    """Of each axis: the sizes that the seat allows, or the name of one that a call sets;
    empty where its size follows from what only the call has."""
    found: list[str | tuple[int, ...]] = []
    for axis in shape:
        try:
            found.append(tuple([poly.value(dims) for poly in axis.alternatives]))
        except DimError:
            names = axis.symbols()
            alone = len(axis.alternatives) == 1 and str(axis.alternatives[0]) == names[0]
            found.append(names[0] if alone else ())
    return tuple(found)


def _mask(guard: RouteGuard, call: RoutedCall) -> str | None:
    """What a call without a mask means, and what a mask leaves."""
    contract = guard.contract
    if contract.causal is None:
        return None
    mask = call.values.get("mask", call.values.get("seen"))
    q, k = call.values["q"], call.values["k"]
    assert q is not None and k is not None
    queries, keys = q.shape[-2], k.shape[-2]
    if mask is None:
        window = call.extra.get("sliding_window")
        if isinstance(window, int) and keys > window:
            return f"{keys} keys without a mask, past the window of {window}"
        if contract.causal and 1 < queries != keys:
            return f"{queries} queries and {keys} keys without a mask"
        if queries > 1 and _means_causal(guard, call) != contract.causal:
            return f"a call without a mask is {'not ' if contract.causal else ''}causal here"
        return None
    if contract.packs and not torch.compiler.is_compiling():
        return masks.seen(mask).problem
    if contract.packs:
        return "a mask can't be read while a graph is traced"
    return None


def _means_causal(guard: RouteGuard, call: RoutedCall) -> bool:
    """Of a function of transformers' registry; elsewhere the argument alone says it."""
    given = call.extra.get("is_causal")
    if given is None and guard.contract.plan.routed.via == "registry":
        return bool(getattr(guard.module, "is_causal", True))
    return bool(given)


def _grad(guard: RouteGuard, call: RoutedCall) -> str | None:
    if not torch.is_grad_enabled():
        return None
    tensors = [value for value in call.values.values() if value is not None]
    if any(t.requires_grad for t in (*tensors, *guard.weights.parameters)):
        return _GRAD
    return None


def _weights(guard: RouteGuard, call: RoutedCall) -> str | None:
    return guard.stale()


_CHECKS = {
    "training": _training,
    "inputs": _inputs,
    "dtype": _dtype,
    "arguments": _arguments,
    "device": _device,
    "autocast": _autocast,
    "width": _shapes,
    "mask": _mask,
    "grad": _grad,
    "weights": _weights,
}
"""In the order asked; a later one may rely on those before it."""

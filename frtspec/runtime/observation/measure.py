"""Measuring what a structure's rules ask of a seat: on the module, and over its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import nn

from frtspec.dims import Measured
from frtspec.runtime.dtypes import NAMES
from frtspec.runtime.eligibility.qualification import Found, Value
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.host import submodule
from frtspec.runtime.observation import capturefacts
from frtspec.runtime.routed.bind import mechanisms
from frtspec.runtime.spec import InputOf, OutputOf, Seat, Weight

if TYPE_CHECKING:
    from frtspec.runtime.observation.observe import Observation
    from frtspec.runtime.observation.values import Passed

Conv = nn.modules.conv._ConvNd


@dataclass
class _Facts:
    """Facts as they are found; ``later``: what the calls will tell."""

    model: nn.Module
    seat: Seat
    seen: Observation | None = None
    exact: bool | None = None
    facts: dict[str, Value] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    void: dict[str, str] = field(default_factory=dict)

    def measure(self) -> Found:
        for rule in self.seat.structure.rules:
            test = rule.test
            if isinstance(test, Measured) and not self._known(test.subject):
                measured = MEASURES[test.fact](self, test)
                if measured is not None:
                    self.facts[test.subject] = measured
        return Found(self._sizes(), self.facts, self.missing, self.void, self._forms())

    def _forms(self) -> tuple[str, ...]:
        """What the calls of a routed seat need, as far as calibration saw."""
        name = self.seat.name
        if self.seat.routed is None or self.seen is None or not self.seen.observed(name):
            return ()
        return mechanisms(self.seat, self.seen.routed(name))

    def _known(self, subject: str) -> bool:
        return subject in self.facts or subject in self.missing or subject in self.void

    def _sizes(self) -> dict[str, int]:
        """The seat's dims, and the row count that calibration saw in the middle."""
        sizes = dict(self.seat.dims)
        for name in sorted({key.partition("[")[0] for key in sizes if key.endswith("]")}):
            sizes[f"sum({name})"] = sum(
                size for key, size in self.seat.dims.items() if key.partition("[")[0] == name
            )
        if self.seen is None or not self.seen.observed(self.seat.name):
            return sizes
        rows = self.seen.rows(self.seat.name)
        shape = self.seat.structure.shapes.get(next(iter(self.seat.structure.inputs), ""), ())
        if rows and shape and shape[0].rows:
            sizes.setdefault(str(shape[0].alternatives[0]), rows[len(rows) // 2])
        return sizes

    def why(self, test: Measured, reason: str) -> Value | None:
        """Note why a fact is not measured; there is no value then."""
        self.missing[test.subject] = reason
        return None


def at_rest(model: nn.Module, seat: Seat) -> Found:
    """What is known before the host runs. Facts about calls are still missing."""
    return _Facts(model, seat).measure()


def after_calls(
    model: nn.Module, seat: Seat, seen: Observation, *, exact: bool | None = None
) -> Found:
    """What is known once calibration has run. ``exact``: whether the untouched host gave the
    same bits twice on one sample; None when it ran once."""
    return _Facts(model, seat, seen, exact).measure()


# ---------------------------------------------------------------- the module


def _convolution(read: Callable[[Conv], Value]) -> Callable[[_Facts, Measured], Value | None]:
    def measure(facts: _Facts, test: Measured) -> Value | None:
        owner = _owner(facts, test)
        if owner is None:
            return None
        if isinstance(owner, nn.Linear):
            what = f"{test.of} is the weight of a Linear, which slides over nothing"
            facts.void[test.subject] = what
            return None
        if not isinstance(owner, Conv) or owner.transposed:
            facts.why(test, f"{test.of} belongs to a {type(owner).__name__}")
            return None
        return read(owner)

    return measure


def _owner(facts: _Facts, test: Measured) -> nn.Module | None:
    """The module that holds the weight of a slot."""
    weight = facts.seat.slots.get(test.of or "")
    if not isinstance(weight, Weight) or weight.path is None:
        facts.why(test, f"the binding does not say which parameter {test.of} is")
        return None
    try:
        return submodule(facts.model, weight.path.rpartition(".")[0])
    except Refusal as refusal:
        facts.why(test, refusal.what)
        return None


def _kernel(conv: Conv) -> str:
    pairs = list(zip(conv.kernel_size, conv.stride, strict=True))
    if all(kernel == stride for kernel, stride in pairs):
        return "stride"
    return "overlapping" if any(kernel > stride for kernel, stride in pairs) else "apart"


def _padding(conv: Conv) -> int:
    if isinstance(conv.padding, str):  # "valid" is none; "same" pads what the kernel exceeds
        return 0 if conv.padding == "valid" else max(kernel - 1 for kernel in conv.kernel_size)
    return max(conv.padding)


def _other_children(facts: _Facts, test: Measured) -> Value | None:
    """Children with parameters that nothing of the seat lies in."""
    seat = facts.seat
    try:
        module = submodule(facts.model, seat.path)
    except Refusal as refusal:
        facts.why(test, refusal.what)
        return None
    named = _paths(seat)
    others = [
        name
        for name, child in module.named_children()
        if any(True for _ in child.parameters())
        and not any(
            path == f"{seat.path}.{name}" or path.startswith(f"{seat.path}.{name}.")
            for path in named
        )
    ]
    return len(others)


def _paths(seat: Seat) -> list[str]:
    """Every place on the host that a seat names."""
    boundary = seat.boundary
    weights = [*seat.slots.values(), *(boundary.slots.values() if boundary else ())]
    places: list[object] = [*seat.points.values()]
    if boundary is not None:
        places += [*boundary.inputs.values(), *boundary.outputs.values()]
    found = [w.path for v in weights for w in ((v,) if isinstance(v, Weight) else v) if w.path]
    return found + [p.path for p in places if isinstance(p, InputOf | OutputOf)]


def _kept(facts: _Facts, test: Measured) -> Value | None:
    boundary = facts.seat.boundary
    if boundary is None or boundary.none is not None:
        return "hidden"
    written = [o for o, i in facts.seat.structure.updates.items() if i == test.of]
    handed = test.of in boundary.inputs
    return "explicit" if handed and set(written) <= set(boundary.outputs) else "hidden"


# ---------------------------------------------------------------- the calls


def _calls(facts: _Facts, test: Measured) -> Value | None:
    seen, name = facts.seen, facts.seat.name
    if seen is None or not seen.observed(name) or not seen.calls_per_sample(name):
        return facts.why(test, "the host has not run")
    return min(seen.calls_per_sample(name))


def _passed(facts: _Facts, test: Measured) -> list[Passed] | None:
    if facts.seen is None:
        facts.why(test, "the host has not run")
        return None
    found = facts.seen.values(facts.seat.name, test.of or "")
    if not found or not any(sample.shapes for sample in found):
        facts.why(test, f"nothing was seen at {test.of}: the binding does not say where it lies")
        return None
    return found


def _dtype(facts: _Facts, test: Measured) -> Value | None:
    passed = _passed(facts, test)
    if passed is None:
        return None
    found = sorted({NAMES.get(d, str(d)) for s in passed for d in s.dtypes})
    return " and ".join(found)


def _table(facts: _Facts, test: Measured) -> Value | None:
    passed = _passed(facts, test)
    if passed is None or facts.seen is None:
        return None
    first = facts.seat.structure.inputs[0]
    others = facts.seen.values(facts.seat.name, first)
    if not others:
        return facts.why(test, f"nothing was seen at {first}, whose tokens the table counts")
    found = {
        capturefacts.table(shape, *token[:2])
        for sample, other in zip(passed, others, strict=True)
        for shape, token in zip(sample.shapes, other.shapes, strict=False)
    }
    return "shared" if "shared" in found else "per_token"


def _contents(
    compute: Callable[[list[torch.Tensor]], Value | None], worst: Callable[..., Value]
) -> Callable[[_Facts, Measured], Value | None]:
    """A fact computed from what one sample kept; of several samples the worst."""

    def measure(facts: _Facts, test: Measured) -> Value | None:
        passed = _passed(facts, test)
        if passed is None:
            return None
        kept = [s.contents for s in passed if s.contents is not None]
        if not kept:
            return facts.why(test, f"{test.of} is too large to be kept over a run")
        found = [value for value in map(compute, kept) if value is not None]
        if not found:
            facts.void[test.subject] = f"{test.of} has one value only"
            return None
        return worst(found)

    return measure


def _prefix_drift(facts: _Facts, test: Measured) -> Value | None:
    first = facts.seat.structure.inputs[0]
    queries = facts.seen.values(facts.seat.name, first) if facts.seen else []
    counts = {shape[-2] for sample in queries for shape in sample.shapes}
    if len(counts) != 1:
        return facts.why(test, f"the calls differ in how many queries {first} has")
    (count,) = counts
    return _contents(lambda keys: capturefacts.prefix_drift(keys, count), max)(facts, test)


def _repeats(facts: _Facts, test: Measured) -> Value | None:
    if facts.exact is None:
        return facts.why(test, "the host has not run twice on one sample")
    return "exact" if facts.exact else "inexact"


MEASURES: Mapping[str, Callable[[_Facts, Measured], Value | None]] = {
    "calls": _calls,
    "dtype": _dtype,
    "steps": _contents(capturefacts.steps, max),
    "fingerprint_margin": _contents(capturefacts.fingerprint_margin, min),
    "runs": _contents(capturefacts.runs, max),
    "drift": _contents(capturefacts.drift, max),
    "prefix_drift": _prefix_drift,
    "table": _table,
    "kept": _kept,
    "repeats": _repeats,
    "kernel": _convolution(_kernel),
    "conv_rank": _convolution(lambda conv: len(conv.kernel_size)),
    "padding": _convolution(_padding),
    "dilation": _convolution(lambda conv: max(conv.dilation)),
    "groups": _convolution(lambda conv: conv.groups),
    "other_children": _other_children,
}
"""Fact -> how it is measured; the same names as the compiler's table."""

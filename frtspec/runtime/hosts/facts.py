"""Host facts that a seat relies on, read from the live host and compared.

The list is closed (``FACTS``). What can be computed is probed by numbers and not
believed from a name: an activation is told apart by its values, a norm's rounding by
its last bits. Both sides are in the refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as nnf

from frtspec.runtime import ops
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.host import seat_modules, submodule
from frtspec.runtime.observation.recorders import CallForm
from frtspec.runtime.seats.calls import first_tensor
from frtspec.runtime.spec import Expect, Seat


def check_expects(model: nn.Module, seat: Seat, form: CallForm | None = None) -> None:
    """Whether every fact that the seat expects holds on this host.

    ``form`` is how the seat's module was called at calibration; the facts about calls
    (``returns``, ``call``, ``forward``) wait for it and are passed over without it.

    Raises Refusal ``host.fact`` with what was expected and what was found.
    """
    for expect in seat.expects:
        read = FACTS.get(expect.fact)
        if read is None:
            raise Refusal(
                "host.fact",
                f"unknown fact {expect.fact}; known: {', '.join(FACTS)}",
                fix="run `frtspec gen` again with the installed frtspec",
                seat=seat.name,
            )
        for where, found in read(model, seat, expect, form).items():
            if not agrees(expect, found):
                raise Refusal(
                    "host.fact",
                    f"{where}: expected {expect.fact} {' or '.join(expect.values)}, found {found}",
                    fix="this host differs from what the binding was written for: use a binding "
                    "that says so, or leave this seat out",
                    seat=seat.name,
                )


def agrees(expect: Expect, found: str) -> bool:
    """Whether what was found is one of the values expected; ``gelu`` stands for both kinds."""
    names = {found, "gelu"} if found in ("gelu_tanh", "gelu_erf") else {found}
    return bool(names & set(expect.values))


Found = dict[str, str]
Read = Callable[[nn.Module, Seat, Expect, CallForm | None], Found]


def _named(model: nn.Module, seat: Seat, expect: Expect) -> dict[str, Any]:
    """What the fact is about: the ``of`` paths, else the seat's own modules."""
    if not expect.of:
        return dict(seat_modules(model, seat))
    return {path: attribute(model, path) for path in expect.of}


def attribute(model: nn.Module, path: str) -> Any:
    """The module at a path, or the plain function that a module holds there."""
    parent, _, name = path.rpartition(".")
    held = submodule(model, parent).__dict__.get(name)
    return held if callable(held) else submodule(model, path)


# ---------------------------------------------------------------- read from the module


def _class(model: nn.Module, seat: Seat, expect: Expect, form: CallForm | None) -> Found:
    """Exactly the class: a subclass may compute something else."""
    return {path: type(held).__name__ for path, held in _named(model, seat, expect).items()}


def _bias(model: nn.Module, seat: Seat, expect: Expect, form: CallForm | None) -> Found:
    held = _named(model, seat, expect)
    return {
        path: "none" if getattr(module, "bias", None) is None else "all"
        for path, module in held.items()
    }


# ---------------------------------------------------------------- read from a call


def _returns(model: nn.Module, seat: Seat, expect: Expect, form: CallForm | None) -> Found:
    return {} if form is None else {seat.path: " and ".join(sorted(form.returns))}


def _call(model: nn.Module, seat: Seat, expect: Expect, form: CallForm | None) -> Found:
    return {} if form is None else {seat.path: " and ".join(sorted(form.calls))}


def _forward(model: nn.Module, seat: Seat, expect: Expect, form: CallForm | None) -> Found:
    """A seat that never ran is refused at calibration already; here it has run."""
    return {} if form is None else {seat.path: "called"}


# ---------------------------------------------------------------- probed by numbers

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "silu": nnf.silu,
    "gelu_tanh": lambda x: nnf.gelu(x, approximate="tanh"),
    "gelu_erf": nnf.gelu,
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "relu": nnf.relu,
    "relu_squared": lambda x: nnf.relu(x).square(),
    "relu6": nnf.relu6,
    "leaky_relu": nnf.leaky_relu,
    "elu": nnf.elu,
    "hardswish": nnf.hardswish,
    "mish": nnf.mish,
    "softplus": nnf.softplus,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "identity": lambda x: x,
}
"""Activations that are told apart. The two closest, the GELUs, differ by 4.7e-4."""

ACTIVATION_TOLERANCE = 1e-5


def _activation(model: nn.Module, seat: Seat, expect: Expect, form: CallForm | None) -> Found:
    if not expect.of:
        raise Refusal(
            "host.fact",
            "the fact activation does not say of which module",
            fix="write `expect activation … of PATH` in the binding",
            seat=seat.name,
        )
    return {path: activation_of(held) for path, held in _named(model, seat, expect).items()}


@torch.no_grad()
def activation_of(function: Callable[[Tensor], Tensor]) -> str:
    """The name in ``ACTIVATIONS`` of what a callable computes, or what it is instead."""
    x = torch.linspace(-12.0, 12.0, 4800)
    try:
        found = function(x.clone())
    except (RuntimeError, TypeError, ValueError) as error:
        return f"{_kind(function)}, which can't be probed ({type(error).__name__}: {error})"
    if not isinstance(found, Tensor) or found.shape != x.shape:
        return f"{_kind(function)}, which is not elementwise"
    for name, known in ACTIVATIONS.items():
        if torch.allclose(found, known(x), rtol=1e-5, atol=ACTIVATION_TOLERANCE):
            return name
    return f"{_kind(function)}, which is none of {', '.join(ACTIVATIONS)}"


def _kind(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _norm_rounding(model: nn.Module, seat: Seat, expect: Expect, form: CallForm | None) -> Found:
    held = expect.of or (seat.path,)
    return {path: norm_rounding_of(submodule(model, path)) for path in held}


@torch.no_grad()
def norm_rounding_of(norm: nn.Module) -> str:
    """Where an RMS norm with a weight rounds to the host's dtype: ``before_weight`` or
    ``after_weight``.

    A copy of the module with a random bfloat16 weight of its own is run, so the host's
    weights are not touched. Direct and offset weights (w, 1 + w) are both tried.
    """
    weight = getattr(norm, "weight", None)
    if not isinstance(weight, Tensor) or weight.dim() != 1:
        return f"{type(norm).__name__}, which has no weight of one axis"
    generator, size = torch.Generator().manual_seed(0), weight.shape[0]
    x = torch.randn(64, size, generator=generator).to(weight.device, torch.bfloat16)
    w = torch.rand(size, generator=generator).to(weight.device, torch.bfloat16)
    try:
        found = first_tensor(_with_weight(norm, w).forward(x))
    except (RuntimeError, TypeError, ValueError) as error:
        return f"{type(norm).__name__}, which can't be probed ({type(error).__name__}: {error})"
    if found is None:
        return f"{type(norm).__name__}, which returns no tensor"
    scores = {
        name: float((found == candidate).float().mean())
        for name, candidate in _rounded(x, w, _eps(norm)).items()
    }
    best = max(scores, key=lambda name: scores[name])
    if scores[best] < 0.99:
        return f"{type(norm).__name__}, whose values neither order gives"
    return best.partition(" ")[0]


def _rounded(x: Tensor, w: Tensor, eps: float) -> dict[str, Tensor]:
    normed = ops.rms_norm(x.float(), eps)
    return {
        f"{order} {mode}": (value * weight).to(x.dtype)
        for mode, weight in (("direct", w.float()), ("offset", 1 + w.float()))
        for order, value in (
            ("before_weight", normed.to(x.dtype).float()),
            ("after_weight", normed),
        )
    }


def _eps(norm: nn.Module) -> float:
    for name in ("variance_epsilon", "eps"):
        if isinstance(getattr(norm, name, None), float):
            return float(getattr(norm, name))
    return 1e-6


def _with_weight(norm: nn.Module, weight: Tensor) -> nn.Module:
    """A copy of the module with this weight, every other parameter in the same dtype."""
    others = {
        name: None if held is None else nn.Parameter(held.to(weight.dtype), requires_grad=False)
        for name, held in norm._parameters.items()
    }
    twin = type(norm).__new__(type(norm))
    twin.__dict__.update(norm.__dict__)
    own = nn.Parameter(weight, requires_grad=False)
    twin.__dict__["_parameters"] = {**others, "weight": own}
    return twin


FACTS: Mapping[str, Read] = {
    "class": _class,
    "bias": _bias,
    "activation": _activation,
    "norm_rounding": _norm_rounding,
    "returns": _returns,
    "call": _call,
    "forward": _forward,
}
"""Fact -> what reads it: place -> what was found there."""

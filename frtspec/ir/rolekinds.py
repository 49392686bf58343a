"""What a role of a `discover` block can be: a closed table.

The live matcher knows one way to recognise each kind; the facts are told by value, never
by a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class RoleKind:
    """``ranks``: axes of the slot behind each of its parameters, in order; None for any.
    ``least``: how many of them a role names at least. ``facts``: what is told -> what it
    says. ``number``: the number that ``gives`` sets a param from."""

    ranks: tuple[int | None, ...]
    least: int
    what: str
    facts: Mapping[str, str]
    number: str | None = None


_ACTIVATIONS = {
    "silu": "x * sigmoid(x)",
    "gelu_tanh": "GELU, tanh approximation",
    "gelu_erf": "GELU, exact",
    "quick_gelu": "x * sigmoid(1.702 x)",
    "relu": "max(x, 0)",
    "relu_squared": "max(x, 0) ** 2",
    "hardswish": "x * clamp(x + 3, 0, 6) / 6",
}

_RMS = {
    "direct": "x * w",
    "offset": "x * (1 + w)",
    "before_weight": "rounds to the model's dtype before the weight",
    "after_weight": "rounds once, after the weight",
}

ROLE_KINDS: Mapping[str, RoleKind] = {
    "linear": RoleKind((2, 1), 0, "a projection: weight, bias", {}),
    "conv": RoleKind((2, 1), 1, "a convolution over whole patches: weight, bias", {}),
    "layer_norm": RoleKind((1, 1), 0, "a LayerNorm: weight, bias", {}, "eps"),
    "rms_norm": RoleKind((1,), 0, "a root-mean-square norm: weight", _RMS, "eps"),
    "activation": RoleKind((), 0, "an elementwise function", _ACTIVATIONS),
    "parameter": RoleKind((None,), 1, "a parameter by itself", {}),
}

"""Norms told apart by their values: what a module computes, not what it is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as nnf

from frtspec.runtime import ops
from frtspec.runtime.seats.calls import first_tensor

_EPS_NAMES = ("variance_epsilon", "eps", "epsilon", "layer_norm_eps")
_ROWS = 64
_CLOSE = 2e-5
_FAILS = (RuntimeError, TypeError, ValueError, AttributeError, IndexError, KeyError)


@dataclass(frozen=True)
class Norm:
    """``kind``: layer_norm or rms_norm. ``facts``: direct or offset, where it rounds."""

    kind: str
    eps: float | None
    facts: frozenset[str]


def norm_of(module: nn.Module) -> Norm | None:
    """What norm a module is over its last axis, by running a copy with random weights.

    None where it is no LayerNorm or RMS norm, or takes more than one tensor.
    """
    size = _width(module)
    if size is None or not set(module._parameters) <= {"weight", "bias"} or _tensors(module):
        return None
    eps = _eps(module)
    key = (type(module), size, eps, *(n for n, p in module._parameters.items() if p is not None))
    known = _KNOWN.setdefault(type(module), {})
    if key not in known:
        known[key] = _told(module, size, eps)
    return known[key]


_KNOWN: WeakKeyDictionary[type, dict[Any, Norm | None]] = WeakKeyDictionary()


def _width(module: nn.Module) -> int | None:
    weight = getattr(module, "weight", None)
    if isinstance(weight, Tensor):
        return weight.shape[0] if weight.dim() == 1 and weight.shape[0] > 1 else None
    shape = getattr(module, "normalized_shape", None)
    if isinstance(shape, tuple) and len(shape) == 1:
        return int(shape[0])
    return None


def _tensors(module: nn.Module) -> bool:
    return any(value is not None for value in module._buffers.values())


def _eps(module: nn.Module) -> float | None:
    found = {float(v) for n in _EPS_NAMES if isinstance(v := getattr(module, n, None), float)}
    return found.pop() if len(found) == 1 else None


@torch.no_grad()
def _told(module: nn.Module, size: int, eps: float | None) -> Norm | None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(_ROWS, size, generator=generator) + 0.5
    weights = {
        name: torch.rand(size, generator=generator) + 0.25
        for name, held in module._parameters.items()
        if held is not None
    }
    found = _run(module, weights, x)
    if found is None:
        return None
    for epsilon in (eps,) if eps is not None else (1e-6, 1e-5, 1e-12, 0.0):
        for name, value in _candidates(x, weights, epsilon).items():
            if _relative(found, value) < _CLOSE:
                kind, _, mode = name.partition(" ")
                facts = {mode} if mode else set()
                if kind == "rms_norm" and weights:
                    facts |= _rounding(module, size, epsilon, mode)
                return Norm(kind, epsilon, frozenset(facts))
    return None


def _candidates(x: Tensor, weights: dict[str, Tensor], eps: float) -> dict[str, Tensor]:
    weight, bias = weights.get("weight"), weights.get("bias")
    found = {"layer_norm": nnf.layer_norm(x, x.shape[-1:], weight, bias, eps)}
    if bias is None:
        normed = ops.rms_norm(x, eps)
        if weight is None:
            found["rms_norm"] = normed
        else:
            found["rms_norm direct"] = normed * weight
            found["rms_norm offset"] = normed * (1 + weight)
    return found


def _rounding(module: nn.Module, size: int, eps: float, mode: str) -> set[str]:
    """Where an RMS norm rounds: told by the last bits of a bfloat16 copy."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(_ROWS, size, generator=generator).bfloat16()
    w = torch.rand(size, generator=generator).bfloat16()
    found = _run(module, {"weight": w}, x)
    if found is None:
        return set()
    weight = w.float() + (1 if mode == "offset" else 0)
    normed = ops.rms_norm(x.float(), eps)
    orders = {"before_weight": normed.bfloat16().float(), "after_weight": normed}
    scores = {
        order: float((found == (value * weight).bfloat16()).float().mean())
        for order, value in orders.items()
    }
    best = max(scores, key=lambda name: scores[name])
    return {best} if scores[best] > 0.99 else set()


def _run(module: nn.Module, weights: dict[str, Tensor], x: Tensor) -> Tensor | None:
    twin = type(module).__new__(type(module))
    own = {
        name: nn.Parameter(weights[name], requires_grad=False) if name in weights else None
        for name in module._parameters
    }
    twin.__dict__.update({**module.__dict__, "_parameters": own})
    try:
        found = twin.forward(x)
    except _FAILS:
        return None
    # A norm that also returns a gate is no plain norm.
    value = first_tensor(found) if isinstance(found, Tensor) else None
    return value if value is not None and value.shape == x.shape else None


def _relative(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())

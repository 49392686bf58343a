"""Small real hosts with seats on the functions that they look up, and what must not move."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.runtime import Plan
from tests.hosts.diffusion import Diffusion
from tests.hosts.tiny import Family

Run = Callable[[Mapping[str, Any]], Tensor]

WRITTEN = ("rope_deltas",)
"""What a host itself writes at each call."""

ROUTED = ("attention_core", "qk_norm_rope", "qkv_rope", "gated_delta_core")


def runner(model: nn.Module) -> Run:
    """The host's first output, without gradients."""

    def run(sample: Mapping[str, Any]) -> Tensor:
        with torch.no_grad():
            out = model(**sample)
        for name in ("logits", "last_hidden_state"):
            if hasattr(out, name):
                found: Tensor = getattr(out, name)
                return found
        first = out[0]
        return first[0] if isinstance(first, list) else first

    return run


def attached(family: Family | Diffusion, model: nn.Module, samples: Any, **options: Any) -> Plan:
    """The routed seats of a host on torch's library ops."""
    generated = importlib.import_module(f"flashrt_gen.{family.name}")
    known = {seat.structure.name for seat in generated.HOST.seats(model)}
    given = {
        "observations": samples,
        "scheme": "bf16_structural",
        "structures": [name for name in ROUTED if name in known],
        "rungs": ("torch",),
    }
    plan: Plan = generated.attach(model, options.pop("run", runner(model)), **(given | options))
    return plan


def own(model: nn.Module) -> dict[str, dict[str, Any]]:
    """Every module's own attributes, object for object."""
    return {name: dict(module.__dict__) for name, module in model.named_modules()}


def same(before: Mapping[str, dict[str, Any]], after: Mapping[str, dict[str, Any]]) -> list[str]:
    """Attributes that came, went or became other objects."""
    return [
        f"{name}.{key}"
        for name in before
        for key in {*before[name], *after[name]}
        if before[name].get(key) is not after[name].get(key) and key not in WRITTEN
    ]


def shared(model: nn.Module) -> dict[str, Any]:
    """What every model of a process shares: globals of the host's files, attributes of its
    classes, transformers' registry of attention functions, and the config."""
    found: dict[str, Any] = {}
    for kind in {type(module) for module in model.modules()}:
        found |= {f"{kind.__qualname__}.{name}": value for name, value in vars(kind).items()}
        names = vars(sys.modules[kind.__module__])
        found |= {f"{kind.__module__}:{name}": value for name, value in names.items()}
    registry = importlib.import_module("transformers.modeling_utils").ALL_ATTENTION_FUNCTIONS
    found |= {f"attention {name}": registry[name] for name in registry}
    config = model.config
    found["implementation"] = getattr(config, "_attn_implementation", None)
    return found


def moved(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Names of what is another object, came or went."""
    names = {*before, *after}
    ignored = ("__annotations__", "_frt", "__abstractmethods__", "_abc_impl")
    return [
        name
        for name in sorted(names)
        if before.get(name) is not after.get(name) and not name.endswith(ignored)
    ]

"""What a host has to be again after everything: objects, hooks, attributes, bits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
)


def picture(model: nn.Module) -> dict[str, Any]:
    """Everything about a model that attach must leave alone, but for the bits."""
    modules = dict(model.named_modules(remove_duplicate=False))
    return {
        "modules": {n: (id(m), type(m), list(m._modules)) for n, m in modules.items()},
        "attributes": {
            n: {key: id(value) for key, value in vars(m).items() if key != "training"}
            for n, m in modules.items()
        },
        "training": {n: m.training for n, m in modules.items()},
        "hooks": {n: [list(getattr(m, kind)) for kind in HOOKS] for n, m in modules.items()},
        "tensors": {
            n: (id(t), t.data_ptr(), t._version, t.dtype)
            for n, t in (*model.named_parameters(), *model.named_buffers())
        },
    }


def bits(model: nn.Module) -> dict[str, Tensor]:
    """Copies of every tensor of a model."""
    every = (*model.named_parameters(), *model.named_buffers())
    return {name: value.detach().clone() for name, value in every}


def same_bits(model: nn.Module, before: dict[str, Tensor]) -> bool:
    now = bits(model)
    return now.keys() == before.keys() and all(torch.equal(now[n], before[n]) for n in now)

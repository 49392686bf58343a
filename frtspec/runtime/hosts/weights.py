"""Weights that must not be read as they stand, told apart and refused by name.

A pack made of a placeholder, of another adapter's base weight or of packed codes
would be silently wrong. Each kind has its own code and its own way out.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.census import Census

READABLE = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
"""Dtypes whose values are the weight itself."""

PLAIN_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
"""Layers of torch whose weight means what their own forward makes of it."""

_QUANTISED_MARKS = ("qweight", "weight_packed", "weight_scale", "weight_scale_inv", "quant_state")


def check_readable(
    model: nn.Module,
    path: str,
    owner: nn.Module,
    name: str,
    value: object,
    *,
    seat: str | None = None,
) -> None:
    """Whether the tensor at ``path`` (``owner.name``) can be read for packing.

    Raises Refusal: ``host.adapter``, ``host.offloaded``, ``host.meta``,
    ``host.quantised``, ``host.sharded``, ``host.parametrized``, ``host.subclass``, ``host.tied``.
    """
    problem = (
        _adapter(owner, path)
        or _placeholder(owner, path, value)
        or sharded(path, value)
        or _quantised(owner, path, value)
        or _computed(owner, path, name)
        or _overridden(owner, path)
        or _tied(model, path, owner, name, value)
    )
    if problem is not None:
        code, what, fix = problem
        raise Refusal(code, what, fix=fix, seat=seat)


Problem = tuple[str, str, str] | None


def _adapter(owner: nn.Module, path: str) -> Problem:
    lora = "base_layer" in owner._modules
    saved = {"original_module", "modules_to_save"} <= owner._modules.keys()
    if not lora and not saved:
        return None
    kind = "LoRA-wrapped" if lora else "saved by an adapter"
    return (
        "host.adapter",
        f"{path} is {kind} ({describe_owner(owner)}): its base weight is not what the host computes",
        "merge the adapters first (merge_and_unload()), or leave this seat out",
    )


def _placeholder(owner: nn.Module, path: str, value: object) -> Problem:
    hook = getattr(owner, "_hf_hook", None)
    hooks = getattr(hook, "hooks", (hook,))
    offloaded = any(getattr(item, "offload", False) for item in hooks)
    meta = isinstance(value, Tensor) and value.is_meta
    if offloaded:
        return (
            "host.offloaded",
            f"{path} is offloaded by an accelerate hook; what stands there is a placeholder",
            "load the model without offloading (no device_map='auto' past the device's memory)",
        )
    if meta:
        return (
            "host.meta",
            f"{path} is on the meta device and holds no data",
            "materialise the model and load its weights before attaching",
        )
    return None


def sharded(path: str, value: object) -> Problem:
    """What is wrong with a weight of which this process holds a part; None for whole ones."""
    if type(value).__name__ not in ("DTensor", "FlatParameter"):
        return None
    return (
        "host.sharded",
        f"{path} is a {type(value).__name__}: this process holds a shard of it",
        "attach to the model before it is sharded",
    )


def _quantised(owner: nn.Module, path: str, value: object) -> Problem:
    marks = [mark for mark in _QUANTISED_MARKS if hasattr(owner, mark)]
    plain = type(value) in (Tensor, nn.Parameter, nn.Buffer)
    if plain and isinstance(value, Tensor) and value.dtype in READABLE and not marks:
        return None
    found = type(value).__name__ if not plain else str(getattr(value, "dtype", ""))
    detail = f" and {', '.join(marks)} beside it" if marks else ""
    return (
        "host.quantised",
        f"{path} is already quantised or packed ({found}{detail} in {describe_owner(owner)})",
        "load the floating-point checkpoint; packs are made from floating-point weights",
    )


def _computed(owner: nn.Module, path: str, name: str) -> Problem:
    own = name in owner._parameters or name in owner._buffers
    if own and not parametrize.is_parametrized(owner, name):
        return None
    return (
        "host.parametrized",
        f"{path} is computed at every call ({describe_owner(owner)}), not a parameter",
        "bake it in first (torch.nn.utils.parametrize.remove_parametrizations)",
    )


def _overridden(owner: nn.Module, path: str) -> Problem:
    """A subclass of a torch layer may do more than multiply (scale, mask, quantise)."""
    for base in PLAIN_LAYERS:
        if isinstance(owner, base) and type(owner).forward is not base.forward:
            return (
                "host.subclass",
                f"{path} is in a {describe_owner(owner)}, a {base.__name__} with a forward of its own",
                f"use a plain torch.nn.{base.__name__} there, or leave this seat out",
            )
    return None


def _tied(model: nn.Module, path: str, owner: nn.Module, name: str, value: object) -> Problem:
    for other_path, other, other_name in Census.of(model).parameters.get(id(value), ()):
        if other is not owner or other_name != name:
            return (
                "host.tied",
                f"{path} is tied to {other_path}.{other_name}: one tensor serves both",
                "untie it (give this module its own copy), or leave this seat out",
            )
    return None


def describe_owner(owner: nn.Module) -> str:
    """The class of a module with its package: ``peft.tuners.lora.layer.Linear``."""
    kind = type(owner)
    return f"{kind.__module__}.{kind.__qualname__}"


def fingerprint(value: Tensor) -> tuple[int, int]:
    """Two sums over a tensor's bits, one weighted by position; equal bits, equal sums.

    Finds edits that leave no trace in the version counter (through ``.data``). Works in
    slices, so that it never needs more than 32 MiB beside the tensor.
    """
    width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[value.element_size()]
    bits = value.detach().contiguous().view(width).reshape(-1)
    plain = weighted = 0
    for start in range(0, bits.numel(), 1 << 21):
        part = bits[start : start + (1 << 21)].long()
        place = torch.arange(start, start + part.numel(), device=part.device) % 8191 + 1
        plain += int(part.sum())
        weighted += int((part * place).sum())
    return plain, weighted

"""Whether a module's call is its class's own forward, reached by one path.

A seat stands where the module's ``forward`` would run. What an instance, a wrapper or a hook
of another library put around that forward would be passed by in silence, so it is refused by
name. Hooks registered with torch are no matter of this: they stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import nn

from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.census import Census
from frtspec.runtime.hosts.weights import sharded

WRAPPERS: Mapping[str, str] = {
    "OptimizedModule": "is compiled (torch.compile)",
    "FullyShardedDataParallel": "is wrapped by FSDP",
    "DistributedDataParallel": "is wrapped by DDP",
    "CheckpointWrapper": "is wrapped for activation checkpointing",
}
"""Class of a module that holds another -> what it is."""

Problem = tuple[str, str, str] | None


def check_standing(model: nn.Module, seat: str, hosts: Mapping[str, nn.Module]) -> None:
    """Whether a seat at these modules computes what their calls compute.

    Raises Refusal ``host.compiled``, ``host.wrapped``, ``host.offloaded``, ``host.meta``,
    ``host.sharded``, ``host.forward`` or ``host.shared_module``, with the path.
    """
    for path, host in hosts.items():
        inside = ((f"{path}.{name}".rstrip("."), part) for name, part in host.named_modules())
        for where, module in (*_above(model, path), *inside):
            problem = _compiled(where, module) or _wrapped(where, module)
            if problem is None and (where == path or where.startswith(f"{path}.")):
                problem = _forward(where, module) or _no_whole_weight(where, module)
            if problem is not None:
                code, what, fix = problem
                raise Refusal(code, what, fix=fix, seat=seat)
        _check_one_place(model, path, seat)


def wrapped(path: str, module: nn.Module) -> str | None:
    """What wraps the module at a path, in words; None where nothing does."""
    kind = next((c.__name__ for c in type(module).__mro__ if c.__name__ in WRAPPERS), None)
    return None if kind is None else f"{path or 'the model'} {WRAPPERS[kind]}"


def _above(model: nn.Module, path: str) -> Iterator[tuple[str, nn.Module]]:
    """The modules that hold the one at ``path``, below the root."""
    module, walked = model, ""
    for name in path.split(".")[:-1]:
        child = module._modules.get(name)
        if child is None:
            return
        module, walked = child, f"{walked}.{name}".lstrip(".")
        yield walked, module


def _compiled(path: str, module: nn.Module) -> Problem:
    is_compiled = type(module).__name__ == "OptimizedModule"
    if not is_compiled and module._compiled_call_impl is None:
        return None
    how = "torch.compile" if is_compiled else ".compile()"
    return (
        "host.compiled",
        f"{path} is compiled ({how}): its graph would not come by the seat, nor by what measures",
        "attach first, and compile afterwards",
    )


def _wrapped(path: str, module: nn.Module) -> Problem:
    found = wrapped(path, module)
    if found is None:
        return None
    return ("host.wrapped", found, "attach to the model before it is wrapped")


def _forward(path: str, module: nn.Module) -> Problem:
    own = module.__dict__.get("forward")
    if own is None or _moves_inputs_only(module):
        return None
    hook = module.__dict__.get("_hf_hook")
    if hook is not None:
        each = getattr(hook, "hooks", (hook,))
        if any(getattr(item, "offload", False) for item in each):
            return (
                "host.offloaded",
                f"the weights of {path} are offloaded (meta), with an accelerate hook present",
                "load the model without offloading (no device_map='auto' past the device's memory)",
            )
        kind = type(hook).__name__
        return (
            "host.forward",
            f"an accelerate hook ({kind}) wraps the forward of {path}; a seat would pass it by",
            "load without device_map, or call accelerate.hooks.remove_hook_from_submodules first",
        )
    what = getattr(own, "__qualname__", type(own).__name__)
    return (
        "host.forward",
        f"the forward of {path} was replaced on this instance by {what}; a seat would pass it by",
        "put the patch on after attaching, or leave this seat out",
    )


def _no_whole_weight(path: str, module: nn.Module) -> Problem:
    for name, held in (*module._parameters.items(), *module._buffers.items()):
        if held is None:
            continue
        if (part := sharded(f"{path}.{name}", held)) is not None:
            return part
        if held.is_meta:
            return (
                "host.meta",
                f"{path}.{name} is on the meta device and holds no data",
                "materialise the model and load its weights before attaching",
            )
    return None


def _moves_inputs_only(module: nn.Module) -> bool:
    """Whether accelerate's hook does nothing but bring inputs to where the weights are, as
    ``device_map`` does without offloading. The guard asks for the device at every call."""
    hook = module.__dict__.get("_hf_hook")
    if type(hook).__name__ != "AlignDevicesHook" or hook.offload or hook.tied_params_map:
        return False
    target = hook.execution_device
    try:
        device = torch.device("cuda", target) if isinstance(target, int) else torch.device(target)
    except (RuntimeError, TypeError):
        return False
    tensors = (*module._parameters.values(), *module._buffers.values())
    return all(tensor is None or tensor.device == device for tensor in tensors)


def _check_one_place(model: nn.Module, path: str, seat: str) -> None:
    shared = Census.of(model).shared(path)
    if shared is not None:
        at, places = shared
        inside = "" if at == path else f", and {path} is inside it"
        raise Refusal(
            "host.shared_module",
            f"one module serves at {' and '.join(places)}{inside}",
            fix="a seat would change both places: leave this seat out",
            seat=seat,
        )

"""Which scheme ``scheme=`` stands for on this device."""

from __future__ import annotations

import difflib

import torch

from frtspec.runtime.errors import Refusal
from frtspec.runtime.spec import HostBinding, SchemeSpec


def resolve(binding: HostBinding, name: str, device: torch.device) -> SchemeSpec:
    """The scheme of that name, or for ``auto`` the first of the binding's rows that the
    device's compute capability reaches.

    Raises Refusal ``option.scheme`` for a name that the binding's package has not.
    """
    if name == "auto":
        name = automatic(binding, capability(device))
    if name in binding.schemes:
        return binding.schemes[name]
    known = ("auto", *binding.schemes)
    near = difflib.get_close_matches(str(name), known, n=1)
    raise Refusal(
        "option.scheme",
        f"no scheme {name!r}; there are {', '.join(known)}",
        fix=f"did you mean {near[0]!r}?" if near else "pass one of these names",
    )


def automatic(binding: HostBinding, found: float | None) -> str:
    """The scheme for a compute capability (None: no CUDA device)."""
    for least, name in binding.auto:
        if least is None or (found is not None and found >= least):
            return name
    raise Refusal(
        "option.scheme",
        f"scheme='auto' has no row for {'this device' if found is None else f'capability {found}'}",
        fix="pass a scheme by name, or end the auto table with an else row",
    )


def capability(device: torch.device) -> float | None:
    """CUDA compute capability as specs write it (8.9, 12.0); None elsewhere."""
    if device.type != "cuda" or torch.version.cuda is None:
        return None
    major, minor = torch.cuda.get_device_capability(device)
    return major + minor / 10

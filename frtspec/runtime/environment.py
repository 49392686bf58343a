"""What a figure depends on besides the specs: versions, device, driver."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import torch

PACKAGES = (
    "frtspec",
    "torch",
    "transformers",
    "diffusers",
    "lerobot",
    "kernels",
    "triton",
    "numpy",
)
"""Distributions whose versions can change what a bound host computes."""


def environment(device: torch.device, host_package: str | None = None) -> dict[str, Any]:
    """Versions and device as JSON-ready data, without paths, names of machines or users."""
    names = sorted({*PACKAGES, *([host_package] if host_package else [])})
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: version(name) for name in names},
        "cuda": torch.version.cuda,
        "device": _device(device),
        "threads": torch.get_num_threads(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
    }


def drift(before: Mapping[str, Any], now: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Where an environment is no longer what it was: ``packages.torch: 2.9.0 then, 2.10.0 now``.

    before   a receipt's ``environment``, a plan's, or one that ``environment`` gave
    now      to hold it against; None: this process, on the device type that it names
    """
    if now is None:
        device = torch.device(before["device"]["type"])
        now = environment(device)
        extra = [name for name in before["packages"] if name not in now["packages"]]
        now["packages"] |= {name: version(name) for name in extra}
    return tuple(
        f"{key}: {found.get(key, 'unknown')} then, {here.get(key, 'unknown')} now"
        for found, here in [(_flat(before), _flat(now))]
        for key in sorted({*found, *here})
        if found.get(key) != here.get(key)
    )


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in value.items():
        found |= _flat(item, f"{prefix}{key}.") if isinstance(item, Mapping) else {prefix + key: item}
    return found


def version(distribution: str) -> str | None:
    """The installed version, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def device_of(model: torch.nn.Module) -> torch.device:
    """The device of the host's first parameter; the CPU for a host without any."""
    first = next(model.parameters(), None)
    return first.device if first is not None else torch.device("cpu")


def _device(device: torch.device) -> dict[str, Any]:
    if device.type != "cuda":
        return {"type": device.type, "name": platform.machine()}
    properties = torch.cuda.get_device_properties(device)
    return {
        "type": "cuda",
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "memory_bytes": properties.total_memory,
        "multiprocessors": properties.multi_processor_count,
    }


def device_is_lost(error: BaseException) -> bool:
    """Whether the error is sticky: nothing runs on the device after it."""
    if isinstance(error, torch.OutOfMemoryError):
        return False
    sticky: type | tuple[()] = getattr(torch, "AcceleratorError", ())
    return isinstance(error, sticky) or "CUDA error" in str(error)

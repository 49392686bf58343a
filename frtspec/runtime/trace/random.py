"""Whether random numbers were drawn: the state of every generator that a stage may use."""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterable, Mapping

import torch


def generators(devices: Iterable[torch.device]) -> dict[str, str]:
    """Digest of the state of each process-wide generator, by name.

    devices  those that the values lie on; generators of other devices are not looked at
    """
    found = {
        "torch": _digest(torch.get_rng_state().numpy().tobytes()),
        "python": _digest(repr(random.getstate()).encode()),
    }
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        found["numpy"] = _digest(repr(numpy.random.get_state(legacy=False)).encode())
    for device in {d for d in devices if d.type == "cuda"}:
        state = torch.cuda.get_rng_state(device)
        found[f"torch {device}"] = _digest(state.numpy().tobytes())
    return found


def drawn(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """The generators whose state moved."""
    return tuple(name for name in after if before.get(name, after[name]) != after[name])


def _digest(state: bytes) -> str:
    return hashlib.sha256(state).hexdigest()

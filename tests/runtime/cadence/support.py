"""A small real denoising host with its loop: the prompt stays while the steps run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from flashrt_gen import wan
from torch import Tensor, nn

from frtspec.runtime import Plan
from tests.hosts.diffusion import WAN, Sample

STEPS = (900, 500, 100)
SAMPLES = WAN.samples(4)
HELD = ("cross_k[0]", "cross_v[0]", "cross_k[1]", "cross_v[1]")
OPTIONS = {
    "scheme": "none",
    "structures": ("cadence_static",),
    "rungs": ("torch",),
    "prefix_cadence": True,
}


def denoising(model: nn.Module, steps: Sequence[int] = STEPS) -> Callable[[Sample], Tensor]:
    """A few steps of one prompt from one noise."""

    def forward(sample: Sample) -> Tensor:
        x, prompt = sample["hidden_states"], sample["encoder_hidden_states"]
        with torch.no_grad():
            for step in steps:
                t = torch.full_like(sample["timestep"], step)
                x = (
                    x
                    - 0.1 * model(hidden_states=x, timestep=t, encoder_hidden_states=prompt).sample
                )
        return x

    return forward


def attached(model: nn.Module, forward: Any = None, **options: Any) -> Plan:
    given = {"observations": SAMPLES[:2], "held_out": SAMPLES[2:3]}
    return wan.attach(model, forward or denoising(model), **(given | OPTIONS | options))


def built(model: nn.Module, forward: Any = None, **options: Any) -> Plan:
    given = {"observations": SAMPLES[:1]}
    return wan.build(model, forward or denoising(model), **(given | OPTIONS | options))

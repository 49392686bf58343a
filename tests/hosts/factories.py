"""The tiny hosts as factories of a command line: ``hosts.factories:llama``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from hosts import tiny
from hosts.tiny import Family

Made = tuple[torch.nn.Module, Callable[[Any], Any], list[dict[str, torch.Tensor]]]


def __getattr__(name: str) -> Callable[[], Made]:
    for family in tiny.FAMILIES:
        if family.name == name:
            return partial(make, family)
    raise AttributeError(name)


def make(family: Family, dtype: torch.dtype = torch.bfloat16) -> Made:
    """The model, how it runs a sample, and its samples.

    In bfloat16 a norm that rounds at another place, or a weight that is an offset, can't
    give the same bits.
    """
    model = family.model(dtype)
    return model, lambda sample: model(**sample), samples(family, dtype)


def samples(family: Family, dtype: torch.dtype) -> list[dict[str, torch.Tensor]]:
    """Two samples, pixels in the model's dtype."""
    return [
        {name: t.to(dtype) if t.is_floating_point() else t for name, t in sample.items()}
        for sample in family.samples(2)
    ]

"""Shared by the comparisons of references: sizes, random tensors, what equal means."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from torch import Tensor

BOTH = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
SLOW_BOX = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])

sizes = st.integers(1, 48)
few = st.integers(1, 4)
leads = st.lists(st.integers(1, 5), min_size=0, max_size=3).map(tuple)
seeds = st.integers(0, 2**31)

Make = Callable[..., Tensor]


def same(ours: Tensor, theirs: Tensor) -> None:
    """Bit-equal below float32, equal to rounding in it."""
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    if ours.dtype == torch.float32:
        torch.testing.assert_close(ours, theirs, rtol=2e-6, atol=2e-6)
    else:
        assert torch.equal(ours, theirs)


def maker(seed: int, dtype: torch.dtype) -> Make:
    """Random tensors of one dtype from one generator: ``make(2, 3)``."""
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=generator).to(dtype)


def tables(
    tokens: int, width: int, *, batch: int = 1, base: float = 100.0
) -> tuple[Tensor, Tensor]:
    """Cosines and sines [batch, tokens, width / 2] in float32."""
    turns = base ** -(torch.arange(0, width, 2) / width)
    angles = torch.arange(tokens)[:, None] * turns
    return angles.cos().expand(batch, -1, -1), angles.sin().expand(batch, -1, -1)

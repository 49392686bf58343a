"""Facts computed from tensors that were kept over calls."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frtspec.ir.measured import FACTS
from frtspec.runtime.observation import capturefacts as facts
from frtspec.runtime.observation.measure import MEASURES

NONE = torch.finfo(torch.float32).min


def test_every_fact_of_the_language_is_measured() -> None:
    assert set(MEASURES) == set(FACTS)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20))
def test_steps_are_distinct_values(order: list[int]) -> None:
    table = torch.randn(10, 6, generator=torch.Generator().manual_seed(3))
    values = [table[k].bfloat16() for k in order]
    assert facts.steps(values) == len(set(order))


def test_a_rounding_apart_is_one_step_and_another_shape_is_another() -> None:
    x = torch.randn(8)
    assert facts.steps([x, x * (1 + 1e-8)]) == 1
    assert facts.steps([x, x * (1 + 1e-4)]) == 2
    assert facts.steps([x, x[:4]]) == 2


def test_the_fingerprint_margin_is_the_smallest_distance_at_the_best_coordinates() -> None:
    """Three steps that differ at one coordinate only, by 0.5 and by 1.5, of values near 1."""
    steps = [torch.ones(64) for _ in range(3)]
    steps[1][7], steps[2][7] = 1.5, 3.0
    mean = float(torch.stack(steps).mean())
    assert facts.fingerprint_margin(steps) == pytest.approx(0.5 / mean)
    assert facts.fingerprint_margin([*steps, steps[0].clone()]) == pytest.approx(0.5 / mean)
    assert facts.fingerprint_margin(steps[:1]) is None


def test_sinusoids_of_near_times_have_a_small_margin() -> None:
    def embedded(time: float) -> torch.Tensor:
        turns = time * torch.logspace(0, 3, 32)
        return torch.cat([turns.sin(), turns.cos()])

    far = facts.fingerprint_margin([embedded(k / 10) for k in range(10)])
    near = facts.fingerprint_margin([embedded(0.5), embedded(0.5 + 1e-7)])
    assert far is not None and near is not None and near < 0.001 < far


def blocked(*runs: tuple[int, int], keys: int = 12, queries: int = 3) -> torch.Tensor:
    mask = torch.zeros(1, 1, queries, keys)
    for start, end in runs:
        mask[..., start:end] = NONE
    return mask


def test_runs_of_a_mask() -> None:
    assert facts.runs([blocked()]) == 0
    assert facts.runs([blocked((2, 5))]) == 1
    assert facts.runs([blocked((0, 2), (5, 6), (11, 12))]) == 3
    assert facts.runs([blocked((2, 5)), blocked((1, 2), (4, 5))]) == 2
    assert facts.runs([blocked((2, 5)).bool().logical_not()]) == 1
    assert facts.runs([torch.where(blocked((2, 5)) < 0, -math.inf, 0.0)]) == 1
    assert facts.runs([torch.randn(1, 1, 3, 12)]) == 0  # a bias blocks nothing


def test_queries_that_see_different_masks_cannot_share_a_packing() -> None:
    causal = torch.full((4, 4), -math.inf).triu(1)[None, None]
    assert facts.runs([causal]) == 4
    mixed = blocked((2, 5))
    mixed[..., 0, :] = 0
    assert facts.runs([mixed]) == 2


def test_drift_is_relative_to_the_largest_magnitude() -> None:
    x = torch.tensor([1.0, -4.0])
    assert facts.drift([x]) is None
    assert facts.drift([x, x.clone()]) == 0
    assert facts.drift([x, x + torch.tensor([0.004, 0]), x]) == pytest.approx(0.001, rel=1e-4)
    assert facts.drift([x, x[:1]]) == math.inf
    assert facts.drift([torch.zeros(2), torch.zeros(2)]) == 0


def test_the_prefix_is_what_the_queries_did_not_bring() -> None:
    keys = torch.randn(1, 2, 10, 4)
    moved = keys.clone()
    moved[..., 7:, :] += 1
    assert facts.prefix_drift([keys, moved], queries=3) == 0
    assert facts.prefix_drift([keys, moved], queries=2) > 0.1
    assert facts.prefix_drift([keys, moved], queries=10) == 0


def test_a_table_has_a_row_for_each_token_of_each_batch_row() -> None:
    assert facts.table((2, 5, 8), 2, 5) == "per_token"
    assert facts.table((1, 5, 8), 2, 5) == "shared"
    assert facts.table((4096, 8), 1, 5) == "shared"

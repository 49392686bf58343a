"""Metrics: exact values, kinds of output, and nothing measured over NaN or Inf."""

from __future__ import annotations

import math
from collections import OrderedDict
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating import metrics
from frtspec.runtime.spec import Bound


def test_value_metrics_against_hand_computed_ones():
    scores = metrics.compare(torch.tensor([3.0, 4.0, 0.0]), torch.tensor([3.0, 0.0, 4.0]))
    assert scores.broken is None
    assert scores.metrics["cosine"] == pytest.approx(9 / 25)
    assert scores.metrics["max_abs"] == 4.0
    assert scores.metrics["rel_l2"] == pytest.approx(math.sqrt(32) / 5)


def test_p99_is_the_exact_order_statistic():
    difference = torch.arange(1, 201, dtype=torch.float32)
    scores = metrics.compare(torch.zeros(200), difference[torch.randperm(200)])
    assert scores.metrics["p99_abs"] == 198.0


def test_cosine_is_float64_over_the_whole_tensor():
    reference = torch.full((1 << 20,), 1e-4)
    treated = reference.clone()
    treated[0] += 1e-7
    cosine = metrics.compare(reference, treated).metrics["cosine"]
    assert 0 < 1 - cosine < 1e-11


def test_samples_add_up_and_the_worst_is_kept():
    values = metrics.comparison("values")
    good, bad = torch.tensor([10.0, 0.0]), torch.tensor([0.0, 1.0])
    values.add({"y": good}, {"y": good})
    values.add({"y": bad}, {"y": -bad})
    scores = values.scores()
    assert scores.samples == 2
    assert scores.metrics["worst_sample_cosine"] == -1.0
    assert scores.metrics["cosine"] == 0.0  # one sample at 1, one at -1, whatever their size


def test_zero_against_zero_is_alike_and_zero_against_something_is_not():
    zero = torch.zeros(4)
    assert metrics.compare(zero, zero).metrics["cosine"] == 1.0
    assert metrics.compare(zero, torch.ones(4)).metrics["cosine"] == 0.0
    assert metrics.compare(zero, torch.ones(4)).metrics["rel_l2"] == 1.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("side", ["reference", "treated"])
@pytest.mark.parametrize("kind", ["values", "distribution"])
def test_a_nonfinite_value_on_either_side_leaves_no_number(value, side, kind):
    sides = {"reference": torch.rand(2, 3, 5), "treated": torch.rand(2, 3, 5)}
    sides[side][1, 1, 1] = value
    comparison = metrics.comparison(kind)
    comparison.add({"y": torch.ones(2, 3, 5)}, {"y": torch.ones(2, 3, 5)})
    comparison.add({"y": sides["reference"]}, {"y": sides["treated"]})
    scores = comparison.scores()
    assert scores.metrics == {}
    assert scores.broken is not None and side in scores.broken and "sample 1" in scores.broken


@pytest.mark.parametrize("dtype, value", [(torch.float32, 3e38), (torch.float16, 6e4)])
def test_values_whose_sum_overflows_are_finite(dtype, value):
    large = torch.full((8,), value, dtype=dtype)
    assert metrics.broken("y", large, large) is None


def test_a_changed_shape_or_name_leaves_no_number():
    assert metrics.compare(torch.zeros(2, 3), torch.zeros(3, 2)).broken
    assert metrics.compare(torch.zeros(0), torch.zeros(0)).broken
    comparison = metrics.comparison("values")
    comparison.add({"a": torch.ones(1)}, {"b": torch.ones(1)})
    assert comparison.scores().metrics == {}
    assert metrics.comparison("values").scores().broken == "nothing was compared"


def test_distribution_metrics_against_hand_computed_ones():
    reference = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]]])
    treated = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [2.0, 1.0]]])
    comparison = metrics.comparison("distribution")
    comparison.add({"logits": reference}, {"logits": treated})
    scores = comparison.scores()
    assert scores.metrics["top1_agreement"] == pytest.approx(2 / 3)
    assert scores.metrics["mean_position_cosine"] == pytest.approx(2 / 3)
    assert scores.metrics["worst_position_cosine"] == pytest.approx(0.0)
    assert scores.metrics["last_position_cosine"] == 1.0
    p = torch.softmax(torch.tensor([0.0, 1.0], dtype=torch.float64), -1)
    expected = float((p * (p.log() - p.flip(0).log())).sum()) / 3
    assert scores.metrics["kl_per_token"] == pytest.approx(expected)
    assert "worst position: sample 0, sequence 0, position 1" in scores.notes


def test_chunks_do_not_change_what_is_measured(monkeypatch):
    torch.manual_seed(0)
    reference, treated = torch.randn(2, 7, 11), torch.randn(2, 7, 11)

    def scores():
        comparison = metrics.comparison("distribution")
        comparison.add({"logits": reference}, {"logits": treated})
        return comparison.scores().metrics

    whole = scores()
    monkeypatch.setattr(metrics, "_CHUNK", 22)
    chunked = scores()
    assert whole.keys() == chunked.keys()
    assert all(chunked[name] == pytest.approx(whole[name], rel=1e-12) for name in whole)


class ModelOutput(OrderedDict):
    """A mapping whose keys are attributes, as transformers returns."""

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(name)


LOGITS = torch.zeros(1, 2, 3)


@pytest.mark.parametrize(
    "output, kind, names",
    [
        (SimpleNamespace(logits=LOGITS), "distribution", ["logits"]),
        ({"logits": LOGITS, "loss": LOGITS}, "distribution", ["logits"]),
        (ModelOutput(logits=LOGITS, cache=object()), "distribution", ["logits"]),
        (LOGITS, "values", ["output"]),
        ((LOGITS, None, LOGITS), "values", ["output[0]", "output[2]"]),
        ({"actions": LOGITS, "ids": LOGITS.long()}, "values", ["actions"]),
    ],
)
def test_the_kind_of_output_is_inferred(output, kind, names):
    seen = metrics.view(output)
    assert seen.kind == kind and list(seen.tensors) == names


@pytest.mark.parametrize("output", [None, 3, "text", (), [1, 2], torch.zeros(3).long(), {}])
def test_an_output_without_a_float_tensor_is_refused(output):
    with pytest.raises(Refusal) as caught:
        metrics.view(output)
    assert caught.value.code == "host.output"


def test_a_kept_view_does_not_follow_the_host():
    buffer = torch.zeros(2)
    kept = metrics.view(buffer).kept()
    buffer += 1
    assert kept.tensors["output"].eq(0).all() and kept.nbytes == 8


def test_nan_satisfies_no_bound():
    assert not metrics.meets(math.nan, Bound("cosine", ">=", 0.5))
    assert not metrics.meets(math.nan, Bound("max_abs", "<=", 0.5))
    assert metrics.meets(0.1, Bound("max_abs"))
    assert metrics.violations({"cosine": math.nan}, (Bound("cosine", ">=", 0.5),))


def test_an_unmeasured_bound_is_a_violation():
    assert metrics.violations({}, (Bound("rel_l2", "<=", 0.1),)) == [
        "rel_l2 was not measured (bound <= 0.1)"
    ]
    assert metrics.violations({"rel_l2": 10.0}, (Bound("rel_l2", "<=", 0.01),))
    assert metrics.violations({}, (Bound("rel_l2"),)) == []


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(0, 2**31),
    st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
)
def test_metrics_stay_in_range(size, seed, dtype):
    generator = torch.Generator().manual_seed(seed)
    a = torch.randn(size, generator=generator).to(dtype)
    b = torch.randn(size, generator=generator).to(dtype)
    found = metrics.compare(a, b).metrics
    assert -1.0 <= found["cosine"] <= 1.0
    assert 0.0 <= found["p99_abs"] <= found["max_abs"]
    same = metrics.compare(a, a).metrics
    assert same["max_abs"] == same["rel_l2"] == 0.0 and same["cosine"] == pytest.approx(1.0)

"""What a plan carries besides its seats: toggles, a precision table, the environment."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from frtspec import runtime as rt
from frtspec.runtime import Refusal
from frtspec.runtime.environment import drift
from frtspec.runtime.observation.strata import stratified
from tests.runtime import hosts_small as small

BATCHES = small.token_batches(2)


@pytest.fixture(scope="module")
def held():
    model = small.tiny_decoder()
    with torch.no_grad():
        host = model(BATCHES[0])
    options = {"observations": BATCHES, "scheme": "fp8_static", "rungs": ("emulate",)}
    with rt.build(small.BINDING, model, model, **options) as plan:
        yield model, host, plan


def test_groups_are_switched_by_name(held) -> None:
    model, host, plan = held
    with torch.no_grad():
        treated = model(BATCHES[0])
        assert plan.toggles["decoder_ffn"] and plan.toggles.seats("ffn") == ("ffn[0]", "ffn[1]")
        plan.toggles["ffn"] = False
        assert not plan.toggles["decoder_ffn"] and plan.toggles["qkv_pack"]
        assert not torch.equal(model(BATCHES[0]), treated)
        for name in ("norm_fused", "qkv", "o[0]", "o[1]"):
            plan.toggles[name] = False
        assert torch.equal(model(BATCHES[0]), host)
        plan.toggles["ffn[0]"] = True
        assert plan.toggles["ffn[0]"] and not plan.toggles["ffn"]
        for name in plan.toggles:
            plan.toggles[name] = True
        assert torch.equal(model(BATCHES[0]), treated)
    with pytest.raises(Refusal, match="did you mean 'ffn'"):
        plan.toggles["fnn"] = False


def test_precision_as_two_tables(held) -> None:
    _, _, plan = held
    spec = plan.precision_spec
    point = spec.activation_specs["layers.0.mlp|act_after_mul"]
    assert (point.dtype, point.granularity, point.scheme) == ("fp8_e4m3", "per_tensor", "symmetric")
    assert (point.scale_source, point.calibration_samples) == ("calibration", 2)
    assert point.calibration_percentile == 99.9 and len(point.scale) == 1
    assert point.scale == tuple(spec["ffn[0]"]["points"]["act_after_mul"]["scale"])
    pack = spec.weight_specs["layers.0.mlp|down"]
    assert pack.scale_source == "weights" and pack.dtype == "fp8_e4m3"
    assert spec.source == "calibration" and set(spec.to_json()) == {
        "source",
        "activation_specs",
        "weight_specs",
    }


def test_nothing_quantised_is_nothing_told() -> None:
    model = small.tiny_decoder()
    with rt.build(small.BINDING, model, model, observations=BATCHES, scheme="none") as plan:
        assert plan.precision_spec.activation_specs == {} == plan.precision_spec.weight_specs
        assert plan.precision_spec.source == "none"


def test_an_environment_that_moved_is_told(held) -> None:
    plan = held[2]
    assert plan.environment_drift() == () == drift(plan.receipt["environment"])
    then = copy.deepcopy(plan.receipt["environment"])
    then["packages"]["torch"], then["threads"] = "1.0", then["threads"] + 1
    then["packages"]["gone"] = "3.1"
    assert [row.partition(":")[0] for row in drift(then)] == [
        "packages.gone",
        "packages.torch",
        "threads",
    ]
    assert "packages.gone: 3.1 then, None now" in drift(then)


# ---------------------------------------------------------------- picking samples


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=60),
    st.integers(1, 12),
    st.integers(0, 3),
    st.sets(st.integers(0, 59)),
)
def test_a_pick_is_full_distinct_and_repeats(strata, count, seed, exclude) -> None:
    left = [i for i in range(len(strata)) if i not in exclude]
    if not left:
        with pytest.raises(Refusal, match="samples is left"):
            stratified(strata, count, exclude=exclude, seed=seed)
        return
    found = stratified(strata, count, exclude=exclude, seed=seed)
    assert found == stratified(strata, count, exclude=exclude, seed=seed) == sorted(set(found))
    assert set(found) <= set(left) and len(found) == min(count, len(left))


def test_episodes_are_spread_and_each_from_end_to_end() -> None:
    episodes = [i // 10 for i in range(100)]
    found = stratified(episodes, 8)
    assert len({episodes[i] for i in found}) == 4
    assert all(i % 10 in (0, 9) for i in found)
    assert found != stratified(episodes, 8, seed=1)
    backwards = stratified(episodes, 8, positions=[-(i % 10) for i in range(100)])
    assert backwards == found
    assert len({episodes[i] for i in stratified(episodes, 2)}) == 2


@pytest.mark.parametrize(
    "given_",
    [{"count": 0}, {"positions": [1]}, {"exclude": range(3)}],
    ids=["none", "lengths", "all"],
)
def test_a_pick_that_cannot_be(given_) -> None:
    with pytest.raises(Refusal) as caught:
        stratified([0, 0, 1], **given_)
    assert caught.value.code == "samples.strata"

"""Samples: the three ways in, streamed, bounded, and refused when empty or ambiguous."""

from __future__ import annotations

import itertools

import pytest
import torch

from frtspec.runtime.errors import Refusal
from frtspec.runtime.observation import samples


def endless(pulled: list[int]):
    for number in itertools.count():
        pulled.append(number)
        yield number


def test_one_callable_is_one_sample():
    stream = samples.calibration(lambda: "out")
    assert [thunk() for thunk in stream] == ["out"]


def test_a_list_of_thunks_is_one_sample_each():
    stream = samples.calibration([lambda: 1, lambda: 2, lambda: 3])
    assert [thunk() for thunk in stream] == [1, 2, 3]


def test_observations_go_through_forward():
    stream = samples.calibration(lambda obs: obs * 10, range(3))
    assert [thunk() for thunk in stream] == [0, 10, 20]


def test_max_samples_never_pulls_one_item_too_many():
    pulled: list[int] = []
    stream = samples.calibration(lambda obs: obs, endless(pulled), max_samples=3)
    assert [thunk() for thunk in stream] == [0, 1, 2]
    assert pulled == [0, 1, 2]


def test_streaming_pulls_one_at_a_time():
    pulled: list[int] = []
    stream = samples.calibration(lambda obs: obs, endless(pulled), max_samples=10)
    assert pulled == [0], "only the first sample is needed before the stream starts"
    for seen, _ in enumerate(stream):
        assert len(pulled) == seen + 1


def test_max_samples_bounds_thunks_too():
    assert len(list(samples.calibration([lambda: 1] * 9, max_samples=4))) == 4


def test_the_first_sample_can_run_again():
    stream = samples.calibration(lambda obs: obs, iter(range(5)))
    assert stream.first() == 0
    assert [thunk() for thunk in stream] == [0, 1, 2, 3, 4]
    assert stream.first() == 0


@pytest.mark.parametrize("observations", [[], (), iter(()), (x for x in ())])
def test_no_observation_is_refused(observations):
    with pytest.raises(Refusal) as caught:
        samples.calibration(lambda obs: obs, observations)
    assert caught.value.code == "samples.empty"


def test_no_thunk_is_refused():
    with pytest.raises(Refusal, match="forward holds no sample"):
        samples.calibration([])


@pytest.mark.parametrize("single", ["text", b"bytes", {"input_ids": 1}, torch.zeros(2, 3), 7])
def test_one_observation_is_not_a_collection(single):
    with pytest.raises(Refusal) as caught:
        samples.calibration(lambda obs: obs, single)
    assert caught.value.code == "option.observations"
    assert "[item]" in caught.value.fix


@pytest.mark.parametrize("forward", [None, 3, "model", [lambda: 1, 2]])
def test_forward_must_be_callable(forward):
    with pytest.raises(Refusal) as caught:
        samples.calibration(forward)
    assert caught.value.code == "option.forward"


def test_observations_need_a_callable_forward():
    with pytest.raises(Refusal) as caught:
        samples.calibration([lambda: 1], [1, 2])
    assert caught.value.code == "option.forward"


def test_held_out_comes_in_the_same_three_ways():
    def forward(obs):
        return obs + 1

    assert samples.held_out(None, forward, observed=True) is None
    thunks = samples.held_out([1, 2], forward, observed=True)
    assert thunks is not None and [thunk() for thunk in thunks] == [2, 3]
    thunks = samples.held_out(lambda: 9, lambda: 1, observed=False)
    assert thunks is not None and [thunk() for thunk in thunks] == [9]
    thunks = samples.held_out([lambda: 4, lambda: 5], lambda: 1, observed=False)
    assert thunks is not None and [thunk() for thunk in thunks] == [4, 5]


def test_held_out_honours_max_samples_and_refuses_nothing():
    pulled: list[int] = []
    thunks = samples.held_out(endless(pulled), lambda obs: obs, observed=True, max_samples=2)
    assert thunks is not None and len(thunks) == 2 and pulled == [0, 1]
    with pytest.raises(Refusal, match="held_out= holds no sample"):
        samples.held_out([], lambda obs: obs, observed=True)


def test_running_a_sample_records_no_gradient():
    weight = torch.nn.Parameter(torch.ones(2))
    assert not samples.run(lambda: weight * 2).requires_grad


@pytest.mark.parametrize(
    ("forward", "observations"),
    [(lambda: 1, [1]), (lambda obs: obs, None), (lambda a, b: a, [1])],
)
def test_a_forward_that_takes_something_else_is_refused_before_it_runs(forward, observations):
    with pytest.raises(Refusal) as caught:
        samples.calibration(forward, observations)
    assert caught.value.code == "option.forward"
    assert "forward(" in caught.value.what and "observations=" in caught.value.fix


@pytest.mark.parametrize("forward", [dict, torch.nn.Identity(), len])
def test_any_callable_that_fits_is_let_through(forward):
    samples.calibration(forward, [torch.ones(1)])

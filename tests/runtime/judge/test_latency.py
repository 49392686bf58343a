"""Latency: the arithmetic proven with injected delays; an A/A run never wins."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frtspec.runtime.gating import latency


class Bench:
    """Two arms on a clock of their own: each call takes what its arm costs, plus noise."""

    def __init__(self, base: float, treated: float, *, noise: float = 0.0, seed: int = 0):
        self.now = 0.0
        self.form = ""
        self.order: list[str] = []
        self.costs = {"base": base, "treated": treated}
        self.drift = 0.0
        self.rng = random.Random(seed)
        self.noise = noise

    def arm(self, name: str) -> latency.Arm:
        def enter() -> None:
            self.form = name
            self.order.append(name)

        def call() -> None:
            assert self.form == name, "the host must be in the form that is timed"
            jitter = 1 + self.noise * self.rng.uniform(-1, 1)
            self.now += (self.costs[name] + self.drift * self.now) * jitter

        return latency.Arm(name, enter, call)

    def measure(self, **options) -> latency.Latency:
        return latency.measure(
            self.arm("base"), self.arm("treated"), clock=lambda: self.now, **options
        )


def test_an_injected_gain_is_a_win_with_its_exact_ratio():
    result = Bench(3e-3, 2e-3).measure(rounds=5, iters=4)
    assert result.verdict == "win"
    assert result.speedup == pytest.approx(1.5)
    assert result.interval == (pytest.approx(1.5), pytest.approx(1.5))
    assert result.base_ms == pytest.approx(3.0) and result.treated_ms == pytest.approx(2.0)
    assert result.base_again_ms == pytest.approx(3.0)
    assert len(result.ratios) == result.rounds == 5 and result.iters == 4


def test_an_injected_loss_is_a_loss():
    assert Bench(2e-3, 3e-3).measure().verdict == "loss"


def test_a_gain_below_the_required_one_is_no_gain():
    result = Bench(1.01e-3, 1e-3).measure(min_speedup=1.02)
    assert result.verdict == "loss" and result.reason.startswith("no gain: 1.010x")


def test_an_interval_that_straddles_is_inconclusive():
    result = Bench(1.03e-3, 1e-3, noise=0.2, seed=3).measure(iters=1, rounds=9)
    assert result.interval is not None
    assert result.interval[0] < 1.02 < result.interval[1]
    assert result.verdict == "inconclusive"


def test_an_a_a_run_never_wins_over_many_seeds_of_heavy_noise():
    """Rounds whose ratios all lie above the required gain by luck do occur among these."""
    lucky = 0
    for seed in range(400):
        result = Bench(1e-3, 1e-3, noise=0.3, seed=seed).measure(rounds=5, iters=1)
        assert result.verdict != "win", seed
        lucky += result.interval[0] >= 1.02
    assert lucky > 3, "the noise is too small to prove anything"


def test_a_gain_that_is_less_than_an_arm_against_itself_is_no_win():
    bench = Bench(1.06e-3, 1e-3)
    legs = 0

    def enter() -> None:
        nonlocal legs
        legs += 1
        bench.form = "treated"
        bench.costs["treated"] = 1e-3 if legs % 2 else 0.9e-3

    treated = latency.Arm("treated", enter, bench.arm("treated").call)
    result = latency.measure(bench.arm("base"), treated, clock=lambda: bench.now)
    assert result.interval[0] > 1.05 and result.self_spread == pytest.approx(0.0773, abs=1e-3)
    assert result.verdict == "win"
    bench.costs["base"] = 1e-3
    result = latency.measure(bench.arm("base"), treated, clock=lambda: bench.now)
    assert result.interval[0] > 1.05 and result.verdict == "inconclusive"
    assert "differs from itself" in result.reason


def test_a_win_over_the_host_that_loses_to_another_baseline_is_a_loss():
    bench = Bench(3e-3, 2e-3)
    bench.costs["torch_compile"] = 1.5e-3
    others = {"torch_compile": bench.arm("torch_compile"), "vendor": "there is none"}
    result = bench.measure(baselines=others, form="compiled")
    assert result.verdict == "loss" and "0.750x" in result.reason
    assert result.reason.startswith("no gain over the best baseline")
    (other,) = result.against
    assert other.name == "torch_compile" and other.ms == pytest.approx(1.5)
    assert other.speedup == pytest.approx(0.75)
    assert result.baselines == {
        "base": "timed",
        "vendor": "baseline_unavailable: there is none",
        "torch_compile": "timed",
    }
    assert result.form == "compiled"


def test_a_baseline_that_the_treated_arm_beats_leaves_the_win():
    bench = Bench(3e-3, 1e-3)
    bench.costs["torch_compile"] = 2e-3
    result = bench.measure(baselines={"torch_compile": bench.arm("torch_compile")})
    assert result.verdict == "win" and result.against[0].speedup == pytest.approx(2.0)


def test_a_baseline_that_raises_is_unavailable_and_decides_nothing():
    def broken() -> None:
        raise RuntimeError("no compiler here")

    bench = Bench(3e-3, 2e-3)
    result = bench.measure(baselines={"torch_compile": latency.Arm("c", lambda: None, broken)})
    assert result.verdict == "win" and result.against == ()
    assert result.baselines["torch_compile"] == (
        "baseline_unavailable: raised RuntimeError: no compiler here"
    )


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.0, 0.3), st.floats(0.0, 0.02))
def test_the_same_arm_twice_never_wins(seed, noise, drift):
    bench = Bench(1e-3, 1e-3, noise=noise, seed=seed)
    bench.drift = drift
    assert bench.measure(rounds=5, iters=10).verdict in ("loss", "inconclusive")


def test_linear_drift_cancels_inside_a_round():
    bench = Bench(1e-3, 1e-3)
    bench.drift = 1e-3
    result = bench.measure(rounds=5, iters=10)
    assert result.speedup == pytest.approx(1.0, abs=5e-4)


def test_rounds_are_mirrored_and_alternate():
    bench = Bench(1e-3, 1e-3)
    bench.measure(rounds=2, iters=1)
    assert bench.order[0] == "base", "one call shows that there is a baseline"
    first, second = bench.order[1:5], bench.order[5:9]
    assert first[0] == first[3] != first[1] == first[2]
    assert second == [first[1], first[0], first[0], first[1]]
    assert bench.order[9:] == ["base", "base"], "the baseline is timed again at the end"


def test_a_baseline_that_got_faster_takes_the_win_away():
    bench = Bench(3e-3, 2e-3)
    treated = bench.arm("treated")
    base = bench.arm("base")
    legs = 0

    def enter() -> None:
        nonlocal legs
        legs += 1
        base.enter()
        if legs > 11:
            bench.costs["base"] = 1e-3

    slowed = latency.Arm("base", enter, base.call)
    result = latency.measure(slowed, treated, rounds=5, iters=2, clock=lambda: bench.now)
    assert result.verdict == "inconclusive" and "timed again" in result.reason


def test_too_few_rounds_give_no_verdict():
    assert Bench(3e-3, 1e-3).measure(rounds=2).verdict == "inconclusive"


def test_the_interval_is_reproducible():
    ratios = [1.0, 1.1, 1.2, 0.9, 1.05]
    assert latency.interval(ratios, seed=5) == latency.interval(ratios, seed=5)
    low, high = latency.interval(ratios)
    assert 0.9 <= low <= 1.05 <= high <= 1.2


def test_an_arm_that_raises_passes_its_exception_on():
    def broken() -> None:
        raise RuntimeError("kernel")

    with pytest.raises(RuntimeError, match="kernel"):
        latency.measure(
            latency.Arm("base", lambda: None, lambda: None),
            latency.Arm("treated", lambda: None, broken),
        )


def test_a_base_arm_that_raises_is_no_baseline():
    def consumed() -> None:
        raise RuntimeError("weights were consumed")

    result = latency.measure(
        latency.Arm("host", lambda: None, consumed),
        latency.Arm("attached", lambda: None, lambda: None),
        baselines={"torch_compile": latency.Arm("torch_compile", lambda: None, lambda: None)},
    )
    assert result.verdict == "baseline_unavailable" and "weights were consumed" in result.reason
    assert result.baselines["torch_compile"].startswith("baseline_unavailable")


@pytest.mark.parametrize(
    "device, rungs, option, verdict",
    [
        ("cpu", ("torch",), "auto", "not_applicable"),
        ("cpu", ("torch",), "skip", "skipped"),
        ("cuda", ("torch", "emulate"), "auto", "not_applicable"),
        ("cuda", ("hub",), "auto", None),
    ],
)
def test_where_speed_cannot_be_judged(device, rungs, option, verdict):
    result = latency.unjudgeable(torch.device(device), rungs, option)
    assert (result.verdict if result else None) == verdict
    if result:
        assert result.speedup is None and not result.timed and result.reason


def test_a_clock_that_stands_still_shows_no_gain():
    idle = latency.Arm("base", lambda: None, lambda: None)
    also = latency.Arm("treated", lambda: None, lambda: None)
    assert latency.measure(idle, also, clock=lambda: 0.0).verdict == "loss"

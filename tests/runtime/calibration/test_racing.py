"""Racing rungs: the arithmetic by injected time, what is recorded, and that nothing activates."""

from __future__ import annotations

import dataclasses
import json
import types

import pytest

from frtspec import runtime as rt
from frtspec.runtime.gating import latency
from frtspec.runtime.rungs import ladder, racing
from frtspec.runtime.rungs.rungcache import RungCache
from tests.runtime import hosts_small as small
from tests.runtime.calibration.test_rungcache import LOCAL, binding


class Time:
    """A clock that only calls move."""

    now = 0.0

    def spend(self, seconds):
        def call():
            self.now += seconds

        return call

    def compare(self, **costs):
        arms = {name: self.spend(seconds) for name, seconds in costs.items()}
        options = {"rounds": 5, "iters": 2, "min_speedup": 1.02}
        return racing.compare(arms, clock=lambda: self.now, **options)


@pytest.mark.parametrize(
    ("costs", "winner"),
    [
        ({"a": 2e-3, "b": 1e-3}, "b"),
        ({"a": 1e-3, "b": 2e-3}, "a"),
        ({"a": 1e-3, "b": 0.99e-3}, "a"),
        ({"a": 3e-3, "b": 2e-3, "c": 1e-3}, "c"),
        ({"a": 3e-3, "b": 1e-3, "c": 2e-3}, "b"),
    ],
)
def test_the_rung_that_is_surely_faster_wins_else_the_first_stays(costs, winner):
    found, times, reason = Time().compare(**costs)
    assert found == winner, reason
    assert times == {name: pytest.approx(1e3 * cost) for name, cost in costs.items()}


class Slow(small.LinearFp8Static):
    """Runs on the torch rung in twice the time of the other."""

    clock = Time()
    SPEC = dataclasses.replace(
        small.LinearFp8Static.SPEC,
        rungs=(
            rt.RungSpec("torch", run="run_slow"),
            rt.RungSpec("local", run="run_fast", package="some/kernels", version=1),
            rt.RungSpec("emulate", run="run_emulate"),
        ),
    )

    def run_slow(self, x):
        self.clock.now += 2e-3
        return self.run_emulate(x)

    def run_fast(self, x):
        self.clock.now += 1e-3
        return self.run_emulate(x)


@pytest.fixture
def slow(monkeypatch):
    loaded = types.SimpleNamespace(module=None, origin="pretended")
    monkeypatch.setattr(ladder.kernels, "load", lambda *_: loaded)
    monkeypatch.setattr(latency, "device_clock", lambda _: lambda: Slow.clock.now)
    found = binding()
    routes = tuple(
        dataclasses.replace(r, impl=Slow) if r.structure == "linear_proj" else r
        for r in small.FP8_STATIC.routes
    )
    scheme = dataclasses.replace(small.FP8_STATIC, routes=routes)
    return dataclasses.replace(found, schemes={"fp8_static": scheme, "none": small.NONE})


def test_a_race_records_the_winner_and_the_next_attach_tries_it_first(slow, tmp_path):
    path, model = tmp_path / "rungs.json", small.tiny_decoder()
    modules = {name: id(module) for name, module in model.named_modules()}
    asked = {
        "scheme": "fp8_static",
        "structures": ("linear_proj",),
        "observations": small.token_batches(2),
        "decisions": path,
    }
    races = racing.race(slow, model, model, **asked)
    assert modules == {name: id(module) for name, module in model.named_modules()}
    won = [r for r in races if r.winner]
    assert [(r.seat, r.winner) for r in won] == [("o[0]", LOCAL)], "seats of one shape race once"
    assert won[0].times_ms == {"torch": pytest.approx(2.0), LOCAL: pytest.approx(1.0)}
    text = json.loads(path.read_text())
    assert [row["winner"] for row in text["decisions"].values()] == [LOCAL]
    plan = rt.attach(slow, model, model, latency="skip", **asked)
    trail = plan.seat("o[1]").built.trail
    assert trail[0].what == LOCAL and "probed at" in trail[0].reason
    assert plan.seat("o[1]").gate("parity").verdict == "pass", "it is gated like any other"


def test_a_rung_alone_is_no_race_and_no_file_no_record(slow, tmp_path):
    model, path = small.tiny_decoder(), tmp_path / "rungs.json"
    asked = {"scheme": "fp8_static", "structures": ("linear_proj",), "rungs": ("torch",)}
    asked["observations"] = small.token_batches(2)
    races = racing.race(slow, model, model, decisions=path, **asked)
    assert not path.exists() and "torch alone is admitted" in races[0].reason
    with pytest.raises(rt.Refusal) as raised:
        racing.race(slow, model, model, decisions=None, **asked)
    assert raised.value.code == "option.decisions"


def test_a_file_that_the_schema_does_not_allow_is_kept_aside_and_told(slow, tmp_path):
    from frtspec.runtime.receipt import digest

    path = tmp_path / "rungs.json"
    body = {"schema": "frtspec.rungs/1", "decisions": {}, "more": 1}
    path.write_text(json.dumps({**body, "digest": digest(body)}))
    (problem,) = RungCache(path).problems
    assert "more" in problem and (tmp_path / "rungs.json.corrupt").exists()

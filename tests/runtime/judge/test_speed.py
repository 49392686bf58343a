"""attach where speed can be judged: a host whose calls take injected time."""

from __future__ import annotations

import dataclasses

import pytest

from frtspec import runtime as rt
from frtspec.runtime import receipt
from frtspec.runtime.gating import arms, baselines, latency
from frtspec.runtime.options import Options
from frtspec.runtime.seats.seatmodule import SeatModule
from tests.runtime import hosts_small as small

BASE = 1.0


class TimedHost:
    """A small host on a clock of its own: each call takes ``cost(active structures)``."""

    def __init__(self, monkeypatch, cost):
        self.model = small.tiny_decoder()
        self.now, self.cost, self.compiled_cost = 0.0, cost, 2 * BASE
        monkeypatch.setattr(latency, "unjudgeable", self.unjudgeable)
        monkeypatch.setattr(latency, "device_clock", lambda device: lambda: self.now)
        monkeypatch.setattr(arms.Runner, "_compile", self.compiled)

    @staticmethod
    def unjudgeable(device, rungs, option):
        return latency.Latency("skipped", "asked") if option == "skip" else None

    def compiled(self, thunk):
        """Stands for the host under torch.compile: as fast as ``compiled_cost`` says."""
        start = self.now
        output = thunk()
        self.now = start + self.compiled_cost
        return output

    def forward(self, ids):
        active = {
            m._frt.counter.seat.partition("[")[0]
            for m in self.model.modules()
            if isinstance(m, SeatModule)
        }
        self.now += self.cost(active)
        return self.model(ids)

    def attach(self, **options):
        binding = dataclasses.replace(
            small.BINDING,
            seats=lambda model: [
                dataclasses.replace(s, structure=dataclasses.replace(s.structure, rules=()))
                for s in small.tiny_seats(model)
            ],
        )
        options = {"scheme": "fp8_static", "rungs": ("torch",), "iters": 2, **options}
        return rt.attach(
            options.pop("binding", binding),
            self.model,
            self.forward,
            observations=small.token_batches(3),
            **options,
        )


def test_what_gains_binds_and_what_loses_is_kept(monkeypatch):
    gain = {"ffn": -0.3, "o": 0.2, "qkv": -0.005, "norm": -0.2}
    host = TimedHost(monkeypatch, lambda active: BASE + sum(gain[name] for name in active))
    plan = host.attach()
    assert {name.partition("[")[0] for name in plan.bound} == {"ffn", "norm"}
    assert plan.unit("decoder_ffn").latency.verdict == "win"
    assert plan.unit("decoder_ffn").latency.speedup == pytest.approx(1 / 0.7)
    assert plan.unit("linear_proj").latency.verdict == "loss"
    assert plan.seat("o[0]").state == "kept" and plan.seat("o[0]").code == "latency"
    assert plan.seat("qkv[0]").reason.startswith("no gain: 1.005x")
    assert plan.unions[-1].latency.speedup == pytest.approx(2.0)
    assert receipt.verify(plan.receipt)


def test_a_union_that_loses_drops_units_until_the_rest_gains(monkeypatch):
    def cost(active):
        return BASE - 0.1 * len(active) if len(active) < 3 else BASE + 1

    plan = TimedHost(monkeypatch, cost).attach(
        structures=("decoder_ffn", "linear_proj", "qkv_pack")
    )
    assert [u.verdict for u in plan.unions] == ["kept", "accepted"]
    assert len({name.partition("[")[0] for name in plan.bound}) == 2
    dropped = [r for r in plan.seats if r.code == "latency"]
    assert dropped and all(r.reason.startswith("together with") for r in dropped)
    worst = min(plan.units, key=lambda u: u.host.metrics["cosine"])
    assert {r.seat.structure.name for r in dropped} == {worst.name}


@pytest.mark.filterwarnings("ignore::frtspec.runtime.NothingBoundWarning")
def test_an_a_a_run_binds_nothing(monkeypatch):
    plan = TimedHost(monkeypatch, lambda active: BASE).attach()
    assert not plan.bound and {u.latency.verdict for u in plan.units} == {"loss"}


def test_each_baseline_that_a_spec_names_runs_or_says_why_not(monkeypatch):
    plan = TimedHost(monkeypatch, lambda active: BASE - 0.1 * len(active)).attach()
    speed = plan.unit("decoder_ffn").latency
    assert speed.verdict == "win" and speed.form == "eager"
    assert speed.baselines["host"] == speed.baselines["torch_compile"] == "timed"
    by_name = {other.name: other for other in speed.against}
    assert by_name["torch_compile"].speedup == pytest.approx(2 / 0.9)
    assert receipt.verify(plan.receipt)


@pytest.mark.parametrize("asked", ["none", ("unfused_chain",)])
def test_a_baseline_that_is_not_asked_for_never_runs_and_is_told(monkeypatch, asked):
    host = TimedHost(monkeypatch, lambda active: BASE - 0.1 * len(active))
    host.compiled_cost = 0.1  # would beat the form
    plan = host.attach(structures=("decoder_ffn",), baselines=asked)
    speed = plan.unit("decoder_ffn").latency
    assert speed.verdict == "win" and speed.against == ()
    why = speed.baselines["torch_compile"]
    assert why.startswith("baseline_unavailable: not asked for: baselines= names ")
    assert receipt.verify(plan.receipt)


@pytest.mark.parametrize("asked", ["torch_compil", ("none", "vendor"), ()])
def test_a_baseline_that_is_no_word_is_refused_by_name(asked):
    with pytest.raises(rt.Refusal) as raised:
        Options.of(baselines=asked)
    assert raised.value.code == "option.baselines"


def test_every_word_of_a_latency_gate_has_an_arm_on_a_host_or_says_why_not():
    found = {name: baselines.on_host(name, lambda form: form) for name in baselines.BASELINES}
    assert found == {
        "torch_compile": "compiled",
        "unfused_chain": "eager",
        "host_chain": "eager",
        "vendor": "no library of the device's vendor declares this host",
    }


@pytest.mark.filterwarnings("ignore::frtspec.runtime.NothingBoundWarning")
def test_a_gain_over_the_eager_host_that_compiling_it_beats_is_no_gain(monkeypatch):
    host = TimedHost(monkeypatch, lambda active: BASE - 0.1 * len(active))
    host.compiled_cost = 0.5
    plan = host.attach(structures=("decoder_ffn",))
    assert not plan.bound
    assert plan.seat("ffn[0]").reason.startswith("no gain over the best baseline: 1.111x")
    assert "against torch_compile" in plan.seat("ffn[0]").reason


def test_profit_rules_are_enforced_where_speed_is_judged(monkeypatch):
    host = TimedHost(monkeypatch, lambda active: BASE - 0.1 * len(active))
    plan = host.attach(binding=small.BINDING)
    record = plan.seat("ffn[0]")
    assert record.state == "kept" and record.code == "qualify"
    assert "D*F >= 1048576 does not hold: D*F = " in record.reason
    assert {name.partition("[")[0] for name in plan.bound} == {"qkv", "norm"}


def test_skip_measures_nothing(monkeypatch):
    host = TimedHost(monkeypatch, lambda active: BASE + 1.0 * len(active))
    plan = host.attach(latency="skip")
    assert len(plan.bound) == 8 and {u.latency.timed for u in plan.units} == {False}


def test_after_timing_the_attached_form_is_what_runs(monkeypatch):
    host = TimedHost(monkeypatch, lambda active: BASE - 0.1 * len(active))
    plan = host.attach()
    assert all(plan.attachment.seats) and len(plan.attachment.seats) == len(plan.bound)
    active = [m for m in host.model.modules() if isinstance(m, SeatModule)]
    assert active
    plan.detach()
    assert not [m for m in host.model.modules() if isinstance(m, SeatModule)]

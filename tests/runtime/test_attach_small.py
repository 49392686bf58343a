"""attach and build from end to end on a small host: outcomes, isolation, rollback."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest
import torch
from torch import nn

from frtspec import runtime as rt
from frtspec.runtime import receipt
from frtspec.runtime.calibration import measuring
from frtspec.runtime.eligibility import selecting
from frtspec.runtime.gating import perseat
from frtspec.runtime.hosts import host as hosts
from frtspec.runtime.numerics import FP8_MAX
from frtspec.runtime.rungs import ladder
from frtspec.runtime.seats import root, swap
from tests.runtime import hosts_small as small

BATCHES = small.token_batches(4)
HELD = small.token_batches(2, seed=9)


def attach(model, binding=small.BINDING, **options):
    """attach with defaults that bind on a CPU: FP8, the emulate rung asked for by name."""
    options = {
        "scheme": "fp8_static",
        "rungs": ("emulate",),
        "observations": BATCHES,
        "held_out": HELD,
        **options,
    }
    return rt.attach(binding, model, model, **options)


def host_state(model):
    """Everything that a detached host must have back: modules, hooks, weights, bits."""
    modules = {
        name: (id(m), type(m), len(m._forward_hooks), len(m._forward_pre_hooks))
        for name, m in model.named_modules()
    }
    weights = {
        name: (id(p), p.data_ptr(), p._version, p.detach().clone())
        for name, p in model.named_parameters()
    }
    return modules, weights, {k for k in model.__dict__ if not k.startswith("__")}


def assert_untouched(model, before):
    modules, weights, attributes = host_state(model)
    assert modules == before[0]
    assert attributes == before[2]
    assert weights.keys() == before[1].keys()
    for name, (identity, pointer, version, bits) in weights.items():
        old = before[1][name]
        assert (identity, pointer, version) == old[:3], name
        assert torch.equal(bits, old[3]), name


def with_scheme(impls=None, **changes):
    """The binding with other impls for some structures, or other schemes."""
    routes = tuple(
        dataclasses.replace(route, impl=(impls or {}).get(route.structure, route.impl))
        for route in small.FP8_STATIC.routes
    )
    scheme = dataclasses.replace(small.FP8_STATIC, routes=routes)
    schemes = {"fp8_static": scheme, "none": small.NONE}
    return dataclasses.replace(small.BINDING, schemes=schemes, **changes)


def with_seats(change):
    """The binding with ``change(seat)`` in place of each seat."""
    return dataclasses.replace(
        small.BINDING, seats=lambda model: [change(seat) for seat in small.tiny_seats(model)]
    )


# ---------------------------------------------------------------- the whole way


def test_a_host_is_attached_judged_reported_and_given_back():
    model = small.tiny_decoder()
    before, logits = host_state(model), model(HELD[0])
    plan = attach(model)
    names = [seat.name for seat in small.tiny_seats(model)]
    assert sorted(sum((plan.names(state) for state in plan.counts), ())) == sorted(names)
    assert plan.bound and plan.active, plan.explain()
    with torch.no_grad():
        treated = model(HELD[0])
    assert not torch.equal(treated, logits)
    ledger = plan.ledger()
    assert set(ledger) == set(plan.bound)
    assert all(row.calls > 0 and row.fallbacks == 0 for row in ledger.values())
    assert receipt.verify(plan.receipt)
    plan.detach()
    plan.detach()
    assert not plan.active
    assert_untouched(model, before)
    assert torch.equal(model(HELD[0]), logits)


def test_the_ledger_starts_when_attach_returns():
    plan = attach(small.tiny_decoder())
    assert plan.ledger() and all(row.calls == 0 for row in plan.ledger().values())


def test_scheme_none_binds_nothing_and_still_gives_a_record():
    model = small.tiny_decoder()
    before = host_state(model)
    plan = attach(model, scheme="none", rungs=None)
    assert plan.counts == {"bound": 0, "kept": 8, "refused": 0, "failed": 0}
    assert not plan.active and plan.ledger() == {} and receipt.verify(plan.receipt)
    assert plan.receipt["verdict"]["summary"] == "nothing attached"
    assert "quantisation is off" in plan.explain()
    assert "fp8" not in str(plan.precision_spec)
    assert_untouched(model, before)


def test_auto_is_none_on_a_cpu():
    plan = attach(small.tiny_decoder(), scheme="auto", rungs=None)
    assert plan.scheme.name == "none" and not plan.bound


def test_structures_selects_and_the_others_are_kept_by_name():
    plan = attach(small.tiny_decoder(), structures=("decoder_ffn",))
    assert all(name.startswith("ffn") for name in plan.bound) and plan.bound
    kept = [r for r in plan.seats if r.state == "kept"]
    assert len(kept) == 6 and {r.code for r in kept} == {"structures"}


def test_precision_says_what_really_runs():
    plan = attach(small.tiny_decoder(), structures=("decoder_ffn",))
    ffn = plan.precision_spec["ffn[0]"]
    point = ffn["points"]["act_after_mul"]
    assert point["dtype"] == "fp8_e4m3" and point["granularity"] == "per tensor"
    assert point["method"] == "static"
    measured = {"statistic": "amax per tensor", "samples": len(BATCHES), "percentile": 99.9}
    assert point["measured"] == [measured]
    amax = plan.seat("ffn[0]").gate("saturation").also["act_after_mul"]["calibrated_amax"]
    assert point["scale"] == [pytest.approx(amax / FP8_MAX)]
    assert ffn["packs"]["gate_up"]["dtype"] == "fp8_e4m3"
    kept = plan.precision_spec["o[0]"]
    assert kept["packs"] == {} and kept["points"]["x"]["method"] == "host"
    assert kept["points"]["x"]["dtype"] == "f32"


def test_a_plan_holds_no_packs_of_seats_that_stay_the_hosts():
    plan = attach(small.tiny_decoder(), rungs=None)
    assert not plan.bound and all(record.bound is None for record in plan.seats)
    assert plan.seat("ffn[0]").form == "fp8_static on torch"
    seat = next(s for s in plan.receipt["plan"]["seats"] if s["name"] == "ffn[0]")
    assert seat["rung"] == "torch" and seat["bytes_added"] is None and len(seat["trail"]) == 2


def test_every_bound_seat_went_through_every_gate():
    plan = attach(small.tiny_decoder())
    for name in plan.bound:
        verdicts = {g.gate: g.verdict for g in plan.seat(name).gates}
        assert set(verdicts) == {"reference", "saturation", "parity", "boundary"}
        assert verdicts["reference"] == verdicts["boundary"] == "pass"
        assert verdicts["parity"] == "not_applicable"


# ---------------------------------------------------------------- samples


def test_an_endless_stream_is_pulled_only_as_far_as_asked():
    pulled = []

    def endless():
        for number in itertools.count():
            pulled.append(number)
            yield small.token_batches(1, seed=number)[0]

    plan = attach(small.tiny_decoder(), observations=endless(), max_samples=3, held_out=None)
    assert pulled == [0, 1, 2] and plan.calibration.samples == 3


def test_without_held_out_samples_the_figures_are_a_fit_residual():
    plan = attach(small.tiny_decoder(), held_out=None)
    assert plan.calibration.label == "fit residual" and plan.calibration.judged == len(BATCHES)
    assert plan.units[0].host.label == "fit residual" and "fit residual" in plan.explain()
    plan = attach(small.tiny_decoder())
    assert plan.units[0].host.label == "held-out" and plan.calibration.judged == len(HELD)


@pytest.mark.parametrize("form", ["callable", "thunks"])
def test_the_other_ways_in(form):
    model = small.tiny_decoder()
    forward = (
        (lambda: model(BATCHES[0]))
        if form == "callable"
        else [lambda ids=ids: model(ids) for ids in BATCHES]
    )
    plan = rt.attach(small.BINDING, model, forward, scheme="fp8_static", rungs=("emulate",))
    assert plan.bound and plan.calibration.samples == (1 if form == "callable" else 4)


# ---------------------------------------------------------------- refused as a whole


@pytest.mark.parametrize(
    "options, code",
    [
        ({"scheme": "fp8_statc"}, "option.scheme"),
        ({"structures": ("decoder_fnn",)}, "option.structures"),
        ({"structures": ()}, "option.structures"),
        ({"rungs": ("emulation",)}, "option.rungs"),
        ({"percentile": 0}, "option.percentile"),
        ({"percentile": math.nan}, "option.percentile"),
        ({"percentile": 101}, "option.percentile"),
        ({"max_samples": 0}, "option.max_samples"),
        ({"floors": {"cosin": 0.9}}, "option.floors"),
        ({"floors": {"cosine": math.nan}}, "option.floors"),
        ({"scheme": None}, "option.scheme"),
        ({"structures": 5}, "option.structures"),
        ({"rungs": 5}, "option.rungs"),
        ({"floors": 0.9}, "option.floors"),
        ({"min_speedup": -1}, "option.min_speedup"),
        ({"rounds": 0}, "option.rounds"),
        ({"iters": 2.5}, "option.iters"),
        ({"on_guard_fail": "ignore"}, "option.on_guard_fail"),
        ({"latency": "never"}, "option.latency"),
        ({"strict": "no"}, "option.strict"),
        ({"observations": []}, "samples.empty"),
        ({"held_out": []}, "samples.empty"),
        ({"observations": BATCHES[0]}, "option.observations"),
    ],
)
def test_a_bad_option_is_refused_before_anything_runs(options, code):
    model = small.tiny_decoder()
    before = host_state(model)
    ran = []
    handle = model.register_forward_pre_hook(lambda *_: ran.append(1))
    with pytest.raises(rt.Refusal) as caught:
        attach(model, **options)
    handle.remove()
    assert caught.value.code == code and caught.value.fix and not ran
    assert_untouched(model, before)


def test_near_misses_are_suggested():
    with pytest.raises(rt.Refusal, match="did you mean 'fp8_static'"):
        attach(small.tiny_decoder(), scheme="fp8_statc")
    with pytest.raises(rt.Refusal, match="did you mean 'cosine'"):
        attach(small.tiny_decoder(), floors={"cosin": 0.9})


def test_a_model_in_training_mode_is_refused():
    model = small.tiny_decoder()
    model.layers[1].mlp.dropout.train()
    with pytest.raises(rt.Refusal) as caught:
        attach(model)
    assert caught.value.code == "host.training" and "layers.1.mlp.dropout" in caught.value.what


def test_another_class_is_one_clear_refusal():
    model = nn.Linear(2, 2).eval()
    with pytest.raises(rt.Refusal) as caught:
        attach(model)
    assert caught.value.code == "host.class" and "Linear" in str(caught.value)


def test_another_version_of_the_host_is_refused():
    binding = dataclasses.replace(
        small.BINDING, hosts=(rt.Host("torch", ">=999", ("TinyDecoder",)),)
    )
    with pytest.raises(rt.Refusal) as caught:
        attach(small.tiny_decoder(), binding)
    assert caught.value.code == "host.version"


def test_generated_code_of_another_abi_is_refused():
    with pytest.raises(rt.Refusal) as caught:
        rt.check_abi(rt.RUNTIME_ABI + 1, "flashrt_gen.qwen3")
    assert caught.value.code == "host.abi"


def test_a_host_that_computes_nan_is_refused():
    model = small.tiny_decoder()
    with torch.no_grad():
        model.lm_head.weight[0, 0] = math.nan
    with pytest.raises(rt.Refusal) as caught:
        attach(model)
    assert caught.value.code == "host.nonfinite" and "NaN" in caught.value.what


class Noisy(small.TinyDecoder):
    level = 0.0

    def forward(self, input_ids):
        out = super().forward(input_ids)
        return out + self.level * torch.randn_like(out)


def noisy(level):
    model = small.tiny_decoder()
    model.__class__ = Noisy
    model.level = level
    return model


def test_a_host_that_does_not_repeat_itself_is_refused():
    with pytest.raises(rt.Refusal) as caught:
        attach(noisy(1.0))
    assert caught.value.code == "host.unrepeatable" and "seed" in caught.value.fix


def test_the_hosts_own_noise_is_measured_and_reported():
    plan = attach(noisy(1e-5))
    assert plan.noise is not None and not plan.noise.bit_equal
    assert 0.999 < plan.noise.metrics["cosine"] < 1.0
    assert "differs from itself" in plan.explain()
    assert attach(small.tiny_decoder()).noise.bit_equal


# ---------------------------------------------------------------- seats refused


def test_a_wrong_variant_is_refused_by_the_reference():
    def wrong(seat):
        if seat.name != "ffn[1]":
            return seat
        return dataclasses.replace(seat, variants={**seat.variants, "activation": "gelu"})

    plan = attach(small.tiny_decoder(), with_seats(wrong))
    record = plan.seat("ffn[1]")
    assert record.state == "refused" and record.code == "boundary.reference_mismatch"
    assert "ffn[0]" in plan.bound


def test_a_config_without_a_variant_is_refused_with_the_known_ones():
    plan = attach(small.tiny_decoder(hidden_act="relu"))
    record = plan.seat("ffn[0]")
    assert record.state == "refused" and record.code == "host.variant"
    assert "'relu'" in record.reason and "'silu'" in record.reason


def outlier_host():
    """Only token 5 uses one channel, and a norm's weight makes it peak there."""
    model = small.tiny_decoder()
    with torch.no_grad():
        model.embed_tokens.weight[:, 3] = 0
        model.embed_tokens.weight[5] = 0
        model.embed_tokens.weight[5, 3] = 10
        for layer in model.layers:
            layer.self_attn.o_proj.weight.mul_(0.01)
            layer.post_attention_layernorm.weight[3] = 4
    return model


def test_a_calibration_that_missed_a_kind_of_token_is_refused_with_both_amax():
    calibration = [torch.where(ids == 5, 6, ids) for ids in BATCHES]
    seen = [ids.clone() for ids in HELD]
    seen[0][0, 0] = 5
    plan = attach(
        outlier_host(), observations=calibration, held_out=seen, structures=("decoder_ffn",)
    )
    record = plan.seat("ffn[0]")
    assert record.state == "refused" and record.code == "calibration.saturated"
    gate = record.gate("saturation")
    assert gate.metrics["x_after_norm"] > 1.8
    for figure in gate.also["x_after_norm"].values():
        assert f"{figure:.6g}" in record.reason
    seen_too = attach(
        outlier_host(),
        observations=[*calibration, seen[0]],
        structures=("decoder_ffn",),
        held_out=seen,
    )
    assert seen_too.seat("ffn[0]").code != "calibration.saturated"


def test_build_binds_what_attach_would_refuse_and_says_that_nothing_judged():
    model = outlier_host()
    plan = rt.build(
        small.BINDING, model, model, scheme="fp8_static", observations=BATCHES, rungs=("emulate",)
    )
    assert len(plan.bound) == 8 and not plan.units
    assert "bound without judging" in plan.explain()
    assert plan.receipt["plan"]["door"] == "build" and receipt.verify(plan.receipt)
    with torch.no_grad():
        assert model(HELD[0]).isfinite().all()
    plan.detach()


class NanFfn(small.FfnFp8Static):
    def run_emulate(self, x_after_norm):
        return torch.full_like(x_after_norm, math.nan)


def test_a_kernel_that_gives_nan_never_binds():
    plan = attach(small.tiny_decoder(), with_scheme({"decoder_ffn": NanFfn}))
    record = plan.seat("ffn[0]")
    assert record.state == "refused" and record.code == "rung.none"
    assert [row.code for row in record.refusal.trail][-1] == "rung.not_finite"
    assert not any(name.startswith("ffn") for name in plan.bound)


def inference(model):
    """A forward in inference mode, which no gate but the host's runs in."""

    def forward(ids):
        with torch.inference_mode():
            return model(ids)

    return forward


class LateNan(small.FfnFp8Static):
    """Right wherever a seat is judged by itself; NaN once it stands in the host."""

    def run_emulate(self, x_after_norm):
        out = super().run_emulate(x_after_norm)
        return out * math.nan if torch.is_inference_mode_enabled() else out


def test_nan_that_only_the_host_shows_is_refused_too():
    model = small.tiny_decoder()
    plan = rt.attach(
        with_scheme({"decoder_ffn": LateNan}),
        model,
        inference(model),
        scheme="fp8_static",
        rungs=("emulate",),
        observations=BATCHES,
    )
    assert {plan.seat(f"ffn[{i}]").code for i in range(2)} == {"gate.host"}
    assert plan.unit("decoder_ffn").host.verdict == "failed"
    assert plan.unit("decoder_ffn").host.metrics == {} and "NaN" in plan.seat("ffn[0]").reason


def test_floors_are_hard():
    plan = attach(small.tiny_decoder(), floors={"cosine": 1.0})
    assert not plan.bound and {u.host.verdict for u in plan.units} == {"fail"}
    assert {r.code for r in plan.seats if r.state == "refused"} >= {"gate.host"}


def test_a_union_that_misses_a_floor_backs_off_to_what_holds():
    alone = attach(small.tiny_decoder())
    assert len(alone.units) > 1 and alone.unions[-1].verdict == "accepted"
    floor = (
        alone.unions[0].host.metrics["cosine"] + min(u.host.metrics["cosine"] for u in alone.units)
    ) / 2
    plan = attach(small.tiny_decoder(), floors={"cosine": floor})
    assert plan.unions[0].verdict == "refused" and plan.bound
    dropped = [r for r in plan.seats if r.code == "gate.union"]
    worst = min(alone.units, key=lambda u: u.host.metrics["cosine"])
    assert {r.seat.structure.name for r in dropped} >= {worst.name}
    assert all(r.reason.startswith("together with") for r in dropped)


def test_a_seat_that_falls_back_while_judged_is_refused_and_the_others_stay():
    model = small.tiny_decoder()

    def forward(ids):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=ids is HELD[0]):
            return model(ids)

    plan = rt.attach(
        small.BINDING,
        model,
        forward,
        scheme="fp8_static",
        rungs=("emulate",),
        observations=BATCHES,
        held_out=HELD,
    )
    codes = {record.code for record in plan.seats if record.state == "refused"}
    assert "seat.fell_back" in codes
    assert all("host's module in" in r.reason for r in plan.seats if r.code == "seat.fell_back")


def test_a_guard_that_raises_refuses_its_seats_by_name():
    model = small.tiny_decoder()

    def forward(ids):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=ids is HELD[0]):
            return model(ids)

    plan = rt.attach(
        small.BINDING,
        model,
        forward,
        scheme="fp8_static",
        rungs=("emulate",),
        observations=BATCHES,
        held_out=HELD,
        on_guard_fail="raise",
    )
    codes = {record.code for record in plan.seats if record.state == "refused"}
    assert codes & {"guard.autocast", "guard.dtype"}
    assert not plan.names("failed")


def test_a_floor_on_another_kind_of_output_is_refused_by_name():
    with pytest.raises(rt.Refusal, match="top1_agreement"):
        attach(small.tiny_decoder(), floors={"top1_agreement": 0.9})


def test_a_host_without_seats_gives_a_record_of_none():
    binding = dataclasses.replace(small.BINDING, seats=lambda model: [])
    plan = attach(small.tiny_decoder(), binding)
    assert plan.seats == () and not plan.bound and receipt.verify(plan.receipt)
    assert "0 of 0 seats bound" in plan.explain() and plan.report()


def test_what_is_attached_already_is_refused_by_name():
    model = small.tiny_decoder()
    before = host_state(model)
    with attach(model, structures=("decoder_ffn",)) as first:
        second = attach(model)
        assert {second.seat(name).code for name in first.bound} == {"host.attached"}
        assert second.bound
        second.detach()
        assert first.active
    assert_untouched(model, before)


# ---------------------------------------------------------------- speed


def test_a_rung_that_was_not_asked_for_is_kept_where_speed_cannot_be_judged():
    plan = attach(small.tiny_decoder(), rungs=None)
    assert not plan.bound
    kept = [r for r in plan.seats if r.code == "latency"]
    assert kept and all("latency='skip'" in r.reason for r in kept)
    assert {u.latency.verdict for u in plan.units} == {"not_applicable"}


def test_asking_for_the_rung_by_name_binds_it_and_claims_no_speed():
    plan = attach(small.tiny_decoder(), rungs=("torch",))
    assert plan.bound and {u.latency.speedup for u in plan.units} == {None}
    assert all(plan.seat(name).gate("parity").verdict == "pass" for name in plan.bound)


def test_skip_activates_on_accuracy_alone_and_says_so():
    plan = attach(small.tiny_decoder(), rungs=None, latency="skip")
    assert plan.bound and {u.latency.verdict for u in plan.units} == {"skipped"}
    assert "accuracy alone" in plan.explain()


def test_qualify_rules_are_recorded_and_not_enforced_without_a_judgement_of_speed():
    plan = attach(small.tiny_decoder())
    record = plan.seat("ffn[0]")
    (ruling,) = record.rules
    assert (ruling.rule, ruling.outcome) == ("D*F >= 1048576", "broken")
    assert ruling.found.startswith("D*F = ") and record.state == "bound"


# ---------------------------------------------------------------- faults


class BrokenInit(small.FfnFp8Static):
    def __init__(self, **given):
        raise NameError("name 'quantise' is not defined")


class BrokenRun(small.LinearFp8Static):
    def run_emulate(self, x):
        raise NameError("kernel bug")


def test_a_fault_fails_its_seats_with_its_traceback_and_the_others_go_on():
    model = small.tiny_decoder()
    impls = {"decoder_ffn": BrokenInit, "linear_proj": BrokenRun}
    plan = attach(model, with_scheme(impls))
    assert plan.names("failed") == ("o[0]", "ffn[0]", "o[1]", "ffn[1]")
    failure = plan.seat("ffn[0]").failure
    assert "NameError" in failure.exception and "Traceback" in failure.traceback
    assert "BrokenInit" in failure.traceback or "__init__" in failure.traceback
    assert "NameError: kernel bug" in plan.explain()
    assert any(name.startswith("qkv") for name in plan.bound)
    assert receipt.verify(plan.receipt)
    assert "kernel bug" in str(plan.receipt["verdict"]["seats"]["o[0]"]["failure"])


class Late(small.LinearFp8Static):
    """Fails once it stands in the host."""

    error: BaseException = RuntimeError("late")

    def run_emulate(self, x):
        if torch.is_inference_mode_enabled():
            raise type(self).error
        return super().run_emulate(x)


def attach_late(model, error, monkeypatch):
    monkeypatch.setattr(Late, "error", error)
    return rt.attach(
        with_scheme({"linear_proj": Late}),
        model,
        inference(model),
        scheme="fp8_static",
        rungs=("emulate",),
        observations=BATCHES,
    )


@pytest.mark.parametrize(
    "error", [RuntimeError("late"), MemoryError(), torch.OutOfMemoryError("out of memory")]
)
def test_a_fault_inside_the_host_fails_the_unit_and_restores_the_host(error, monkeypatch):
    model = small.tiny_decoder()
    before = host_state(model)
    plan = attach_late(model, error, monkeypatch)
    assert {plan.seat(f"o[{i}]").state for i in range(2)} == {"failed"}
    assert type(error).__name__ in plan.seat("o[0]").failure.traceback
    assert plan.unit("linear_proj").verdict == "failed" and plan.bound
    plan.detach()
    assert_untouched(model, before)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        KeyboardInterrupt(),
        SystemExit(3),
    ],
)
def test_what_ends_attach_passes_through_and_restores_the_host(error, monkeypatch):
    model = small.tiny_decoder()
    before = host_state(model)
    with pytest.raises(type(error)) as caught:
        attach_late(model, error, monkeypatch)
    assert caught.value is error
    assert_untouched(model, before)


def test_a_plan_that_got_lost_can_still_be_undone():
    model = small.tiny_decoder()
    attach(model, structures=("decoder_ffn",)).detach()
    before = host_state(model)
    attach(model, structures=("decoder_ffn",))  # nobody keeps the plan
    again = attach(model, structures=("decoder_ffn",))
    assert {record.code for record in again.seats if record.state == "refused"} == {"host.attached"}
    assert "frtspec.runtime.detach(model)" in again.explain()
    rt.detach(model)
    assert_untouched(model, before)
    rt.detach(model)


def test_where_nothing_is_bound_the_explanation_says_so_and_nothing_about_its_share():
    plan = attach(small.tiny_decoder(), scheme="none")
    assert "no seat is bound" in plan.explain() and "0.0%" not in plan.explain()


STEPS = [
    (hosts, "check_host"),
    (selecting.facts, "check_expects"),
    (measuring, "noise_of"),
    (measuring.observe, "observe"),
    (perseat, "SeatReference"),
    (perseat.gates, "reference_agreement"),
    (ladder, "bind_seat"),
    (perseat.gates, "saturation"),
    (perseat.gates, "kernel_parity"),
    (perseat.gates, "boundary"),
    (swap, "activate"),
    (perseat.gates, "host"),
    (swap.Attachment, "ledger"),
    (receipt, "seal"),
]
UNDOING = [
    (swap, "_restore_all"),
    (root, "release"),
    (root.Root, "remove"),
    (measuring.observe, "_close"),
]
"""Steps that put the host back: broken off once, they are done again."""


@pytest.mark.parametrize("place", STEPS + UNDOING, ids=lambda p: p[1])
def test_an_interrupt_at_any_step_passes_and_leaves_the_host_as_it_was(place, monkeypatch):
    where, name = place
    real = getattr(where, name)
    model = small.tiny_decoder()
    attach(model, structures=("decoder_ffn",)).detach()
    before = host_state(model)
    for at in range(3):
        calls = itertools.count()

        def interrupted(*args, at=at, calls=calls, **kwargs):
            if next(calls) == at:
                raise KeyboardInterrupt
            return real(*args, **kwargs)

        monkeypatch.setattr(where, name, interrupted)
        try:
            plan = attach(model)
        except KeyboardInterrupt:
            pass
        else:
            assert at > 0, f"{name} was never reached"
            plan.detach()
        assert_untouched(model, before)


@pytest.mark.parametrize("place", STEPS[2:], ids=lambda p: p[1])
def test_an_exception_at_any_step_leaves_the_host_as_it_was(place, monkeypatch):
    where, name = place
    model = small.tiny_decoder()
    before = host_state(model)

    def broken(*_args, **_kwargs):
        raise ValueError(f"planted in {name}")

    monkeypatch.setattr(where, name, broken)
    try:
        plan = attach(model)
    except ValueError as error:
        assert f"planted in {name}" in str(error)
    else:
        assert not plan.bound and plan.names("failed"), plan.explain()
        plan.detach()
    assert_untouched(model, before)


# ---------------------------------------------------------------- afterwards


def test_check_finds_edited_weights_even_through_data():
    model = small.tiny_decoder()
    plan = attach(model, structures=("decoder_ffn",))
    assert plan.check() == ()
    model.layers[1].mlp.up_proj.weight.data[0, 0] += 1
    (drift,) = plan.check()
    assert drift.seat == "ffn[1]" and drift.path == "layers.1.mlp.up_proj.weight"
    plan.detach()


def test_two_models_of_one_class_do_not_touch_each_other():
    one, two = small.tiny_decoder(), small.tiny_decoder(seed=3)
    before, logits = host_state(two), two(HELD[0])
    plan = attach(one)
    assert_untouched(two, before)
    assert torch.equal(two(HELD[0]), logits)
    other = attach(two)
    plan.detach()
    assert other.active
    other.detach()
    assert_untouched(two, before)


def test_a_plan_detaches_at_the_end_of_a_with_block():
    model = small.tiny_decoder()
    before = host_state(model)
    with attach(model) as plan:
        assert plan.active
    assert_untouched(model, before)


def test_attaching_twice_after_detaching_gives_the_same_result():
    model = small.tiny_decoder()
    first = attach(model)
    first.detach()
    second = attach(model)
    second.detach()
    assert first.bound == second.bound
    assert first.receipt["digests"]["metrics"] == second.receipt["digests"]["metrics"]

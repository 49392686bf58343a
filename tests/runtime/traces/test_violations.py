"""Every rule, broken on purpose: the check names the rule, the stage, the value and the step."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, MutableMapping
from typing import Any

import numpy
import pytest
import torch
from flashrt_gen.pipelines import autoregressive_decode_pipeline_v2 as decoding
from flashrt_gen.pipelines import video_generation_pipeline_v1 as generation
from flashrt_gen.pipelines import vla_tick_pipeline_v2 as ticking

from frtspec.runtime import trace
from frtspec.runtime.errors import Refusal
from tests.runtime.traces import hosts

Values = MutableMapping[str, Any]


def found(report: trace.Report, rule: str) -> list[trace.Violation]:
    return [v for v in report.violations if v.rule == rule]


def only(report: trace.Report, rule: str) -> trace.Violation:
    """The first violation of a rule, well formed; nothing about the implied steps is wrong."""
    rows = found(report, rule)
    assert rows, str(report)
    assert all(v.code.startswith("trace.") and v.what and v.fix for v in report.violations)
    return rows[0]


def at_step(step: int, work: Callable[[Values], None]) -> Callable[[Values], None]:
    """Work that a stage does in one step only."""
    count = [0]

    def maybe(values: Values) -> None:
        if count[0] % hosts.STEPS == step:
            work(values)
        count[0] += 1

    return maybe


# ---------------------------------------------------------------- noise

NOISE = "initial_latent_or_noise_is_explicit"


@pytest.mark.parametrize(
    "draw, generator",
    [
        (lambda v: v["latent"].add_(torch.randn_like(v["latent"]), alpha=0.0), "torch"),
        (lambda v: random.random(), "python"),
        (lambda v: numpy.random.rand(), "numpy"),
    ],
    ids=["torch", "python", "numpy"],
)
def test_noise_drawn_inside_a_stage(draw: Callable[[Values], Any], generator: str) -> None:
    host = hosts.denoiser()
    host.after("denoise", at_step(2, draw))
    violation = only(host.run(generation.PIPELINE), NOISE)
    assert (violation.code, violation.stage, violation.step) == (
        "trace.explicit_window",
        "denoise",
        2,
    )
    assert f"({generator})" in violation.what and "seed_or_source" in violation.fix


def test_noise_of_a_generator_that_only_the_host_knows() -> None:
    """No process-wide generator moves, and still the second run differs."""
    own = torch.Generator().manual_seed(7)
    host = hosts.denoiser()
    host.after(
        "latent_prepare",
        lambda v: v["latent"].add_(torch.randn(v["latent"].shape, generator=own), alpha=0.1),
    )
    violation = only(host.run(generation.PIPELINE), NOISE)
    assert (violation.stage, violation.value) == ("latent_prepare", "latent")
    assert "another after" in violation.what


def test_a_second_run_takes_another_path() -> None:
    calls: list[int] = []
    host = hosts.decoder()

    def longer(values: Values) -> None:
        calls.append(1)
        values["stop"] = len(calls) in (3, 8)

    host.after("token_select", longer)
    rule = trace.Rule("same path", "explicit_window", ("token_ids",))
    pipeline = dataclasses.replace(decoding.PIPELINE, rules=(rule,))
    violation = only(host.run(pipeline), "same path")
    assert "another after" in violation.what or "took" in violation.what


def test_one_run_proves_nothing_about_noise() -> None:
    report = hosts.denoiser().run(generation.PIPELINE, twice=False)
    assert [v.rule for v in report.violations] == [NOISE]
    assert "only one run" in report.violations[0].what


def test_the_second_run_had_other_windows() -> None:
    host, other = hosts.policy(), hosts.policy()
    own = other.make
    other.make = lambda: {**own(), "noise": torch.ones(1, 3)}
    first = host.run(ticking.PIPELINE).record
    again = other.run(ticking.PIPELINE).record
    violation = only(trace.check(first, again), "noise_single_hoistable_site")
    assert violation.value == "noise" and "other content" in violation.what


# ---------------------------------------------------------------- what a loop only reads

CONDITION = "condition_is_read_only_in_denoise"


def test_a_condition_written_inside_the_loop() -> None:
    host = hosts.denoiser()
    host.after("denoise", at_step(1, lambda v: v["condition"][0].mul_(1.0001)))
    report = host.run(generation.PIPELINE)
    violation = only(report, CONDITION)
    assert violation.code == "trace.read_only_in_loop"
    assert (violation.stage, violation.value, violation.step) == ("denoise", "condition", 1)
    assert only(report, "declared writers").value == "condition"


def test_a_condition_exchanged_between_steps() -> None:
    host = hosts.denoiser()
    own = host.before
    assert own is not None

    def before(loop: str, step: int, values: Values) -> None:
        own(loop, step, values)
        if step == 3:
            values["condition"][1].zero_()

    host.before = before
    violation = only(host.run(generation.PIPELINE), CONDITION)
    assert (violation.value, violation.step) == ("condition", 3)
    assert "while the loop was running" in violation.what


# ---------------------------------------------------------------- writers


def test_a_state_written_by_another_stage() -> None:
    host = hosts.decoder()
    host.after("token_select", lambda v: host.live["cache"].layers[1].keys[..., 0, :].zero_())
    violation = only(host.run(decoding.PIPELINE), "decode_state_update_is_explicit")
    assert violation.code == "trace.declared_writers"
    assert (violation.stage, violation.value, violation.step) == ("token_select", "kv_state", 0)


def test_a_scheduler_that_moves_between_stages() -> None:
    host = hosts.denoiser()
    own = host.before
    assert own is not None

    def before(loop: str, step: int, values: Values) -> None:
        own(loop, step, values)
        if step == 2:
            host.live["scheduler"]._step_index -= 1

    host.before = before
    violation = only(host.run(generation.PIPELINE), "scheduler_update_is_explicit")
    assert violation.value == "scheduler_state" and "while no stage ran" in violation.what


def test_a_token_chosen_inside_the_decoder() -> None:
    host = hosts.decoder()
    host.after("decode", lambda v: v["token_id"].fill_(3))
    violation = only(host.run(decoding.PIPELINE), "token_selection_is_outside_decoder_blocks")
    assert violation.code == "trace.changes_only_in"
    assert (violation.stage, violation.value, violation.step) == ("decode", "token_id", 0)


def test_actions_written_at_another_cadence() -> None:
    host = hosts.policy()
    chunk: list[torch.Tensor] = []
    own = host.make

    def make() -> dict[str, Any]:
        values = dict(own())
        chunk[:] = [values["action_chunk"]]
        return values

    host.make = make
    host.after("obs_encode", lambda v: chunk[0].fill_(0.5))
    violation = only(host.run(ticking.PIPELINE), "action_chunk_cadence")
    assert violation.code == "trace.changes_only_at"
    assert (violation.stage, violation.value) == ("obs_encode", "action_chunk")


def test_features_encoded_anew_for_each_token() -> None:
    """Made at each token instead of once a request."""
    host = hosts.decoder()
    features = torch.zeros(4)
    own = host.make
    host.make = lambda: {**own(), "modality_features": features.zero_()}
    host.after("decode", lambda v: features.add_(1))
    violation = only(host.run(decoding.PIPELINE), "modality_features_have_request_cadence")
    assert (violation.stage, violation.value, violation.step) == ("decode", "modality_features", 0)


def test_a_decode_over_a_state_that_nobody_filled() -> None:
    host = hosts.decoder()
    forward = host.stages["decode"]

    def prefill(values: Values) -> None:
        values["logits"].fill_(1.0)

    host.stages["prefill"] = prefill
    host.stages["decode"] = forward
    violation = only(host.run(decoding.PIPELINE), "prefill_populates_decode_state")
    assert violation.code == "trace.populated_before_loop"
    assert (violation.stage, violation.value, violation.step) == ("decode", "kv_state", 0)


# ---------------------------------------------------------------- storage, shapes, counts


def test_a_static_buffer_that_moves() -> None:
    host = hosts.denoiser()

    def replaced(values: Values) -> None:
        values["condition"][0] = values["condition"][0].clone()

    host.after("denoise", at_step(0, replaced))
    violation = only(host.run(generation.PIPELINE), "static buffers")
    assert violation.code == "trace.static_storage"
    assert (violation.stage, violation.value, violation.step) == ("denoise", "condition", 0)
    assert "copy_" in violation.fix


def test_a_static_buffer_of_another_shape() -> None:
    values: dict[str, Any] = {"cond_features": torch.zeros(1, 4)}
    record = ticking.record(values, steps={"denoise": 1})
    with record.stage("obs_encode", form="graph"):
        values["cond_features"] = torch.zeros(1, 6)
    violation = only(trace.check(record.record()), "static buffers")
    assert "[1, 4]" in violation.what and "[1, 6]" in violation.what


def test_shapes_that_change_from_step_to_step() -> None:
    host = hosts.denoiser()
    host.after(
        "denoise", at_step(2, lambda v: v.__setitem__("latent", v["latent"][..., :6].clone()))
    )
    host.steps["denoising"] = 3
    violation = only(host.run(generation.PIPELINE), "fixed_shape_contract_is_declared")
    assert violation.code == "trace.fixed_shapes"
    assert (violation.stage, violation.value, violation.step) == ("denoise", "latent", 2)


def ticks(count: int) -> trace.Record:
    record = ticking.record({}, steps={"denoise": hosts.STEPS})
    with record.stage("obs_encode", form="graph"):
        pass
    for _ in range(count):
        with record.stage("action_denoise", form="graph"):
            pass
    return record.record()


@pytest.mark.parametrize("count", [hosts.STEPS - 1, hosts.STEPS + 1])
def test_a_fixed_loop_of_another_length(count: int) -> None:
    record = ticks(count)
    violation = only(trace.check(record, record), "hot_loop_fixed_shape_fixed_steps")
    assert violation.code == "trace.fixed_loop"
    assert f"took {count} steps" in violation.what and str(hosts.STEPS) in violation.what


def test_a_loop_that_does_not_end_where_it_should() -> None:
    """An open loop may take fewer steps than told, not more."""
    record = decoding.record({}, steps={"generate": 2})
    with record.stage("prefill", form="graph"):
        pass
    for _ in range(3):
        for stage in ("token_select", "decode"):
            with record.stage(stage, form="graph"):
                pass
    violation = only(trace.check(record.record()), "steps of loops")
    assert violation.code == "trace.step_count" and "at most 2" in violation.what


# ---------------------------------------------------------------- what is reported


def test_a_stage_that_never_ran() -> None:
    record = ticking.record({}, steps={"denoise": 1})
    with record.stage("action_denoise", form="graph"):
        pass
    violation = only(trace.check(record.record()), "stage_seam_exists")
    assert (violation.code, violation.stage) == ("trace.every_stage_runs", "obs_encode")


def test_a_stage_without_a_time() -> None:
    record = ticking.record({}, steps={"denoise": 0}, bound=("obs_encode", "readout"))
    for stage in ("obs_encode", "readout"):
        with record.stage(stage, form="graph"):
            pass
    whole = record.record()
    events = tuple(dataclasses.replace(e, seconds=None) for e in whole.events)
    violation = only(
        trace.check(dataclasses.replace(whole, events=events)), "readout_cost_reported_when_present"
    )
    assert (violation.code, violation.stage) == ("trace.cost_reported", "readout")
    assert not found(trace.check(whole), "readout_cost_reported_when_present")


@pytest.mark.parametrize(
    "form, told",
    [
        (None, False),
        (trace.Form("eager"), False),
        (trace.Form("eager", "a boolean mask indexes on the CPU"), True),
        (trace.Form("graph"), True),
    ],
)
def test_a_fallback_without_a_reason(form: trace.Form | None, told: bool) -> None:
    host = hosts.policy()
    host.forms = {"obs_encode": trace.Form("graph")} | ({"action_denoise": form} if form else {})
    rows = found(host.run(ticking.PIPELINE), "capture_blockers_enumerated")
    assert bool(rows) is not told
    assert {v.stage for v in rows} <= {"action_denoise"}


def test_a_stage_that_is_bound_eager_needs_no_reason() -> None:
    host = hosts.policy()
    host.forms = {}
    uses = (
        trace.StageUse("obs_encode", path="", capture="eager"),
        trace.StageUse("action_denoise", path="", capture="graph"),
    )
    rows = found(host.run(ticking.PIPELINE, uses=uses), "capture_blockers_enumerated")
    assert {v.stage for v in rows} == {"action_denoise"}


@pytest.mark.parametrize(
    "quality, right",
    [
        ({}, False),
        ({"cosine": 0.99}, False),
        ({"cosine": float("nan")}, False),
        ({"cosine": 0.9995}, True),
    ],
)
def test_a_skipped_step_is_gated(quality: dict[str, float], right: bool) -> None:
    record = generation.record({}, steps={"denoising": 3})
    for stage in ("condition_encode", "latent_prepare", "denoise"):
        with record.stage(stage):
            pass
    record.skip("denoising", quality)
    with record.stage("denoise"):
        pass
    whole = record.record()
    rows = found(trace.check(whole), "skipped_step_cache_has_a_quality_gate")
    assert bool(rows) is not right
    assert {v.step for v in rows} <= {1}
    assert not found(trace.check(whole), "steps of loops")


def test_a_step_skipped_in_silence() -> None:
    rule = trace.Rule("no silent skip", "skips_gated", ("generate",))
    pipeline = dataclasses.replace(decoding.PIPELINE, rules=(rule,))
    record = trace.Trace(pipeline, {}, steps={"generate": 4})
    for stage in ("prefill", "token_select", "token_select", "decode", "token_select"):
        with record.stage(stage):
            pass
    rows = found(trace.check(record.record()), "no silent skip")
    assert [(v.stage, v.step) for v in rows] == [("decode", 0)]  # the last step may end early


# ---------------------------------------------------------------- access


def test_a_stage_sees_only_what_it_declares() -> None:
    for work, verb in (
        (lambda v: v["noise"], "read noise"),
        (lambda v: v.__setitem__("images", None), "write images"),
        (lambda v: v.__delitem__("images"), "write images"),
    ):
        host = hosts.policy()
        host.after("obs_encode", work)
        with pytest.raises(Refusal) as caught:
            host.run(ticking.PIPELINE)
        assert caught.value.code == "trace.access" and verb in caught.value.what


def test_what_may_be_absent_is_none_and_the_rest_has_to_be_there() -> None:
    host = hosts.policy()
    own = host.make
    host.make = lambda: {k: v for k, v in own().items() if k not in ("state", "noise")}
    seen: list[Any] = []
    host.stages["action_denoise"] = lambda v: seen.append(v["state"])
    host.run(ticking.PIPELINE)
    assert seen[:1] == [None]
    host.stages["action_denoise"] = lambda v: seen.append(v["noise"])
    with pytest.raises(Refusal) as caught:
        host.run(ticking.PIPELINE)
    assert caught.value.code == "trace.access" and "noise" in caught.value.what


def test_a_protected_stage_cannot_exchange_the_container() -> None:
    """What the stage puts into its copy of the container stays there."""
    host = hosts.denoiser()
    host.after("denoise", lambda v: v["condition"].__setitem__(0, torch.zeros(1, 5, 16)))
    open_use = [trace.StageUse(name, path="") for name in host.stages]
    kept = [dataclasses.replace(use, protect="shallow_copy") for use in open_use]
    assert found(host.run(generation.PIPELINE, uses=open_use), CONDITION)
    assert host.run(generation.PIPELINE, uses=kept).ok


def test_a_broken_run_can_be_made_an_error() -> None:
    host = hosts.denoiser()
    host.after("denoise", lambda v: v["condition"][0].mul_(1.0001))
    report = host.run(generation.PIPELINE)
    with pytest.raises(Refusal) as caught:
        report.require()
    assert caught.value.code == "trace.broken" and CONDITION in caught.value.what
    assert not report.to_dict()["ok"] and report.to_dict()["rules"][CONDITION]


def test_what_cannot_be_put_back_is_refused() -> None:
    host = hosts.policy()
    values = dict(host.make())

    def cut(v: Values) -> None:
        v["cond_features"].resize_(1, 4)

    host.stages = {"obs_encode": cut, "action_denoise": lambda v: None}
    with pytest.raises(Refusal) as caught:
        trace.run(ticking.PIPELINE, host.stages, values, steps=host.steps)
    assert caught.value.code == "trace.restore" and "function" in caught.value.fix

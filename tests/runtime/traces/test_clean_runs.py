"""Runs that keep every rule of their pipeline, on real loops."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from flashrt_gen.pipelines import autoregressive_decode_pipeline_v2 as decoding
from flashrt_gen.pipelines import video_generation_pipeline_v1 as generation
from flashrt_gen.pipelines import vla_tick_pipeline_v2 as ticking

from frtspec.ir import pipewords
from frtspec.runtime import trace
from frtspec.runtime.errors import Refusal
from frtspec.runtime.trace.checks import CHECKS
from tests.runtime.traces import hosts


def test_every_check_that_a_spec_can_name_has_its_function() -> None:
    assert set(CHECKS) == set(pipewords.CHECKS)


@pytest.mark.parametrize(
    "pipeline", [decoding.PIPELINE, generation.PIPELINE, ticking.PIPELINE], ids=lambda p: p.name
)
def test_every_rule_of_the_catalog_has_one_check(pipeline: trace.PipelineSpec) -> None:
    assert pipeline.rules
    assert len({rule.name for rule in pipeline.rules}) == len(pipeline.rules)
    assert {rule.check for rule in (*pipeline.rules, *pipeline.implied())} <= set(CHECKS)


def test_a_denoise_loop_of_diffusers_keeps_its_rules() -> None:
    report = hosts.denoiser().run(generation.PIPELINE)
    assert report.ok, str(report)
    stages = [run.stage for run in report.record.runs]
    assert stages == ["condition_encode", "latent_prepare", *["denoise"] * hosts.STEPS]
    assert [r.step for r in report.record.runs if r.loop] == list(range(hosts.STEPS))
    assert "rules hold over 6 stage runs" in str(report)


def test_a_tick_keeps_its_rules() -> None:
    report = hosts.policy().run(ticking.PIPELINE)
    assert report.ok, str(report)
    assert report.require() is report


def test_a_greedy_decode_keeps_its_rules_and_is_what_the_host_generates() -> None:
    host = hosts.decoder()
    report = host.run(decoding.PIPELINE)
    assert report.ok, str(report)
    stages = [run.stage for run in report.record.runs]
    assert stages == ["prefill", *["token_select", "decode"] * 4, "token_select"]
    model, prompt = host.live["model"], host.live["prompt"]
    found = model.generate(prompt, max_new_tokens=5, do_sample=False, eos_token_id=None)
    assert found[0, 4:].tolist() == host.live["chosen"]


def test_values_in_place_are_put_back_for_the_second_run() -> None:
    host = hosts.policy()
    values = host.make()
    report = trace.run(ticking.PIPELINE, host.stages, values, steps=host.steps, forms=host.forms)
    assert report.ok, str(report)
    assert bool(values["action_chunk"].any())


def test_a_recorded_run_and_its_times() -> None:
    host = hosts.policy()
    values = dict(host.make())
    found = ticking.record(values, steps={"denoise": 2})
    with found.stage("obs_encode", form="eager", reason="host code"):
        values["cond_features"].fill_(1.0)
    step = found.wrap("action_denoise", lambda: values["action_chunk"].add_(1.0), form="graph")
    step()
    step()
    record = found.record()
    assert set(record.seconds()) == {"obs_encode", "action_denoise"}
    assert all(s > 0 for row in record.seconds().values() for s in row)
    report = trace.check(record, record)
    assert report.ok, str(report)
    told = report.to_dict()
    assert told["ok"] and told["rules"]["noise_single_hoistable_site"] == []


def test_modules_can_be_watched() -> None:
    encoder, head = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    found = ticking.record({"images": torch.ones(1, 2)}, steps={"denoise": 3})
    with found.watching({"obs_encode": encoder, "action_denoise": head}, form="graph"):
        seen = encoder(torch.ones(1, 2))
        for _ in range(3):
            seen = head(seen)
    encoder(torch.ones(1, 2))  # no longer watched
    stages = [run.stage for run in found.record().runs]
    assert stages == ["obs_encode", *["action_denoise"] * 3]
    with pytest.raises(Refusal) as caught, found.watching({"obs_encode": head, "readout": head}):
        pass
    assert caught.value.code == "trace.shared"


def test_a_stage_that_raises_is_not_recorded() -> None:
    found = ticking.record({}, steps={"denoise": 1})
    with pytest.raises(RuntimeError), found.stage("obs_encode"):
        raise RuntimeError("no camera")
    assert found.record().events == ()
    with found.stage("obs_encode"):
        pass
    assert len(found.record().events) == 1


def test_names_and_counts_are_checked() -> None:
    for values, steps, code in (
        ({"nois": torch.ones(1)}, {"denoise": 1}, "trace.name"),
        ({}, {}, "trace.steps"),
        ({}, {"denoise": 1, "denoising": 2}, "trace.name"),
    ):
        with pytest.raises(Refusal) as caught:
            ticking.record(values, steps=steps)
        assert caught.value.code == code
    found = ticking.record({}, steps={"denoise": 1})
    with pytest.raises(Refusal) as caught, found.stage("readout"):
        pass
    assert caught.value.code == "trace.name" and "obs_encode" in caught.value.fix
    with pytest.raises(Refusal) as caught, found.stage("obs_encode"), found.stage("obs_encode"):
        pass
    assert caught.value.code == "trace.nested"


def test_an_imported_pipeline_is_refused() -> None:
    imported = dataclasses.replace(ticking.PIPELINE, imported="never run")
    with pytest.raises(Refusal) as caught:
        trace.Trace(imported, {}, steps={"denoise": 1})
    assert caught.value.code == "trace.imported" and "never run" in caught.value.what


def test_what_cannot_be_looked_into_is_refused() -> None:
    found = ticking.record({"images": object()}, steps={"denoise": 1})
    with pytest.raises(Refusal) as caught, found.stage("obs_encode"):
        pass
    assert caught.value.code == "trace.value" and "lambda" in caught.value.fix

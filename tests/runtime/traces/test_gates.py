"""The gates of a pipeline over recorded runs: outputs and times against a baseline's."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from flashrt_gen.pipelines import autoregressive_decode_pipeline_v2 as decoding
from flashrt_gen.pipelines import video_generation_pipeline_v1 as generation
from flashrt_gen.pipelines import vla_tick_pipeline_v2 as ticking

from frtspec.runtime import trace
from frtspec.runtime.errors import Refusal
from tests.runtime.traces import hosts


def test_a_run_agrees_with_itself() -> None:
    record = hosts.denoiser().run(generation.PIPELINE, twice=False).record
    found = trace.parity(record, record)
    assert found.ok and found.metrics["latent"]["cosine"] == pytest.approx(1.0)
    assert found.metrics["latent"]["rel_l2"] == 0.0
    assert set(found.metrics) == {"latent"}  # nothing decoded media


def test_another_result_misses_its_bound() -> None:
    host = hosts.policy()
    baseline = host.run(ticking.PIPELINE, twice=False).record
    worse = hosts.policy()
    worse.after("action_denoise", lambda v: v["action_chunk"].neg_())
    found = trace.parity(baseline, worse.run(ticking.PIPELINE, twice=False).record)
    assert not found.ok and "cosine" in found.misses[0] and "action_chunk" in found.misses[0]


def test_nan_is_no_number() -> None:
    baseline = hosts.policy().run(ticking.PIPELINE, twice=False).record
    lost = hosts.policy()
    lost.after("action_denoise", lambda v: v["action_chunk"].fill_(float("nan")))
    found = trace.parity(baseline, lost.run(ticking.PIPELINE, twice=False).record)
    assert not found.ok and found.failed is not None and "NaN" in found.failed


def test_logits_are_judged_at_every_token() -> None:
    baseline = hosts.decoder().run(decoding.PIPELINE, twice=False).record
    assert len(baseline.outputs["logits"]) == 5  # one of the prefill, four of the decode
    nudged = hosts.decoder()

    def nudge(values: dict[str, torch.Tensor]) -> None:
        values["logits"].add_(torch.linspace(0, 1e-4, values["logits"].shape[-1]))

    nudged.after("decode", nudge)
    found = trace.parity(baseline, nudged.run(decoding.PIPELINE, twice=False).record)
    assert found.ok and found.metrics["logits"]["token_agreement"] == 1.0


def test_other_tokens_are_no_baseline() -> None:
    baseline = hosts.decoder().run(decoding.PIPELINE, twice=False).record
    other = hosts.decoder()
    other.after("token_select", lambda v: v["token_id"].fill_(1))
    with pytest.raises(Refusal) as caught:
        trace.parity(baseline, other.run(decoding.PIPELINE, twice=False).record)
    assert caught.value.code == "trace.baseline" and "tokens" in caught.value.what


def test_other_windows_are_no_baseline() -> None:
    baseline = hosts.policy().run(ticking.PIPELINE, twice=False).record
    other = hosts.policy()
    own = other.make
    other.make = lambda: {**own(), "noise": torch.ones(1, 3)}
    with pytest.raises(Refusal) as caught:
        trace.parity(baseline, other.run(ticking.PIPELINE, twice=False).record)
    assert caught.value.code == "trace.baseline" and "noise" in caught.value.what


def test_another_pipeline_is_no_baseline() -> None:
    one = hosts.policy().run(ticking.PIPELINE, twice=False).record
    two = hosts.denoiser().run(generation.PIPELINE, twice=False).record
    with pytest.raises(Refusal) as caught:
        trace.parity(one, two)
    assert caught.value.code == "trace.baseline"


# ---------------------------------------------------------------- times


def timed(record: trace.Record, factor: float) -> trace.Record:
    """The record as if every run had taken ``factor`` milliseconds, the loop's twice that."""
    events = tuple(
        dataclasses.replace(e, seconds=factor * (2e-3 if e.loop else 1e-3)) for e in record.events
    )
    return dataclasses.replace(record, events=events)


def test_times_of_a_decode() -> None:
    record = hosts.decoder().run(decoding.PIPELINE, twice=False).record
    win = trace.net_win(timed(record, 3.0), timed(record, 1.0))
    base, ours = win.times["ttft"]  # prefill and the first token
    assert (base, ours) == (pytest.approx(9e-3), pytest.approx(3e-3))
    assert win.times["tpot"] == (pytest.approx(12e-3), pytest.approx(4e-3))
    assert set(win.ratios) == {
        "ttft",
        "tpot",
        "stage_latency.prefill",
        "stage_latency.token_select",
        "stage_latency.decode",
    }
    assert win.wins(2.9) and not win.wins(3.1)


def test_a_tick_that_is_slower_does_not_win() -> None:
    record = hosts.policy().run(ticking.PIPELINE, twice=False).record
    win = trace.net_win(timed(record, 1.0), timed(record, 2.0))
    assert not win.wins() and win.ratios["tick_latency"] == pytest.approx(0.5)


def test_gates_that_are_not_there_and_times_that_are_not_told() -> None:
    record = hosts.policy().run(ticking.PIPELINE, twice=False).record
    bare = dataclasses.replace(
        record, pipeline=dataclasses.replace(ticking.PIPELINE, parity=None, net_win=None)
    )
    for call in (trace.parity, trace.net_win):
        with pytest.raises(Refusal) as caught:
            call(bare, bare)
        assert caught.value.code == "trace.gate"
    events = tuple(dataclasses.replace(e, seconds=None) for e in record.events)
    with pytest.raises(Refusal) as caught:
        trace.net_win(record, dataclasses.replace(record, events=events))
    assert caught.value.code == "trace.times"

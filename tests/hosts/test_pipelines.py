"""Pipelines of our own bindings on live models: their stages, places and steps are there, and
a run of the host keeps every rule.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from flashrt_gen.qwen3 import autoregressive_decode_pipeline as decoding

from frtspec.runtime import trace
from hosts import tiny
from tests.runtime.traces import hosts


@pytest.fixture
def decoder(monkeypatch: pytest.MonkeyPatch) -> hosts.Host:
    """A greedy decode of the tiny Qwen3 over a static cache."""
    model = tiny.QWEN3.model()
    monkeypatch.setattr(hosts, "_llama", lambda: model)
    return hosts.decoder()


def run(host: hosts.Host, use: trace.PipelineUse, model: Any, **options: Any) -> trace.Report:
    return host.run(use.pipeline, uses=use.stages(model), **options)


def test_its_stages_lie_at_modules_and_its_loop_ends_with_the_positions(
    decoder: hosts.Host,
) -> None:
    model = decoder.live["model"]
    found = trace.modules(decoding.USE, model)
    assert found == {
        "prefill": model.model,
        "decode": model.model,
        "token_select": model.lm_head,
    }
    assert decoding.USE.steps(model) == {"generate": model.config.max_position_embeddings}


def test_a_greedy_decode_keeps_the_rules_and_is_what_the_host_generates(
    decoder: hosts.Host,
) -> None:
    model = decoder.live["model"]
    report = run(decoder, decoding.USE, model)
    assert report.ok, str(report)
    stages = [row.stage for row in report.record.runs]
    assert stages == ["prefill", *["token_select", "decode"] * 4, "token_select"]
    found = model.generate(
        decoder.live["prompt"], max_new_tokens=5, do_sample=False, eos_token_id=None
    )
    assert found[0, 4:].tolist() == decoder.live["chosen"]


def test_its_windows_lie_where_the_binding_says(decoder: hosts.Host) -> None:
    """What the modules named there take and give is what the stages hand on."""
    model = decoder.live["model"]
    seen: list[torch.Tensor] = []
    given: list[torch.Tensor] = []
    hooks = [
        model.model.embed_tokens.register_forward_pre_hook(lambda _, x: given.append(x[0].clone())),
        model.lm_head.register_forward_hook(lambda *_: seen.append(_[2])),
    ]
    handed: list[torch.Tensor] = []
    decoder.after("prefill", lambda values: handed.append(values["logits"].clone()))
    decoder.after("decode", lambda values: handed.append(values["logits"].clone()))
    run(decoder, decoding.USE, model, twice=False)
    for hook in hooks:
        hook.remove()
    assert len(seen) == len(handed) == 5
    assert all(torch.equal(a[:, -1], b) for a, b in zip(seen, handed, strict=True))
    assert given[0].tolist() == decoder.live["prompt"].tolist()
    assert [int(token) for token in given[1:]] == decoder.live["chosen"][:-1]


def test_a_token_chosen_inside_the_decoder_breaks_its_rule(decoder: hosts.Host) -> None:
    decoder.after("decode", lambda values: values["token_id"].fill_(3))
    report = run(decoder, decoding.USE, decoder.live["model"])
    assert not report.ok and "token_selection_is_outside_decoder_blocks" in str(report)


def test_every_seat_that_a_segment_names_is_on_the_host(decoder: hosts.Host) -> None:
    coverage = decoding.USE.coverage
    assert coverage is not None
    names = {
        seat.name.partition("[")[0]
        for seat in tiny.QWEN3.generated().HOST.seats(decoder.live["model"])
    }
    told = {name for segment in coverage.segments for name in segment.seats}
    # Every seat of the layers; the last norm is a part of the readout, which the host does.
    assert told == names - {"final_norm"}
    assert {"attention", "input_norm", "ffn_norm"} <= told

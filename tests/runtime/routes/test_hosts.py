"""Routed seats on real hosts: bound, within the gates, counted, and taken off without a trace."""

from __future__ import annotations

import pytest
import torch

from tests.hosts.diffusion import COSMOS, COSMOS3, FLUX, WAN, Diffusion
from tests.hosts.tiny import GEMMA3, LLAMA, QWEN3, QWEN3_5, QWEN3_VL, SIGLIP, Family
from tests.runtime.routes.support import attached, moved, own, runner, same, shared

HOSTS = (
    (QWEN3, {"rope", "attention"}),
    pytest.param(LLAMA, {"attention"}, marks=pytest.mark.slow),
    (GEMMA3, {"rope", "attention"}),
    (SIGLIP, {"attention"}),
    (QWEN3_VL, {"vision_rope", "vision_attention", "rope", "attention"}),
    (QWEN3_5, {"delta", "rope", "attention"}),
    (WAN, {"qk", "attention", "cross_attention"}),
    pytest.param(COSMOS, {"qk", "attention", "cross_attention"}, marks=pytest.mark.slow),
    (COSMOS3, {"attention", "full_attention"}),
    (FLUX, {"single_qk", "single_attention", "attention"}),
)


@pytest.mark.parametrize(("family", "names"), HOSTS, ids=lambda value: getattr(value, "name", ""))
def test_bound_counted_and_taken_off(family: Family | Diffusion, names: set[str]) -> None:
    model = family.model()
    samples, run = family.samples(2), runner(model)
    host = [run(sample) for sample in samples]
    before, process = own(model), shared(model)
    plan = attached(family, model, samples)
    bound = {name.partition("[")[0] for name in plan.bound}
    assert bound == names, plan.explain()
    assert not plan.names("refused") and not plan.names("failed"), plan.explain()
    for name in plan.bound:
        record = plan.seat(name)
        assert record.gate("reference").verdict == "pass"
        assert record.gate("parity").verdict == "pass"
        assert record.gate("boundary").metrics["cosine"] >= 0.999
    assert not moved(process, shared(model))
    mine = run(samples[0])
    cosine = torch.cosine_similarity(mine.flatten(), host[0].flatten(), dim=0)
    assert cosine > 0.999 and not torch.equal(mine, host[0])  # its own arithmetic did run
    for seat, row in plan.ledger().items():
        assert (row.calls, row.fallbacks, row.reasons) == (1, 0, {}), seat
    plan.detach()
    assert not same(before, own(model))
    assert not moved(process, shared(model))
    assert all(torch.equal(run(s), h) for s, h in zip(samples, host, strict=True))


def test_other_models_of_the_class_are_untouched() -> None:
    """Built before and after, with the same config object: bit for bit their own."""
    model, sample = QWEN3.model(), QWEN3.samples(1)[0]
    older = type(model)(model.config).eval()
    older.load_state_dict(model.state_dict())
    host, before = runner(older)(sample), own(older)
    plan = attached(QWEN3, model, [sample])
    newer = type(model)(model.config).eval()
    newer.load_state_dict(older.state_dict())
    assert torch.equal(runner(older)(sample), host) and torch.equal(runner(newer)(sample), host)
    assert not torch.equal(runner(model)(sample), host)
    assert not same(before, own(older))
    assert {row.calls for row in plan.ledger().values()} == {1}
    plan.detach()


def test_one_layer_of_a_model_does_not_serve_another() -> None:
    model, sample = LLAMA.model(), LLAMA.samples(1)[0]
    plan = attached(LLAMA, model, [sample])
    plan.attachment.disable(["attention[0]"])
    runner(model)(sample)
    calls = {seat: row.calls for seat, row in plan.ledger().items()}
    assert calls == {"attention[0]": 0, "attention[1]": 1}
    plan.attachment.enable()
    runner(model)(sample)
    assert {seat: row.calls for seat, row in plan.ledger().items()} == {
        "attention[0]": 1,
        "attention[1]": 2,
    }
    plan.detach()


def test_build_binds_without_captured_calls() -> None:
    model, samples = QWEN3.model(torch.bfloat16), QWEN3.samples(1)
    host = runner(model)(samples[0])
    plan = QWEN3.generated().build(
        model,
        runner(model),
        observations=samples,
        scheme="bf16_structural",
        structures=["attention_core", "qk_norm_rope"],
        rungs=("torch",),
    )
    assert len(plan.bound) == 4, plan.explain()
    runner(model)(samples[0])
    assert all(row.clean for row in plan.ledger().values())
    plan.detach()
    assert torch.equal(runner(model)(samples[0]), host)

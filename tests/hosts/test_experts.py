"""A router's experts under calibration: those that no row went to are named and stay the host's."""

from __future__ import annotations

import pytest
import torch
import transformers
from flashrt_gen.qwen3_moe import HOST
from torch import nn

from frtspec import runtime as rt
from frtspec.runtime import receipt
from hosts import tiny

EXPERTS = 5


def host(*, idle: bool) -> nn.Module:
    """One layer with five experts, two a row. ``idle``: of two opposite pairs one of each likes
    a row, and the fifth, which likes nothing, always comes after them."""
    torch.manual_seed(3)
    config = transformers.Qwen3MoeConfig(
        vocab_size=tiny.VOCAB,
        hidden_size=64,
        intermediate_size=96,
        moe_intermediate_size=3328,
        num_experts=EXPERTS,
        num_experts_per_tok=2,
        norm_topk_prob=True,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
    )
    model = transformers.Qwen3MoeForCausalLM(config)
    tiny.randomise(model)
    if idle:
        with torch.no_grad():
            router = model.model.layers[0].mlp.gate.weight
            router[1], router[3], router[4] = -router[0], -router[2], 0
    return model.eval().requires_grad_(False)


def build(model: nn.Module, **options) -> rt.Plan:
    options = {"observations": tiny.QWEN3_MOE.samples(3), "rungs": ("emulate",)} | options
    return rt.build(
        HOST,
        model,
        lambda sample: model(**sample),
        scheme="nvfp4_dynamic",
        structures=("moe_experts",),
        **options,
    )


def test_a_bank_whose_experts_were_all_used_binds() -> None:
    model = host(idle=False)
    (sample,) = tiny.QWEN3_MOE.samples(1, seed=7)
    untouched = model(**sample).logits
    with build(model) as plan:
        (record,) = (r for r in plan.seats if r.name == "experts[0]")
        assert record.state == "bound", record.reason
        assert plan.precision_spec["experts[0]"]["points"]["act_after_mul"]["dtype"] == "nvfp4"
        assert receipt.verify(plan.receipt)
        attached = model(**sample).logits
        assert plan.ledger()["experts[0]"].calls == 1
    assert not torch.equal(attached, untouched)
    assert torch.cosine_similarity(attached.flatten(), untouched.flatten(), dim=0) > 0.98
    assert torch.equal(model(**sample).logits, untouched)


def test_an_expert_that_no_row_went_to_is_named_and_stays_the_hosts(tmp_path) -> None:
    model = host(idle=True)
    with pytest.warns(rt.NothingBoundWarning):
        plan = build(model)
    (record,) = (r for r in plan.seats if r.name == "experts[0]")
    assert (record.state, record.code) == ("refused", "calibration.unseen")
    assert "went to 4 of 5" in record.reason
    assert record.reason in plan.explain(format="text")
    assert type(model.model.layers[0].mlp.experts).__name__ == "Qwen3MoeExperts"
    # A file of this calibration knows it too, whatever the one sample of this run shows.
    saved = plan.calibration.save(tmp_path / "idle.safetensors")
    with pytest.warns(rt.NothingBoundWarning):
        again = build(model, calibration=saved)
    assert again.seat("experts[0]").reason == record.reason


def test_held_out_samples_need_not_reach_every_expert() -> None:
    model = host(idle=False)
    few = [{"input_ids": torch.tensor([[5]])}]
    with pytest.warns(rt.NothingBoundWarning):
        plan = rt.attach(
            HOST,
            model,
            lambda sample: model(**sample),
            observations=tiny.QWEN3_MOE.samples(3),
            held_out=few,
            scheme="nvfp4_dynamic",
            structures=("moe_experts",),
            rungs=("emulate",),
        )
    record = plan.seat("experts[0]")
    assert record.code.startswith("gate."), record.reason  # it got that far: NVFP4 is coarse


def test_what_experts_hold_is_in_the_coverage_that_can_be_required() -> None:
    """The projections alone are a small part of a host whose weights are experts."""
    model = host(idle=False)
    (sample,) = tiny.QWEN3_MOE.samples(1)
    with rt.build(
        HOST,
        model,
        lambda s: model(**s),
        observations=[sample],
        scheme="fp8_static",
        rungs=("emulate",),
    ) as plan:
        assert plan.bound and plan.coverage.share < 0.05
        assert "mlp.experts.gate_up_proj" in plan.explain(format="text")
        plan.require(1)
        with pytest.raises(rt.Refusal) as caught:
            plan.require(1, coverage=0.5)
        assert caught.value.code == "plan.require" and "50.0% are required" in caught.value.what

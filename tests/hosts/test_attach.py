"""The whole path on tiny models of transformers' own classes: attach, gates, run, detach."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from frtspec.runtime import Plan
from hosts import tiny
from hosts.tiny import Family

FAMILIES = pytest.mark.parametrize("family", tiny.DENSE, ids=lambda family: family.name)
F32, BF16 = torch.float32, torch.bfloat16
CASES = [
    *(pytest.param(family, F32, id=f"{family.name}-f32") for family in tiny.FAMILIES),
    *(
        pytest.param(family, BF16, id=f"{family.name}-bf16")
        for family in (tiny.QWEN3, tiny.LLAMA, tiny.GEMMA3)
    ),
]


def attach(family: Family, model: nn.Module, **more: Any) -> Plan:
    options: dict[str, Any] = {"scheme": "fp8_static", "rungs": ("emulate",), **more}
    plan: Plan = family.generated().attach(
        model,
        lambda sample: model(**sample),
        observations=adapted(model, family.samples(8)),
        held_out=adapted(model, family.samples(2, seed=9)),
        **options,
    )
    return plan


def adapted(model: nn.Module, samples: list[dict[str, Tensor]]) -> list[dict[str, Tensor]]:
    """Samples with pixels in the model's dtype."""
    dtype = next(model.parameters()).dtype
    return [
        {name: t.to(dtype) if t.is_floating_point() else t for name, t in sample.items()}
        for sample in samples
    ]


@torch.no_grad()
def outputs(family: Family, model: nn.Module) -> list[Tensor]:
    """Logits, or a vision tower's last hidden state, of three samples."""
    found = [model(**sample) for sample in adapted(model, family.samples(3, seed=5))]
    return [out.logits if "logits" in out else out.last_hidden_state for out in found]


def modules(model: nn.Module) -> dict[str, int]:
    return {name: id(module) for name, module in model.named_modules()}


def cosine(a: list[Tensor], b: list[Tensor]) -> float:
    left, right = (torch.cat([t.double().flatten() for t in side]) for side in (a, b))
    return torch.nn.functional.cosine_similarity(left, right, dim=0).item()


@pytest.mark.parametrize(("family", "dtype"), CASES)
def test_every_seat_binds_and_the_host_comes_back(family: Family, dtype: torch.dtype) -> None:
    model = family.model(dtype)
    before, identities = outputs(family, model), modules(model)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    plan = attach(family, model)
    found = Counter(record.name.partition("[")[0] for record in plan.seats)
    assert found == family.seats
    # Per-tensor FP8 on a projection of random weights lands on either side of 0.999.
    # The form for norms narrows what a float32 host stores; one in bfloat16 has nothing to gain.
    norms = {r.name for r in plan.seats if r.seat.structure.name == "norm_fused"}
    narrow = {record.name for record in plan.seats if record.code == "impl.dtype"}
    # As the producer of a chain it hands on codes, in any dtype.
    joined = {chain.seats[0] for chain in plan.chains if chain.state == "joined"}
    assert narrow == (norms - joined if dtype == BF16 else set()), plan.explain()
    assert dtype == BF16 or norms <= set(plan.bound), plan.explain()
    unbound = [record for record in plan.seats if record.state != "bound"]
    off = {record.name: record.code for record in unbound if record.name not in narrow}
    others = {name: code for name, code in off.items() if code not in ("scheme", "seat.form")}
    assert set(others.values()) <= {"gate.boundary", "calibration.saturated"}, plan.explain()
    assert {name.partition("[")[0] for name in others} <= {"o", "vision_o"}, plan.explain()
    kept = {name.partition("[")[0] for name in off.keys() - others.keys()}
    assert not kept & family.bound, plan.explain()
    treated = outputs(family, model)
    assert not all(map(torch.equal, treated, before)), "nothing runs in place of the host"
    assert cosine(treated, before) > 0.99

    plan.detach()
    assert modules(model) == identities
    assert all(map(torch.equal, outputs(family, model), before))
    after = model.state_dict()
    assert list(after) == list(state)
    assert all(torch.equal(after[name], state[name]) for name in state)


@FAMILIES
def test_the_ledger_counts_every_call(family: Family) -> None:
    model = family.model()
    plan = attach(family, model)
    first = {name: entry.calls for name, entry in plan.ledger().items()}
    outputs(family, model)
    ledger = plan.ledger()
    assert set(ledger) == set(plan.bound)
    assert all(ledger[name].calls - first[name] >= 3 for name in ledger), ledger
    assert all(entry.fallbacks == 0 for entry in ledger.values()), ledger


@FAMILIES
def test_gates_say_what_they_judged(family: Family) -> None:
    plan = attach(family, family.model())
    for record in plan.seats:
        if record.code in ("scheme", "seat.form"):
            continue
        boundary = record.seat.boundary
        none = boundary is not None and boundary.none is not None
        expected = "seam" if none else "boundary"
        result = record.gate("boundary", "seam")
        assert result is not None, record.name
        assert (result.gate, result.label) == (expected, "held-out"), result
        assert (result.verdict == "pass") == (record.state == "bound"), result


@pytest.mark.parametrize("family", [tiny.QWEN3, tiny.LLAMA], ids=lambda family: family.name)
def test_only_the_structures_that_were_asked_for_bind(family: Family) -> None:
    plan = attach(family, family.model(), structures=("decoder_ffn",))
    assert plan.bound == tuple(f"ffn[{i}]" for i in range(tiny.LAYERS))
    others = [record for record in plan.seats if record.seat.structure.name != "decoder_ffn"]
    assert {record.state for record in others} == {"kept"}


def test_gemma3_says_why_it_has_no_full_boundary() -> None:
    plan = attach(tiny.GEMMA3, tiny.GEMMA3.model())
    result = plan.seat("ffn[0]").gate("seam")
    assert result is not None
    assert any("norms the FFN's output before adding the residual" in note for note in result.notes)
    assert "norms the FFN's output before adding the residual" in plan.report()


def test_two_models_of_one_class_do_not_touch_each_other() -> None:
    attached, other = tiny.LLAMA.model(), tiny.LLAMA.model()
    before = outputs(tiny.LLAMA, other)
    plan = attach(tiny.LLAMA, attached)
    assert all(map(torch.equal, outputs(tiny.LLAMA, other), before))
    plan.detach()
    assert all(map(torch.equal, outputs(tiny.LLAMA, attached), before))


def test_norms_of_siglip_in_bfloat16_are_refused_by_what_their_form_is_for() -> None:
    model = tiny.SIGLIP.model(BF16)
    before = outputs(tiny.SIGLIP, model)
    plan = attach(tiny.SIGLIP, model)
    norms = [record for record in plan.seats if record.seat.structure.name == "norm_fused"]
    assert norms and {record.code for record in norms} == {"structure.requires"}
    assert "dtype(x) is f32" in plan.seat("post").reason
    assert {name.partition("[")[0] for name in plan.bound} == {
        "attention",
        "qkv",
        "o",
        "mlp",
        "head",
    }
    plan.detach()
    assert all(map(torch.equal, outputs(tiny.SIGLIP, model), before))

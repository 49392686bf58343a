"""Chains on hosts of transformers: norms that hand codes to the projections behind them."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor, nn

from frtspec.runtime import FallbackWarning, Plan, receipt
from hosts.tiny import FAMILIES, LAYERS, Family

HOSTS = {family.name: family for family in FAMILIES}
CASES = [("llama", torch.bfloat16, "torch"), ("qwen3", torch.float32, "emulate")]


def attached(family: Family, model: nn.Module, rung: str, calls: int = 3) -> Plan:
    samples = family.samples(calls)
    thunks = [lambda sample=sample: model(**sample) for sample in samples]
    plan: Plan = family.generated().attach(
        model, thunks, scheme="fp8_static", rungs=(rung,), latency="skip"
    )
    return plan


@torch.no_grad()
def logits(family: Family, model: nn.Module) -> Tensor:
    found: Tensor = model(**family.samples(1, seed=3)[0]).logits
    return found


@pytest.mark.parametrize(("name", "dtype", "rung"), CASES, ids=[c[0] for c in CASES])
def test_codes_go_over_and_no_bit_changes(name: str, dtype: torch.dtype, rung: str) -> None:
    family = HOSTS[name]
    model = family.model(dtype)
    untouched = logits(family, model)
    with attached(family, model, rung) as plan:
        assert len(plan.chains) == 2 * LAYERS
        assert {chain.state for chain in plan.chains} == {"joined"}, plan.explain()
        assert plan.seat("input_norm[0]").form == f"fp8_wire on {rung}"
        before = [chain.carried for chain in plan.chains]
        joined = logits(family, model)
        assert [chain.carried for chain in plan.chains] == [count + 1 for count in before]
        assert all(row.clean for row in plan.ledger().values())
        producers = [chain.seats[0] for chain in plan.chains]
        assert not torch.equal(joined, untouched)
        for chain in plan.chains:
            assert chain.pair is not None
            chain.pair.broken = ("none", "both ends by themselves, for comparison")
        assert torch.equal(logits(family, model), joined)
        assert [row["state"] for row in plan.receipt["plan"]["chains"]] == ["joined"] * len(
            producers
        )
        assert receipt.verify(plan.receipt)
        assert "chain" in plan.explain()
    assert torch.equal(logits(family, model), untouched)


def test_another_reader_demotes_both_ends_and_is_named() -> None:
    family = HOSTS["llama"]
    model = family.model(torch.bfloat16)
    with attached(family, model, "torch") as plan:
        wanted = logits(family, model)
        norm = model.get_submodule("model.layers.0.input_layernorm")
        seen: list[Tensor] = []
        handle = norm.register_forward_hook(lambda m, args, y: seen.append(y * 2))
        with pytest.warns(FallbackWarning, match="exclusive_consumer no longer holds: aten.mul"):
            found = logits(family, model)
        handle.remove()
        assert seen[0].dtype == torch.bfloat16
        chain = plan.chains[0]
        assert chain.broken.startswith("exclusive_consumer: aten.mul")
        assert {n for n, row in plan.ledger().items() if row.detached} == set(chain.seats)
        # that call still ran to its end: the host's projections, on the values of the codes
        torch.testing.assert_close(found, wanted, rtol=0, atol=0.25)
        assert plan.chains[2].broken == ""  # the next layer's goes on
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            logits(family, model)


def test_what_was_seen_once_is_not_shown() -> None:
    family = HOSTS["llama"]
    model = family.model(torch.bfloat16)
    with attached(family, model, "torch", calls=1) as plan:
        chain = plan.chains[0]
        assert chain.state == "apart" and "repeats is not shown" in chain.reason
        assert plan.seat("qkv[0]").state == "bound"


def test_without_its_producer_a_chain_is_apart() -> None:
    family = HOSTS["llama"]
    model = family.model(torch.bfloat16)
    samples = [lambda s=s: model(**s) for s in family.samples(2)]
    plan = family.generated().attach(
        model,
        samples,
        scheme="fp8_static",
        structures=("qkv_pack",),
        rungs=("torch",),
        latency="skip",
    )
    with plan:
        assert plan.chains[0].reason.startswith("its producer runs on the host (structures)")
        assert plan.chains[0].carried == 0

"""Whatever host is drawn: it is attached within its gates or refused, and given back exactly."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from torch import nn

from frtspec.live import attach as live
from frtspec.runtime import Plan, Refusal, receipt
from frtspec.runtime.records import STATES
from tests.runtime.doors.random_hosts import ONE_OF_EACH, SHAPES, Shape, batches, made

SCHEMES = ("fp8_static", "fp8_dynamic", "int8_dynamic", "bf16_structural")
HEALTH = [HealthCheck.too_slow]


@example(ONE_OF_EACH[0])
@example(ONE_OF_EACH[1])
@given(SHAPES)
@settings(max_examples=3, deadline=None, suppress_health_check=HEALTH, derandomize=True)
def test_a_random_host(shape: Shape) -> None:
    there_and_back(shape)


@pytest.mark.slow
@given(SHAPES)
@settings(max_examples=60, deadline=None, suppress_health_check=HEALTH)
def test_many_random_hosts(shape: Shape) -> None:
    there_and_back(shape)


@pytest.mark.parametrize("shape", ONE_OF_EACH, ids=lambda shape: shape.share)
def test_the_named_hosts_share_what_they_say(shape: Shape) -> None:
    """With one layer, or without an MLP, a draw that says so shares nothing."""
    model = made(shape)
    first, last = model.layers[0], model.layers[-1]
    assert first is not last
    assert (first.mlp is last.mlp) == (shape.share == "mlp")
    assert (last.attn.o_proj.weight is first.attn.q_proj.weight) == (shape.share == "projection")
    assert (model.head.weight is model.embed.weight) == shape.tied


def there_and_back(shape: Shape) -> None:
    model = made(shape)
    before, base = everything(model), [model(ids) for ids in batches(shape, 2, offset=1)]
    try:
        plan = live.attach(
            model,
            model,
            observations=batches(shape, 3),
            held_out=batches(shape, 2, offset=1),
            scheme=SCHEMES[shape.seed % len(SCHEMES)],
            rungs=("emulate",),
            latency="skip",
            output_kind="values",
        )
    except Refusal as refusal:
        assert refusal.fix and refusal.code
    else:
        attached(model, shape, plan, base)
    assert_same(before, everything(model))
    for ids, theirs in zip(batches(shape, 2, offset=1), base, strict=True):
        assert torch.equal(model(ids), theirs)


def attached(model: nn.Module, shape: Shape, plan: Plan, base: list[torch.Tensor]) -> None:
    """Every seat is in one state with a reason; bound ones run, within what the receipt says."""
    assert all(record.state in STATES and record.reason for record in plan.seats)
    assert not [record for record in plan.seats if record.state == "failed"], plan.explain()
    assert receipt.verify(plan.receipt)
    shared = {id(p) for p in model.parameters() if places(model, p) > 1}
    with plan:
        ours = [model(ids) for ids in batches(shape, 2, offset=1)]
        ledger = plan.ledger()
        assert all(row.calls and not row.fallbacks for row in ledger.values())
        for record in plan.seats:
            if record.state == "bound":
                assert all(result.holds for result in record.gates)
        if plan.bound:
            judged = plan.unions[-1] if plan.unions else plan.units[-1]
            worst = min(
                float(torch.cosine_similarity(a.flatten(), b.flatten(), dim=0))
                for a, b in zip(ours, base, strict=True)
            )
            assert worst >= judged.host.metrics["worst_sample_cosine"] - 1e-5
        plan.consume()
        assert not [p for p in model.parameters() if p.is_meta and id(p) in shared]
        again = [model(ids) for ids in batches(shape, 2, offset=1)]
        assert all(torch.equal(a, b) for a, b in zip(ours, again, strict=True))


def places(model: nn.Module, parameter: nn.Parameter) -> int:
    return sum(p is parameter for m in model.modules() for p in m._parameters.values())


def everything(model: nn.Module) -> dict[str, object]:
    """Every module, parameter and buffer of a model with its bits, and all hooks."""
    found: dict[str, object] = {}
    for path, module in model.named_modules(remove_duplicate=False):
        found[path] = module
        found[f"{path} keys"] = sorted(module.__dict__)
        hooks = (module._forward_hooks, module._forward_pre_hooks, module._state_dict_hooks)
        found[f"{path} hooks"] = [len(held) for held in hooks]
        for name, value in (*module._parameters.items(), *module._buffers.items()):
            if value is not None:
                found[f"{path}.{name}"] = value
                found[f"{path}.{name} bits"] = value.detach().clone()
    return found


def assert_same(before: dict[str, object], after: dict[str, object]) -> None:
    assert list(before) == list(after)
    for name, held in before.items():
        now = after[name]
        if name.endswith(" bits"):
            assert torch.equal(held, now), name
        else:
            assert now is held if isinstance(held, nn.Module | torch.Tensor) else now == held, name

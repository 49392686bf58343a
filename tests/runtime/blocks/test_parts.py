"""Blocks whose form calls parts of the host: bound, judged, guarded, given back; on Wan's own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from frtspec import runtime as rt
from frtspec.runtime.blocks.parts import hosted
from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating import gates
from frtspec.runtime.seats.ledger import FallbackWarning
from frtspec.runtime.spec import HostPart, Seat
from tests.hosts.diffusion import WAN


@pytest.fixture(scope="module")
def wan() -> nn.Module:
    return WAN.model(torch.bfloat16)


@pytest.fixture(scope="module")
def attached(wan: nn.Module) -> Iterator[tuple[rt.Plan, Tensor, dict[str, nn.Module]]]:
    modules, before = dict(wan.named_modules()), run(wan)
    plan = rt.attach(
        WAN.binding(),
        wan,
        lambda sample: wan(**sample),
        observations=WAN.samples(2, torch.bfloat16),
        scheme="fp8_static",
        rungs=("emulate",),
    )
    yield plan, before, modules
    plan.detach()


def run(model: nn.Module, **changed: Any) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(**WAN.samples(1, torch.bfloat16)[0] | changed)[0]
    return found.clone()


def block_of(model: nn.Module) -> Seat:
    return next(seat for seat in WAN.binding().seats(model) if seat.name == "block[0]")


def test_a_block_is_bound_with_its_parts_and_owns_its_children(attached: Any) -> None:
    plan, before, _ = attached
    states = {record.name: record for record in plan.seats}
    for name in ("block[0]", "block[1]"):
        record = states[name]
        assert record.state == "bound" and record.form == "block_fp8_static on emulate"
        gates = {gate.gate: gate for gate in record.gates}
        # The reference with the host's own attentions inside is the block, bit for bit.
        assert gates["reference"].metrics == {"y": 0.0}
        assert gates["boundary"].metrics["cosine"] >= 0.999
    for name in ("qkv[0]", "ffn[0]", "o[1]"):
        assert states[name].state == "kept" and "owns its children" in states[name].reason
    assert not torch.equal(run(plan.model), before)
    assert plan.ledger()["block[0]"].fallbacks == 0


def test_calls_of_another_kind_run_the_host(attached: Any) -> None:
    """One timestep a batch is no table; what is inside must still be what was packed."""
    plan, _, _ = attached
    model, timestep = plan.model, torch.tensor([7])
    with plan.attachment.disabled():
        wanted = run(model, timestep=timestep)
    with pytest.warns(FallbackWarning, match="bound for 4 axes"):
        assert torch.equal(run(model, timestep=timestep), wanted)
    assert plan.ledger()["block[0]"].fallbacks == 1
    with plan.attachment.disabled():
        host = run(model)
    inner = model.blocks[0].attn1
    norm = inner.norm_q
    inner.norm_q = nn.Identity()
    try:
        with pytest.warns(FallbackWarning, match="norm_q"):
            run(model)
        assert "norm_q was replaced" in plan.ledger()["block[0]"].last_reason
    finally:
        inner.norm_q = norm
    count = plan.ledger()["block[0]"].calls
    run(model)
    assert plan.ledger()["block[0]"].calls == count + 1
    assert not torch.equal(run(model), host)


def test_threads_keep_their_own_values(attached: Any) -> None:
    plan, _, _ = attached
    samples = WAN.samples(2, torch.bfloat16)

    def call(place: int) -> Tensor:
        with torch.no_grad():
            return plan.model(**samples[place])[0].clone()

    wanted, found = [call(0), call(1)], {}

    def work(place: int) -> None:
        found[place] = [call(place) for _ in range(4)]

    threads = [threading.Thread(target=work, args=(place,)) for place in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place, results in found.items():
        assert all(torch.equal(result, wanted[place]) for result in results)


def test_the_host_comes_back_object_for_object(attached: Any) -> None:
    plan, before, modules = attached
    model = plan.model
    plan.detach()
    assert dict(model.named_modules()).keys() == modules.keys()
    assert all(module is modules[name] for name, module in model.named_modules())
    assert torch.equal(run(model), before)


def test_a_block_stays_where_values_inside_are_held(wan: nn.Module) -> None:
    plan = rt.build(
        WAN.binding(),
        wan,
        lambda sample: [wan(**sample) for _ in range(2)][-1],
        observations=WAN.samples(1, torch.bfloat16),
        scheme="fp8_static",
        rungs=("torch", "emulate"),
        prefix_cadence=True,
    )
    block = plan.seat("block[0]")
    plan.detach()
    assert block.state == "kept"
    assert "cross_k[0], cross_v[0] inside hold" in block.reason
    for name in ("cross_k[0]", "ffn[0]"):
        assert plan.seat(name).state == "bound", plan.seat(name).reason


def test_seats_inside_a_block_that_a_gate_refuses_do_not_say_that_it_owns_them(
    wan: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = gates.boundary

    def missed(bound: Any, *args: Any, **named: Any) -> gates.GateResult:
        result = real(bound, *args, **named)
        return replace(result, verdict="fail") if bound.seat.form == "block" else result

    def attached(**options: Any) -> rt.Plan:
        return rt.attach(
            WAN.binding(),
            wan,
            lambda sample: wan(**sample),
            observations=WAN.samples(2, torch.bfloat16),
            scheme="fp8_static",
            rungs=("emulate",),
            **options,
        )

    monkeypatch.setattr(gates, "boundary", missed)
    with pytest.warns(rt.NothingBoundWarning):
        plan = attached()
    block, inside = plan.seat("block[0]"), plan.seat("ffn[0]")
    assert (block.state, block.code) == ("refused", "gate.boundary")
    assert (inside.state, inside.code) == ("kept", "block")
    assert block.reason in inside.reason and "owns" not in inside.reason
    assert "structures=" in inside.fix
    with attached(structures=(inside.seat.structure.name,)) as plan:
        assert plan.seat("ffn[0]").state == "bound", plan.seat("ffn[0]").reason


def test_a_part_is_what_the_host_computes_there(wan: nn.Module) -> None:
    """Between the projections and the output of the host's own call, nothing is changed."""
    seat, block = block_of(wan), wan.blocks[0]
    made = hosted(wan, seat)
    assert made is not None and made.given == ("rotary_emb", "encoder_hidden_states")
    seen: dict[str, Any] = {}
    attention = block.attn1
    watched = [
        attention.to_q.register_forward_hook(lambda *a: seen.__setitem__("q", a[2])),
        attention.to_k.register_forward_hook(lambda *a: seen.__setitem__("k", a[2])),
        attention.to_v.register_forward_hook(lambda *a: seen.__setitem__("v", a[2])),
        attention.to_out[0].register_forward_pre_hook(lambda m, a: seen.__setitem__("o", a[0])),
        block.register_forward_pre_hook(lambda m, a: seen.__setitem__("args", a)),
    ]
    run(wan)
    for handle in watched:
        handle.remove()
    x, text, table, rotary = seen["args"]
    inputs, parts = made.split((x, table, rotary, text))
    assert inputs[0] is x and inputs[1] is table
    with torch.no_grad():
        found = parts["self_attention"](seen["q"], seen["k"], seen["v"])
        assert torch.equal(found, seen["o"])
        other = parts["self_attention"](seen["q"], seen["k"], seen["v"] * 2)
    assert not torch.equal(other, seen["o"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"given": ("rotary",)}, "blocks.0 takes no argument rotary"),
        ({"result": rt.InputOf("blocks.0.attn2.to_q")}, "lies outside of blocks.0.attn1"),
    ],
)
def test_a_part_that_is_not_there_is_refused(wan: nn.Module, change: Any, says: str) -> None:
    seat = block_of(wan)
    part: HostPart = replace(seat.parts["self_attention"], **change)
    with pytest.raises(Refusal, match=says) as refusal:
        hosted(wan, replace(seat, parts={**seat.parts, "self_attention": part}))
    assert refusal.value.code == "host.part"

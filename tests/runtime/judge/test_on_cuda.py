"""attach on a GPU: speed is really timed, everything else as on a CPU."""

from __future__ import annotations

import pytest
import torch

from frtspec import runtime as rt
from frtspec.runtime import receipt
from frtspec.runtime.gating import latency
from tests.runtime import hosts_small as small

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

WIDE = {"hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 16}


def host(dtype=torch.bfloat16, **sizes):
    return small.tiny_decoder(**{**WIDE, **sizes}).to("cuda", dtype)


def attach(model, *, length=1024, **options):
    batches = [ids.cuda() for ids in small.token_batches(3, batch=4, length=length)]
    options = {"scheme": "auto", "rounds": 7, "iters": 5, **options}
    return rt.attach(
        small.BINDING, model, model, observations=batches[:2], held_out=batches[2:], **options
    )


def test_auto_binds_what_gains_by_the_clock_and_gives_the_host_back():
    model = host()
    ids = small.token_batches(1, batch=4, length=1024, seed=9)[0].cuda()
    with torch.no_grad():
        untouched = model(ids)
    plan = attach(model)
    assert plan.scheme.name == "fp8_static" and not plan.names("failed"), plan.explain()
    assert plan.noise.bit_equal
    timed = [unit.latency for unit in plan.units if unit.latency and unit.latency.timed]
    assert timed, plan.explain()
    for speed in timed:
        low, high = speed.interval
        assert low <= speed.speedup <= high and speed.rounds == 7
    for unit in plan.units:
        gained = unit.latency is not None and unit.latency.verdict == "win"
        assert gained == (unit.verdict == "accepted"), plan.explain()
    for record in plan.seats:
        assert record.gate("parity").verdict == "pass", plan.explain()
    assert receipt.verify(plan.receipt)
    assert plan.receipt["environment"]["device"]["type"] == "cuda"
    plan.detach()
    with torch.no_grad():
        assert torch.equal(model(ids), untouched)


def test_asking_for_the_rung_does_not_bind_what_loses():
    plan = attach(host(), rungs=("torch",), length=16)
    losing = [unit for unit in plan.units if unit.latency.verdict != "win"]
    kept = {record.seat.structure.name for record in plan.seats if record.code == "latency"}
    assert {unit.name for unit in losing} == kept


def test_small_seats_are_kept_by_their_profit_rule():
    plan = attach(host(hidden_size=256, intermediate_size=512), length=64)
    assert plan.seat("ffn[0]").code == "qualify"


def test_the_same_host_twice_never_wins():
    model = host(hidden_size=512, intermediate_size=1024)
    ids = small.token_batches(1, batch=2, length=128)[0].cuda()

    def call():
        with torch.no_grad():
            model(ids)

    verdicts = []
    for seed in range(5):
        arms = [latency.Arm(name, lambda: None, call) for name in ("host", "attached")]
        clock = latency.device_clock(torch.device("cuda"))
        verdicts.append(latency.measure(*arms, clock=clock, seed=seed).verdict)
    assert "win" not in verdicts, verdicts


def test_emulation_is_never_timed():
    plan = attach(host(), rungs=("emulate",), scheme="fp8_static", length=64)
    assert {unit.latency.verdict for unit in plan.units} == {"not_applicable"}
    assert plan.bound
    plan.detach()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_other_dtypes_agree_with_their_reference(dtype):
    plan = attach(host(dtype), rungs=("torch",), scheme="fp8_static", latency="skip", length=64)
    for record in plan.seats:
        result = record.gate("reference")
        assert result is not None and result.verdict == "pass", result
    plan.detach()

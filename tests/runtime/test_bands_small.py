"""Bands from end to end: some row counts run the form, the others are the host's by design."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from frtspec import runtime as rt
from frtspec.runtime import receipt
from frtspec.runtime.gating import latency, trial
from frtspec.runtime.plan import Plan
from frtspec.runtime.seats.ledger import IN_A_ROW
from frtspec.runtime.spec import BandSpec, HostBinding
from tests.runtime import hosts_small as small

TORCH, EMULATE = small.FfnFp8Static.SPEC.rungs[1:]
DECODE = (BandSpec("M", 1, 4, (TORCH, EMULATE)),)
PROMPTS = small.token_batches(3, batch=1, length=7)


def banded(bands: tuple[BandSpec, ...] = DECODE) -> HostBinding:
    """The small host's binding, with bands for its feed-forward blocks and nothing else."""
    spec = dataclasses.replace(small.FfnFp8Static.SPEC, rungs=(), bands=bands)
    impl = type("Banded", (small.FfnFp8Static,), {"SPEC": spec})
    (route,) = (r for r in small.FP8_STATIC.routes if r.structure == "decoder_ffn")
    routes = (dataclasses.replace(route, impl=impl),)
    scheme = dataclasses.replace(small.FP8_STATIC, routes=routes)
    return dataclasses.replace(small.BINDING, schemes={"fp8_static": scheme})


def generate(model: small.TinyDecoder) -> Callable[[Tensor], Tensor]:
    """A prompt at once, then two steps of one token each; gives the last step's logits."""

    def forward(prompt: Tensor) -> Tensor:
        model(prompt)
        model(prompt[:, :1])
        return model(prompt[:, -1:])

    return forward


def attached(model: small.TinyDecoder, forward: Any = None, **options: Any) -> Plan:
    bands = options.pop("bands", DECODE)
    given = {"scheme": "fp8_static", "rungs": ("emulate",), "observations": PROMPTS}
    return rt.attach(banded(bands), model, forward or generate(model), **(given | options))


def test_rows_outside_the_bands_run_on_the_host_and_are_no_fallbacks() -> None:
    model, host = small.tiny_decoder(), small.tiny_decoder()
    plan = attached(model)
    assert plan.bound == ("ffn[0]", "ffn[1]"), plan.explain()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        for _ in range(IN_A_ROW + 1):
            assert torch.equal(model(PROMPTS[0]), host(PROMPTS[0]))
        assert not torch.equal(model(PROMPTS[0][:, :1]), host(PROMPTS[0][:, :1]))
    row = plan.ledger()["ffn[0]"]
    assert (row.calls, row.otherwise_host, row.fallbacks) == (IN_A_ROW + 2, IN_A_ROW + 1, 0)
    assert row.clean and not row.detached and row.reasons == {}
    text = plan.explain()
    assert "fp8_static on emulate for M in 1..=4, otherwise host" in text
    assert "1..=4 on emulate: 6, otherwise host: 3 (ffn[0..1])" in text
    assert f"{2 * (IN_A_ROW + 1)} of {2 * (IN_A_ROW + 2)} calls on the host by row count" in text


def test_a_guard_that_raises_does_not_raise_for_the_rows_of_the_host() -> None:
    model = small.tiny_decoder()
    attached(model, on_guard_fail="raise")
    with torch.no_grad():
        model(PROMPTS[0])


def test_the_receipt_tells_the_bands_and_verifies() -> None:
    plan = attached(small.tiny_decoder())
    (seat,) = (s for s in plan.receipt["plan"]["seats"] if s["name"] == "ffn[0]")
    assert seat["bands"] == [
        {"rows": "1..=4", "rung": "emulate", "calls": 6},
        {"rows": "otherwise host", "rung": None, "calls": 3},
    ]
    assert seat["precision"]["rows"] == ["1..=4"]
    assert receipt.verify(plan.receipt)


def test_the_amax_is_that_of_the_band() -> None:
    model = small.tiny_decoder()
    peaks: dict[int, float] = {}

    def see(_: Any, args: tuple[Tensor]) -> None:
        rows = args[0].shape[1]
        peaks[rows] = max(peaks.get(rows, 0.0), float(args[0].abs().max()))

    handle = model.layers[0].mlp.down_proj.register_forward_pre_hook(see)
    with torch.no_grad():
        for prompt in PROMPTS:
            generate(model)(prompt)
    handle.remove()
    assert peaks[7] > peaks[1]
    plan = attached(model, percentile=100)
    saturation = plan.seat("ffn[0]").gate("saturation")
    assert saturation is not None
    assert saturation.also["act_after_mul"]["calibrated_amax"] == pytest.approx(peaks[1])


def test_bands_with_rungs_of_their_own_are_each_judged() -> None:
    model, host = small.tiny_decoder(), small.tiny_decoder()
    bands = (BandSpec("M", 1, 4, (EMULATE,)), BandSpec("M", 5, None, (TORCH,)))
    plan = attached(model, bands=bands, rungs=("torch", "emulate"))
    assert plan.bound == ("ffn[0]", "ffn[1]"), plan.explain()
    label = "fp8_static on emulate for M in 1..=4, torch for M in 5.., otherwise host"
    assert plan.seat("ffn[0]").form == label
    parity = plan.seat("ffn[0]").gate("parity")
    assert parity is not None and parity.verdict == "pass"
    with torch.no_grad():
        for prompt in (PROMPTS[0], PROMPTS[0][:, :1]):
            assert not torch.equal(model(prompt), host(prompt))
    assert plan.ledger()["ffn[0]"].otherwise_host == 0


def test_traffic_that_never_reaches_a_band_is_refused_with_both_sides() -> None:
    model = small.tiny_decoder()
    plan = attached(model, model)
    record = plan.seat("ffn[0]")
    assert (record.state, record.code) == ("refused", "calibration.rows")
    assert "1..=4" in record.reason


def test_judged_samples_have_to_reach_a_band_too() -> None:
    model = small.tiny_decoder()
    forward = generate(model)
    plan = attached(
        model,
        lambda prompt: forward(prompt) if prompt.shape[1] == 7 else model(prompt),
        held_out=small.token_batches(2, batch=1, length=9, seed=4),
    )
    record = plan.seat("ffn[0]")
    assert (record.state, record.code) == ("refused", "calibration.rows")
    assert "1..=4" in record.reason


def test_speed_is_judged_on_a_sample_in_which_the_seats_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = small.tiny_decoder()
    long = small.token_batches(1, batch=1, length=9, seed=4)[0]
    forward, seen, timed = generate(model), [], []

    def run(prompt: Tensor) -> Tensor:
        seen.append(prompt.shape[1])
        return model(prompt) if prompt.shape[1] == 9 else forward(prompt)

    def measure(base: latency.Arm, treated: latency.Arm, **options: Any) -> latency.Latency:
        before = len(seen)
        treated.call()
        timed.extend(seen[before:])
        return latency.Latency("win", "as if")

    monkeypatch.setattr(trial, "enforce_rules", lambda *_: None)
    monkeypatch.setattr(trial, "_unjudgeable", lambda *_: None)
    monkeypatch.setattr(latency, "measure", measure)
    plan = attached(model, run, held_out=[long, PROMPTS[0]])
    assert timed and set(timed) == {7}, plan.explain()


# ---------------------------------------------------------------- compiled


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compiled_seat_guards_on_the_row_count(dynamic: bool) -> None:
    torch._dynamo.reset()
    model, host = small.tiny_decoder(), small.tiny_decoder()
    attached(model)
    graph = torch.compile(model.layers[0].mlp, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    theirs = host.layers[0].mlp
    with torch.no_grad():
        for rows in (2, 3, 4, 5, 7, 12, 1):
            x = torch.randn(1, rows, 32)
            assert torch.equal(graph(x), model.layers[0].mlp(x))
            assert torch.equal(graph(x), theirs(x)) == (rows > 4)
    torch._dynamo.reset()

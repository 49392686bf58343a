"""Projections looked up by step: right to the bit, and the host's for any step not seen."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from flashrt_gen import flux
from safetensors.torch import save_file
from torch import Tensor, nn

from frtspec import runtime as rt
from frtspec.runtime import Plan, Refusal, receipt
from frtspec.runtime.seats.ledger import FallbackWarning
from tests.hosts.diffusion import FLUX, Sample

STEPS = (0.9, 0.5, 0.1)
SAMPLES = FLUX.samples(4)
POOLED = SAMPLES[0]["pooled_projections"]
NORMS = ("norm1[0]", "norm1_context[0]", "norm1[1]", "norm1_context[1]", "single_norm[0]",
         "single_norm[1]", "norm_out")  # fmt: skip
NAME = "norm1[0]"


def denoising(
    model: nn.Module, steps: Sequence[float] = STEPS, pooled: Tensor | None = POOLED
) -> Callable[[Sample], Tensor]:
    """A few steps from one noise; the pooled text is part of the conditioning in Flux."""

    def forward(sample: Sample) -> Tensor:
        given = sample if pooled is None else {**sample, "pooled_projections": pooled}
        x = sample["hidden_states"]
        with torch.no_grad():
            for step in steps:
                now = {"hidden_states": x, "timestep": torch.tensor([step])}
                x = x - 0.1 * model(**(given | now)).sample
        return x

    return forward


OPTIONS = {
    "observations": SAMPLES[:2],
    "scheme": "none",
    "structures": ("adaln_producer",),
    "rungs": ("torch",),
    "step_tables": True,
}


@pytest.fixture
def model() -> nn.Module:
    return FLUX.model()


def built(model: nn.Module, forward: Any = None, **options: Any) -> Plan:
    return flux.build(model, forward or denoising(model), **(OPTIONS | options))


def seat(model: nn.Module) -> nn.Module:
    return model.get_submodule("transformer_blocks.0.norm1.linear")


def test_the_steps_of_calibration_are_looked_up(model: nn.Module) -> None:
    forward = denoising(model)
    before = [forward(sample) for sample in SAMPLES]
    modules = dict(model.named_modules())
    plan = flux.attach(model, forward, **OPTIONS, held_out=SAMPLES[2:3])
    assert plan.bound == NORMS, plan.explain("text")
    for sample, wanted in zip(SAMPLES, before, strict=True):
        assert torch.equal(forward(sample), wanted)
    for row in plan.ledger().values():
        assert row.calls == len(STEPS) * len(SAMPLES) and row.clean

    record = plan.seat(NAME)
    assert record.form == "step_table on torch" and record.built is not None
    found = {ruling.rule: ruling.outcome for ruling in record.rules}
    assert found["for step_table: steps(cond_in) <= 64"] == "holds"
    # Values of each seat are its own, the steps are kept once for all of them.
    values = 3 * sum(seat.bound.table.values[0].nbytes for seat in plan.seats if seat.bound)
    assert plan.memory.added == values + 3 * 32 * 4
    assert receipt.verify(plan.receipt).problems == ()
    assert receipt.schema() and plan.receipt["plan"]["options"]["step_tables"] is True
    plan.detach()
    assert dict(model.named_modules()) == modules


def test_an_unknown_step_runs_the_host_and_is_counted(model: nn.Module) -> None:
    other = denoising(model, (0.9, 0.3))
    wanted = other(SAMPLES[0])
    plan = built(model)
    with pytest.warns(FallbackWarning, match="an unknown step: none of the 3 that calibration saw"):
        assert torch.equal(other(SAMPLES[0]), wanted)
    row = plan.ledger()[NAME]
    assert (row.calls, row.fallbacks, row.reasons) == (2, 1, {"step": 1})
    plan.detach()

    plan = built(model, on_guard_fail="raise")
    with pytest.raises(Refusal) as refused:
        other(SAMPLES[0])
    assert (refused.value.code, refused.value.seat) == ("guard.step", NAME)
    plan.detach()


def test_a_step_is_compared_whole_and_not_by_its_fingerprint(model: nn.Module) -> None:
    plan = built(model)
    module = seat(model)
    locator = module._frt_table.locator
    near = locator.conds[0].clone()
    (elsewhere,) = ((set(range(near.numel())) - set(locator.places.tolist())).pop(),)
    near[0, elsewhere] += 1e-3
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        assert torch.equal(module(near), module._frt.host(near))
        assert plan.ledger()[NAME].fallbacks == 1
        module(locator.conds[0].clone()).zero_()
        again = module(locator.conds[0].clone())
        assert torch.equal(again, module._frt.host(locator.conds[0])), "the host wrote into a row"
    assert "wrote into row 0" in str(plan.ledger()[NAME].last_reason)
    plan.detach()


def test_changed_weights_and_traces_run_the_host(model: nn.Module) -> None:
    plan = built(model)
    module = seat(model)
    cond = module._frt_table.locator.conds[1].clone()
    torch.compiler.reset()
    with torch.no_grad():
        compiled = torch.compile(lambda x: module(x) * 2, backend="aot_eager", fullgraph=True)
        assert torch.equal(compiled(cond), module._frt.host(cond) * 2)
        module.weight.mul_(2)
        with pytest.warns(FallbackWarning, match="changed since"):
            assert torch.equal(module(cond), module._frt.host(cond))
    plan.detach()


def test_consumed_projections_come_back_for_an_unknown_step(
    model: nn.Module, tmp_path: Path
) -> None:
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    other = denoising(model, (0.9, 0.3))
    forward = denoising(model)
    wanted, known = other(SAMPLES[0]), forward(SAMPLES[0])
    plan = built(model, originals="consumed", checkpoint=tmp_path / "model.safetensors")
    assert plan.memory.freed > 0
    assert torch.equal(forward(SAMPLES[0]), known) and not plan.memory.restored
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        assert torch.equal(other(SAMPLES[0]), wanted)
    assert NAME in plan.memory.restored
    plan.detach()
    assert torch.equal(other(SAMPLES[0]), wanted)


# ---------------------------------------------------------------- what is refused


def refused_with(model: nn.Module, code: str, forward: Any = None, **options: Any) -> str:
    plan = built(model, forward, **options)
    record = plan.seat(NAME)
    assert (record.state, record.code) == ("refused", code), plan.explain("text")
    return record.reason


def test_conditioning_that_is_not_of_the_step_alone(model: nn.Module) -> None:
    reason = refused_with(model, "table.steps", denoising(model, pooled=None))
    assert "not of the step alone" in reason


def test_samples_with_other_numbers_of_steps(model: nn.Module) -> None:
    loops = [denoising(model, STEPS), denoising(model, STEPS[:2])]
    thunks = [lambda loop=loop: loop(SAMPLES[0]) for loop in loops]
    reason = refused_with(model, "table.steps", thunks, observations=None)
    assert "one sample has 3 steps, another 2" in reason


def test_too_many_steps_break_the_structures_rule(model: nn.Module) -> None:
    many = denoising(model, [0.01 * step for step in range(66)])
    reason = refused_with(model, "structure.requires", many, observations=SAMPLES[:1])
    assert "steps(cond_in) = 66" in reason


def test_a_rung_that_was_not_asked_for_and_a_flag_that_is_none(model: nn.Module) -> None:
    assert "asked for: emulate" in refused_with(model, "rung.none", rungs=("emulate",))
    with pytest.raises(Refusal) as refused:
        built(model, step_tables=3)
    assert refused.value.code == "option.step_tables"


def test_autocast_has_no_table(model: nn.Module) -> None:
    forward = denoising(model)

    def cast(sample: Sample) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return forward(sample)

    assert "autocast" in refused_with(model, "table.autocast", cast)


def test_without_the_option_the_scheme_decides(model: nn.Module) -> None:
    plan = built(model, step_tables=False)
    decision = plan.seat(NAME).decision
    assert decision is not None and decision.impl == "bf16"


def test_a_projection_of_two_linears_has_no_table(model: nn.Module) -> None:
    def seats(host: nn.Module) -> list[rt.Seat]:
        found = next(s for s in FLUX.binding().seats(host) if s.name == NAME)
        other = dataclasses.replace(
            found.slots["style_w"], path="transformer_blocks.0.ff.net.2.weight"
        )
        return [dataclasses.replace(found, slots={**found.slots, "norm_w": other})]

    binding = dataclasses.replace(FLUX.binding(), seats=seats)
    plan = rt.build(binding, model, denoising(model), **OPTIONS)
    assert plan.seat(NAME).code == "table.projection"

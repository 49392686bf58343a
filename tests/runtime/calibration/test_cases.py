"""Values that calibration meets in real hosts: zeros, denormals, steps, clipped traffic."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from frtspec.live.single import get
from frtspec.runtime import Refusal
from tests.runtime import hosts_small as small
from tests.runtime.calibration.support import attach, build

SCHEMES = ("fp8_static", "fp8_dynamic", "int8_dynamic")
X = torch.randn(6, 32, generator=torch.Generator().manual_seed(5))


def linear(**edit) -> nn.Linear:
    torch.manual_seed(0)
    module = nn.Linear(32, 48).eval().requires_grad_(False)
    for row, value in edit.items():
        module.weight[int(row[1:])] = value
    return module


def bias(module: nn.Linear) -> torch.Tensor:
    """What these forms make of the bias alone: they give bfloat16."""
    return module.bias.bfloat16().float()


def bound(module: nn.Module, scheme: str, *calibration: torch.Tensor) -> nn.Module:
    return get("linear_proj").bind(
        module, calibration=calibration or [X], scheme=scheme, rungs=("emulate",)
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_zero_row_gives_the_bias_and_leaves_the_others_alone(scheme) -> None:
    module = linear()
    part = bound(module, scheme)
    padded = torch.cat([X[:3], torch.zeros(1, 32), X[3:]])
    found = part(padded)
    assert torch.equal(found[3], bias(module))
    assert torch.equal(torch.cat([found[:3], found[4:]]), part(X))
    assert torch.equal(part(torch.zeros(2, 32)), bias(module).expand(2, -1))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("value", [0.0, 1e-41])
def test_a_weight_row_of_zeros_or_denormals_is_finite(scheme, value) -> None:
    module = linear(r7=value)
    found = bound(module, scheme)(X)
    assert torch.isfinite(found).all()
    assert torch.equal(found[:, 7], bias(module)[7].expand(len(X)))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_whole_weight_of_zeros_gives_the_bias(scheme) -> None:
    module = linear()
    module.weight.zero_()
    assert torch.equal(bound(module, scheme)(X), bias(module).expand(len(X), -1))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_inputs_so_small_that_they_have_no_normal_are_finite(scheme) -> None:
    part = bound(linear(), scheme, X * 1e-41) if scheme != "fp8_static" else bound(linear(), scheme)
    assert torch.isfinite(part(X * 1e-41)).all()


def test_only_zeros_are_no_signal() -> None:
    with pytest.raises(Refusal, match="no signal") as caught:
        bound(linear(), "fp8_static", torch.zeros(2, 32), torch.zeros(3, 32))
    assert caught.value.code == "calibration.zero"


# ---------------------------------------------------------------- steps


class Steps(small.TinyDecoder):
    """Runs its layers once a step on a value that halves each time."""

    steps = 4

    def forward(self, input_ids):
        hidden = self.embed_tokens(input_ids)
        for _ in range(self.steps):
            for layer in self.layers:
                layer(hidden, attention_mask=None)
            hidden = hidden / 2
        return self.lm_head(self.norm(hidden))


def test_steps_of_a_loop_share_the_largest_range_and_its_number_is_part_of_it(tmp_path) -> None:
    torch.manual_seed(0)
    model = Steps(small.TinyConfig()).eval()
    plan = build(model)
    with plan:
        assert "largest magnitude within a sample" in plan.calibration.method
        steps = plan.calibration.draft.seats["o[0]"].calls.per_sample
        assert set(steps) == {4}
        saved = plan.calibration.save(tmp_path / "four.safetensors")
        whole = plan.precision_spec["qkv[0]"]["points"]["x"]["scale"]
    model.steps = 1
    with build(model) as one:
        assert one.precision_spec["qkv[0]"]["points"]["x"]["scale"] == whole  # the first is largest
    with pytest.raises(Refusal) as caught:
        build(model, calibration=saved)
    assert caught.value.code == "calibration.steps"


# ---------------------------------------------------------------- traffic past what was seen


def test_traffic_past_the_calibrated_range_is_refused() -> None:
    served = 3 * torch.randn(1, 40, 32, generator=torch.Generator().manual_seed(1))
    served[..., 5] *= 50
    with pytest.raises(Refusal, match="the boundary gate is missed on 1 samples") as caught:
        get("linear_proj").bind(
            linear(),
            calibration=[X / 10],
            held_out=[served],
            scheme="fp8_static",
            rungs=("emulate",),
        )
    assert caught.value.code == "part.gate"
    dynamic = get("linear_proj").bind(
        linear(), calibration=[X / 10], held_out=[served], scheme="fp8_dynamic", rungs=("emulate",)
    )
    assert dynamic.certification.label == "held-out"


def test_the_gates_of_a_host_tell_how_much_room_is_left() -> None:
    model = small.tiny_decoder()
    with attach(model, small.token_batches(3)) as plan:
        told = [r.gate("saturation") for r in plan.seats if r.state == "bound"]
        static = [result for result in told if result.verdict != "not_applicable"]
        assert static and all(ratio > 0 for result in static for ratio in result.metrics.values())
        assert plan.calibration.samples == 3 and plan.calibration.percentile == 99.9


def test_a_batch_without_tokens_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        bound(linear(), "fp8_static", torch.zeros(0, 32))
    assert caught.value.code == "calibration.zero"

"""The gates on a small host: what each catches, and what it must let through."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

import pytest
import torch

from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating import gates, metrics, refusing
from frtspec.runtime.gating.reference import SeatReference
from frtspec.runtime.observation.observe import Capture, observe
from frtspec.runtime.rungs.ladder import bind_seat
from frtspec.runtime.spec import Bound, Boundary, Stat, Weight
from tests.runtime import hosts_small as small

AMAX = (Stat("amax", "tensor"),)


def capture_of(model, seat, batches=None, percentile=100.0):
    batches = small.token_batches() if batches is None else batches
    thunks = [lambda ids=ids: model(ids) for ids in batches]
    requests = {seat.name: {point: AMAX for point in seat.points}}
    return observe(model, [seat], requests, thunks, percentile=percentile, capture=Capture())


def agreement(model, seat, batches=None):
    captures = capture_of(model, seat, batches).captured(seat.name)
    assert captures
    return gates.reference_agreement(SeatReference(seat, model), captures)


# ---------------------------------------------------------------- reference


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["ffn[1]", "o[0]", "qkv[0]", "norm[1]"])
def test_the_right_reference_repeats_the_host(name, dtype):
    model = small.tiny_decoder().to(dtype)
    result = agreement(model, small.seat_named(model, name))
    assert result.verdict == "pass", result.reason


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_a_wrong_activation_is_caught_whatever_the_residual(scale):
    model = small.tiny_decoder()
    with torch.no_grad():
        model.embed_tokens.weight.mul_(scale)
    seat = small.seat_named(model, "ffn[0]")
    wrong = dataclasses.replace(seat, variants={**seat.variants, "activation": "gelu"})
    result = agreement(model, wrong)
    assert result.verdict == "fail" and "o is" in result.reason


def test_erf_and_tanh_gelu_are_told_apart_in_float32():
    model = small.tiny_decoder(hidden_act="gelu_pytorch_tanh")
    with torch.no_grad():
        for layer in model.layers:
            layer.mlp.gate_proj.weight.mul_(8)
    seat = small.seat_named(model, "ffn[0]")
    assert agreement(model, seat).verdict == "pass"
    for layer in model.layers:
        layer.mlp.act_fn = torch.nn.GELU()
    assert agreement(model, seat).verdict == "fail"


def test_the_order_of_rounding_in_a_norm_is_told_apart_in_bfloat16():
    model = small.tiny_decoder().to(torch.bfloat16)
    seat = small.seat_named(model, "ffn[0]")
    wrong = dataclasses.replace(seat, variants={**seat.variants, "norm_rounding": "after_weight"})
    assert agreement(model, seat).verdict == "pass"
    result = agreement(model, wrong)
    assert result.verdict == "fail" and result.reason.startswith("x_after_norm is")


def test_a_wrong_eps_is_caught():
    model = small.tiny_decoder()
    seat = dataclasses.replace(small.seat_named(model, "ffn[0]"), params={"eps": 0.1})
    assert agreement(model, seat).verdict == "fail"


def test_gate_and_up_exchanged_are_caught():
    model = small.tiny_decoder()
    seat = small.seat_named(model, "ffn[0]")
    slots = {**seat.slots, "w_gate": seat.slots["w_up"], "w_up": seat.slots["w_gate"]}
    assert agreement(model, dataclasses.replace(seat, slots=slots)).verdict == "fail"


def test_a_square_weight_in_the_wrong_layout_is_caught():
    model = small.tiny_decoder()
    seat = small.seat_named(model, "o[0]")
    slots = {"w": Weight(seat.slots["w"].path, "in_out")}
    assert agreement(model, dataclasses.replace(seat, slots=slots)).verdict == "fail"


def test_a_host_that_computes_nan_cannot_be_compared():
    model = small.tiny_decoder()
    seat = small.seat_named(model, "ffn[0]")
    captures = capture_of(model, seat).captured(seat.name)
    captures[0].outputs["y"][0, 0] = math.nan
    result = gates.reference_agreement(SeatReference(seat, model), captures)
    assert result.verdict == "failed" and "NaN" in result.reason


def test_nothing_captured_is_no_agreement():
    model = small.tiny_decoder()
    reference = SeatReference(small.seat_named(model, "ffn[0]"), model)
    assert gates.reference_agreement(reference, []).verdict == "failed"


# ---------------------------------------------------------------- saturation


def amax_only(values):
    """An observation of one seat by its per-sample amax."""
    return SimpleNamespace(
        amax=lambda seat, point: max(values[point]),
        per_sample=lambda seat, point: values[point],
        per_call=lambda seat, point: (),
    )


def test_saturation_names_points_and_both_amax_worst_first():
    seat = small.seat_named(small.tiny_decoder(), "ffn[0]")
    calibrated = amax_only({"x_after_norm": (4.9,), "act_after_mul": (69.51,)})
    seen = amax_only({"x_after_norm": (14.03, 3.0), "act_after_mul": (2388.81, 2.0)})
    points = ["x_after_norm", "act_after_mul"]
    result = gates.saturation(seat, points, calibrated, seen)
    assert result.verdict == "warn"
    assert result.reason == (
        "act_after_mul reaches 2388.81, 34.4 times the calibrated 69.51; "
        "x_after_norm reaches 14.03, 2.86 times the calibrated 4.9"
    )
    assert result.also["act_after_mul"] == {"calibrated_amax": 69.51, "seen_amax": 2388.81}
    missed = gates.GateResult("boundary", "fail", "cosine 0.89 < 0.999", {"cosine": 0.89})
    refusal = refusing.refusal(missed, seat=seat.name, saturation=result)
    assert refusal.code == "calibration.saturated"
    assert "2388.81" in str(refusal) and "0.89 < 0.999" in str(refusal)


def test_clipping_that_does_no_harm_refuses_nothing():
    seat = small.seat_named(small.tiny_decoder(), "ffn[0]")
    clipped = gates.saturation(seat, ["p"], amax_only({"p": (1.0,)}), amax_only({"p": (1.67,)}))
    holds = gates.GateResult("boundary", "pass", "cosine 0.9999")
    refusing.require(seat, [clipped, holds])
    missed = gates.GateResult("boundary", "fail", "cosine 0.99 < 0.999")
    with pytest.raises(Refusal, match="calibration.saturated"):
        refusing.require(seat, [clipped, missed])


def test_a_miss_without_clipping_is_the_boundarys_own():
    seat = small.seat_named(small.tiny_decoder(), "ffn[0]")
    inside = gates.saturation(seat, ["p"], amax_only({"p": (1.0,)}), amax_only({"p": (1.15,)}))
    assert inside.verdict == "pass"
    missed = gates.GateResult("boundary", "fail", "cosine 0.99 < 0.999")
    with pytest.raises(Refusal, match="gate.boundary"):
        refusing.require(seat, [inside, missed])


def test_no_static_scale_nothing_to_saturate():
    seat = small.seat_named(small.tiny_decoder(), "norm[0]")
    nothing = amax_only({})
    assert gates.saturation(seat, [], nothing, nothing).verdict == "not_applicable"


def test_a_nan_amax_saturates():
    seat = small.seat_named(small.tiny_decoder(), "ffn[0]")
    result = gates.saturation(seat, ["p"], amax_only({"p": (1.0,)}), amax_only({"p": (math.nan,)}))
    assert result.verdict == "failed"


# ---------------------------------------------------------------- parity and boundary


def bound_ffn(model, seat, rung="emulate"):
    """The seat on a rung, its reference, and what the host shows it."""
    observation = capture_of(model, seat)
    route = small.FP8_STATIC.route("decoder_ffn", "mlp")
    bound = bind_seat(model, seat, route, observation, rungs=(rung,))
    return bound, SeatReference(seat, model), observation.captured(seat.name)


def test_parity_does_not_apply_to_the_emulation_itself():
    model = small.tiny_decoder()
    result = gates.kernel_parity(*bound_ffn(model, small.seat_named(model, "ffn[0]")))
    assert result.verdict == "not_applicable" and result.holds


def test_parity_bounds_the_torch_rung_by_k():
    model = small.tiny_decoder()
    result = gates.kernel_parity(*bound_ffn(model, small.seat_named(model, "ffn[0]"), "torch"))
    assert result.verdict == "pass", result.reason
    assert result.bounds[0] == Bound("row_rel_l2", "<=", gates.parity_bound(64))
    assert set(result.metrics) == {"row_rel_l2", "worst_row_rel_l2", "rel_l2"}
    assert "K = 64" in result.notes


def test_parity_grows_with_the_root_of_k():
    extra = [gates.parity_bound(k) - 2.0**-6 for k in (1024, 4096)]
    assert extra[1] == pytest.approx(2 * extra[0])


@pytest.mark.parametrize("factor", [0.5, 1.05, 2.0])
def test_parity_catches_a_scale_of_the_wrong_form(factor):
    model = small.tiny_decoder()
    bound, reference, captures = bound_ffn(model, small.seat_named(model, "ffn[0]"), "torch")

    def off(x):
        return type(bound.impl).run_torch(bound.impl, x) * factor

    bound.impl.run_torch = off
    assert gates.kernel_parity(bound, reference, captures).verdict == "fail"


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("gate", [gates.kernel_parity, gates.boundary])
def test_a_rung_that_gives_nan_fails_without_a_number(gate, value):
    model = small.tiny_decoder()
    bound, reference, captures = bound_ffn(model, small.seat_named(model, "ffn[0]"), "torch")
    bound.impl.run_torch = lambda x: torch.full((x.shape[0], 32), value)
    result = gate(bound, reference, captures)
    assert result.verdict == "failed" and not result.metrics and not result.holds


def test_the_boundary_includes_the_residual_and_the_seam_is_shown():
    model = small.tiny_decoder()
    bound, reference, captures = bound_ffn(model, small.seat_named(model, "ffn[0]"))
    result = gates.boundary(bound, reference, captures, label="held-out")
    assert result.gate == "boundary" and result.verdict == "pass" and result.label == "held-out"
    assert result.bounds == small.DECODER_FFN.boundary_gate
    assert result.also["seam"]["cosine"] < result.metrics["cosine"] <= 1.0


def test_the_boundary_gate_is_the_structure_reference_and_not_the_host():
    """Judged against the reference, so that host noise is not booked on the impl."""
    model = small.tiny_decoder()
    bound, reference, captures = bound_ffn(model, small.seat_named(model, "ffn[0]"))
    before = gates.boundary(bound, reference, captures).metrics
    for capture in captures:
        capture.outputs["y"].add_(100.0)
    assert gates.boundary(bound, reference, captures).metrics == before


def test_without_a_boundary_the_seam_judges_by_its_own_gate_and_says_so():
    model = small.tiny_decoder()
    seat = small.seat_named(model, "ffn[0]")
    seat = dataclasses.replace(seat, boundary=Boundary(none="the host norms the FFN's output"))
    bound, reference, captures = bound_ffn(model, seat)
    result = gates.boundary(bound, reference, captures)
    assert result.gate == "seam" and result.bounds == (Bound("cosine", ">=", 0.995),)
    assert "the host norms the FFN's output" in result.notes[0]


def test_a_missed_threshold_fails_with_both_numbers():
    model = small.tiny_decoder()
    seat = small.seat_named(model, "ffn[0]")
    strict = dataclasses.replace(seat.structure, boundary_gate=(Bound("cosine", ">=", 0.9999999),))
    bound, reference, captures = bound_ffn(model, dataclasses.replace(seat, structure=strict))
    result = gates.boundary(bound, reference, captures)
    assert result.verdict == "fail" and "misses >= 1" in result.reason
    assert refusing.refusal(result).code == "gate.boundary"


# ---------------------------------------------------------------- host


def logits(*agreeing):
    """Views of one position each: True where the top token is the reference's."""
    top = torch.tensor([[2.0, 1.0]])
    return [
        metrics.View("distribution", {"logits": top if same else top.flip(-1)}) for same in agreeing
    ]


@pytest.mark.parametrize("agreed, verdict", [(95, "pass"), (90, "warn"), (84, "low")])
def test_distribution_bands(agreed, verdict):
    reference = logits(*[True] * 100)
    treated = logits(*[i < agreed for i in range(100)])
    result = gates.host(reference, treated, "distribution", label="held-out")
    assert result.verdict == verdict and result.holds and result.label == "held-out"
    assert result.metrics["top1_agreement"] == agreed / 100


def at_angle(cosine):
    return metrics.View("values", {"y": torch.tensor([cosine, math.sqrt(1 - cosine**2)])})


@pytest.mark.parametrize("cosine, verdict", [(0.9995, "pass"), (0.996, "warn"), (0.9, "low")])
def test_value_bands(cosine, verdict):
    assert gates.host([at_angle(1.0)], [at_angle(cosine)], "values").verdict == verdict


def test_floors_are_hard_and_know_their_direction():
    pair = [at_angle(1.0)], [at_angle(0.9)]
    assert gates.host(*pair, "values", floors={"cosine": 0.8}).verdict == "low"
    missed = gates.host(*pair, "values", floors={"cosine": 0.95})
    assert missed.verdict == "fail" and "0.9 misses >= 0.95" in missed.reason
    assert gates.host(*pair, "values", floors={"max_abs": 0.1}).verdict == "fail"
    assert gates.host(*pair, "values", floors={"max_abs": 10}).verdict == "low"


def test_a_floor_on_another_kind_of_output_is_missed_not_ignored():
    result = gates.host([at_angle(1.0)], [at_angle(1.0)], "values", floors={"top1_agreement": 0.5})
    assert result.verdict == "fail" and "was not measured" in result.reason


@pytest.mark.parametrize("floors", [None, {"cosine": 0.999}, {"max_abs": 1.0}])
def test_nan_passes_no_band_and_no_floor(floors):
    broken = metrics.View("values", {"y": torch.tensor([1.0, math.nan])})
    result = gates.host([at_angle(1.0)], [broken], "values", floors=floors)
    assert result.verdict == "failed" and not result.metrics and not result.holds


def test_a_figure_within_the_hosts_own_noise_passes():
    result = gates.host([at_angle(1.0)], [at_angle(0.997)], "values", noise={"cosine": 0.9965})
    assert result.verdict == "pass" and "own noise" in result.reason
    worse = gates.host([at_angle(1.0)], [at_angle(0.996)], "values", noise={"cosine": 0.9965})
    assert worse.verdict == "warn"


def test_a_different_number_of_outputs_is_an_error():
    with pytest.raises(ValueError):
        gates.host([at_angle(1.0)], [], "values")

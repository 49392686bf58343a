"""What a scheme decides for each seat, by which figures, and that it is told."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from frtspec import runtime as rt
from frtspec.runtime import decisions, receipt
from frtspec.runtime.decisions import Amount, Condition, Evidence
from frtspec.runtime.eligibility import schemes
from frtspec.runtime.plan import Plan
from frtspec.runtime.spec import HostBinding, Route, Stat
from tests.runtime import hosts_small as small
from tests.runtime.bind.support import watch

OUTLIER = decisions.amax() > 20 * decisions.median_amax()


def deciding(condition: Condition, **changes: Any) -> HostBinding:
    """The small host's binding, each FP8 route with a condition."""
    routes = tuple(
        dataclasses.replace(route, keep_when=condition, **changes) if route.stats else route
        for route in small.FP8_STATIC.routes
    )
    scheme = dataclasses.replace(small.FP8_STATIC, name="deciding", routes=routes)
    return dataclasses.replace(small.BINDING, schemes={"deciding": scheme})


def with_outlier() -> small.TinyDecoder:
    """A host whose second block makes activations far beyond those of all the others."""
    model = small.tiny_decoder()
    with torch.no_grad():
        model.layers[1].mlp.up_proj.weight *= 400
        model.layers[1].mlp.down_proj.weight /= 400
    return model


def attach(model: small.TinyDecoder, condition: Condition, **options: Any) -> Plan:
    given = {"scheme": "deciding", "rungs": ("emulate",), "observations": small.token_batches(3)}
    return rt.attach(deciding(condition), model, model, **(given | options))


# ---------------------------------------------------------------- one planted outlier


def test_a_planted_outlier_is_kept_and_the_reason_has_both_numbers() -> None:
    plan = attach(with_outlier(), OUTLIER)
    record = plan.seat("ffn[1]")
    assert (record.state, record.code) == ("kept", "scheme")
    (figure,) = record.decision.figures
    assert figure.left == "amax" and figure.right == "20 * median(amax)" and figure.holds
    assert figure.left_value > figure.right_value > 0
    for part in (
        "scheme deciding keeps the host",
        f"amax {figure.left_value:.4g} at act_after_mul > ",
        f"20 * median(amax) = {figure.right_value:.4g}",
    ):
        assert part in record.reason and part in plan.explain()
    assert {name for name in plan.names("kept")} == {"ffn[1]"}, plan.explain()
    assert f"  decision   keep: {record.reason}" in plan.report()
    assert "ffn[0]" in plan.bound


def test_the_same_host_without_the_outlier_keeps_nothing() -> None:
    plan = attach(small.tiny_decoder(), OUTLIER)
    assert "ffn[1]" in plan.bound
    decision = plan.seat("ffn[1]").decision
    assert decision.outcome == "use" and not decision.figures[0].holds
    assert "is not >" in decision.reason


def test_the_receipt_has_one_decision_a_seat() -> None:
    plan = attach(with_outlier(), OUTLIER)
    assert receipt.verify(plan.receipt)
    told = {seat["name"]: seat["decision"] for seat in plan.receipt["plan"]["seats"]}
    assert told.keys() == {seat.name for seat in plan.seats}
    assert all(decision["reason"] for decision in told.values())
    assert told["ffn[1]"]["outcome"] == "keep" and told["ffn[1]"]["figures"]
    assert told["ffn[0]"]["outcome"] == "use" and told["ffn[0]"]["impl"] == "fp8_static"
    assert told["norm[0]"]["condition"] is None


def test_an_edited_decision_is_found() -> None:
    plan = attach(with_outlier(), OUTLIER)
    plan.receipt["plan"]["seats"][3]["decision"]["reason"] = "it felt right"
    assert not receipt.verify(plan.receipt)


def test_what_the_device_decides_is_decided_before_anything_runs() -> None:
    model, ran = small.tiny_decoder(), []
    plan = rt.build(
        deciding(decisions.capability() < 8.9),
        model,
        lambda: ran.append(1),
        scheme="deciding",
        structures=("decoder_ffn",),
    )
    assert not ran
    assert "capability 0 (no CUDA device) < 8.9" in plan.seat("ffn[0]").reason
    assert plan.seat("o[0]").decision.outcome == "keep"


def test_a_seat_that_was_settled_before_says_what_was_not_asked() -> None:
    plan = attach(small.tiny_decoder(), OUTLIER, structures=("linear_proj",))
    decision = plan.seat("ffn[0]").decision
    assert decision.outcome == "use" and "amax > 20 * median(amax) was not asked" in decision.reason


# ---------------------------------------------------------------- amounts


def evidence(**stats: Any) -> Evidence:
    model = small.tiny_decoder()
    seat = small.seat_named(model, "ffn[0]")
    measured = {"x_after_norm": tuple(stats.get("x", ())), "act_after_mul": (Stat("amax"),)}
    route = Route("decoder_ffn", "mlp", measured, small.FfnFp8Static)
    scheme = dataclasses.replace(small.FP8_STATIC, routes=(route,))
    return Evidence(seat, 8.9, watch(model, [seat], scheme=scheme, percentile=100))


EVERY = (
    Stat("amax", "channel"),
    Stat("amax", "block", size=16),
    Stat("second_moment", "channel"),
    Stat("histogram", bins=1024),
)


def test_every_amount_is_what_it_says() -> None:
    found = evidence(x=EVERY)
    seen = found.observation
    channels = seen.statistic("ffn[0]", "x_after_norm", EVERY[0])
    moments = seen.statistic("ffn[0]", "x_after_norm", EVERY[2])
    amax = float(channels.max())
    hidden = seen.amax("ffn[0]", "act_after_mul")
    samples = seen.per_sample("ffn[0]", "act_after_mul")
    wanted: dict[Amount, float] = {
        decisions.amax("x_after_norm"): amax,
        decisions.amax(): max(amax, hidden),
        decisions.median_amax(): (amax + hidden) / 2,
        decisions.spread("x_after_norm"): amax / float(channels.quantile(0.5)),
        decisions.rms("x_after_norm"): float(moments.mean()) ** 0.5,
        decisions.dispersion("act_after_mul"): max(samples) / sorted(samples)[1],
        decisions.most_rows("M"): 14,
        decisions.least_rows("M"): 14,
        decisions.dim("D"): 32,
        decisions.capability(): 8.9,
    }
    for amount, value in wanted.items():
        shown = amount.find(found)
        assert shown.number == pytest.approx(value), amount.text
        assert amount.text in shown.shown
    share = decisions.quantile("x_after_norm", 0.5).find(found).number
    assert 0 < share < amax


def test_amounts_are_joined_as_they_are_written() -> None:
    a, b = decisions.amax("x"), decisions.rms("x")
    assert (20 * a / (b + 1) - 2).text == "20 * amax(x) / (rms(x) + 1) - 2"
    assert (a - (b - 1)).text == "amax(x) - (rms(x) - 1)"
    assert (1 / a > 3 - b).text == "1 / amax(x) > 3 - rms(x)"
    found = evidence(x=EVERY)
    size = decisions.dim("D")
    assert ((size + 1) * 2 / 4 - 0.5).find(found).number == 16
    assert (100 - size).find(found).number == 68 and (64 / size).find(found).number == 2
    assert (size / (size - 32)).find(found).number == float("inf")


def test_conditions_hold_together_or_apart() -> None:
    small_, large = decisions.dim("D") >= 64, decisions.dim("D") <= 32
    found = evidence()
    both, either = decisions.all_of(small_, large), decisions.any_of(small_, large)
    assert not both.find(found).holds and either.find(found).holds
    assert both.find(found).reason == "D 32 is not >= 64"
    assert either.find(found).reason == "D 32 <= 32"
    assert len(either.find(found).figures) == 2
    assert not both.measured and decisions.all_of(large, OUTLIER).measured
    assert decisions.any_of(both, large).text == "(D >= 64 and D <= 32) or D <= 32"


# ---------------------------------------------------------------- every seat, every scheme


@pytest.mark.parametrize("name", list(small.BINDING.schemes))
def test_each_seat_gets_one_decision_with_a_reason(name: str) -> None:
    plan = rt.build(
        small.BINDING,
        small.tiny_decoder(),
        small.tiny_decoder(),
        scheme=name,
        observations=small.token_batches(1),
    )
    for record in plan.seats:
        assert record.decision is not None and record.decision.reason
        kept = plan.scheme.route(record.seat.structure.name, record.seat.seam).impl is None
        assert (record.decision.outcome == "keep") == kept
        assert not kept or record.reason == record.decision.reason


def test_the_version_of_a_structure_tells_routes_apart() -> None:
    one = Route("s", None, {}, None, "one", version=1)
    two = Route("s", None, {}, None, "two", version=2)
    scheme = dataclasses.replace(small.FP8_STATIC, routes=(one, two), otherwise="rest")
    assert [scheme.route("s", None, n).keep for n in (1, 2, 3)] == ["one", "two", "rest"]
    assert scheme.route("s", "cut", 1).keep == "rest"
    assert schemes.resolve(small.BINDING, "none", torch.device("cpu")).name == "none"

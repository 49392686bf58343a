"""A plan tells of itself: loud where nothing is bound, whole in every format."""

from __future__ import annotations

import html
import json
import re
import warnings

import pytest
import torch
from torch import nn

from frtspec import runtime as rt
from frtspec.runtime import receipt
from frtspec.runtime.reporting import costs
from tests.runtime import hosts_small as small


def attach(**options):
    model = small.tiny_decoder()
    options = {"scheme": "fp8_static", "rungs": ("torch",), "latency": "skip", **options}
    options.setdefault("structures", ("decoder_ffn",))
    plan = rt.attach(small.BINDING, model, model, observations=small.token_batches(2), **options)
    plan.detach()
    return plan


@pytest.fixture(scope="module")
def plan():
    return attach()


@pytest.fixture(scope="module")
def nothing():
    with pytest.warns(rt.NothingBoundWarning, match="NOTHING IS BOUND"):
        return attach(floors={"cosine": 0.99999999})


# ---------------------------------------------------------------- a no-op is loud


def test_the_first_line_says_that_nothing_is_bound(nothing):
    assert "NOTHING IS BOUND" in nothing.explain("text").splitlines()[0]
    assert json.loads(nothing.explain("json"))["summary"] == "nothing attached"


def test_require_raises_with_every_reason(nothing, plan):
    with pytest.raises(rt.Refusal) as refused:
        nothing.require()
    assert refused.value.code == "plan.require"
    assert nothing.seat("ffn[0]").reason in refused.value.__notes__[0]
    assert plan.require() is plan and plan.require(("ffn[0]", "ffn[1]")) is plan
    for wanted, told in (
        ({"seats": 3}, "2 seats are bound, 3 are required"),
        ({"seats": ("o[0]",)}, "o[0] is kept: not asked for"),
        ({"seats": ("zzz",)}, "zzz is no seat of this host"),
        ({"coverage": 0.9}, "49.4% of the parameters are bound, 90.0% are required"),
    ):
        with pytest.raises(rt.Refusal, match=re.escape(told)):
            plan.require(**wanted)


def test_strict_raises_and_leaves_the_host():
    model = small.tiny_decoder()
    before = dict(model.named_modules())
    with pytest.raises(rt.Refusal, match="0 seats are bound"):
        rt.attach(
            small.BINDING,
            model,
            model,
            observations=small.token_batches(2),
            scheme="fp8_static",
            strict=True,
        )
    assert dict(model.named_modules()) == before


def test_a_scheme_that_keeps_everything_by_name_is_no_surprise():
    with warnings.catch_warnings():
        warnings.simplefilter("error", rt.NothingBoundWarning)
        assert not attach(scheme="none", structures=None).bound


# ---------------------------------------------------------------- formats


def test_json_has_every_seat_once_with_its_whole_reason(plan):
    told = json.loads(plan.explain("json"))
    assert [seat["name"] for seat in told["seats"]] == [record.name for record in plan.seats]
    assert {seat["state"] for seat in told["seats"]} <= {"bound", "kept", "refused", "failed"}
    for seat, record in zip(told["seats"], plan.seats, strict=True):
        assert (seat["state"], seat["reason"], seat["fix"]) == (
            record.state,
            record.reason,
            record.fix,
        )
    assert told["costs"] == plan.receipt["costs"]


def test_html_has_what_the_text_has_and_runs_nothing(nothing):
    page = nothing.explain("html")
    for record in nothing.seats:
        assert html.escape(record.reason) in page
    assert "<script" not in page and page.startswith("<!DOCTYPE html>")


def test_a_reason_cannot_leave_its_cell(plan):
    from frtspec.runtime.reporting.explain import Explanation, Row, as_html

    row = Row(("bound", "<script>", "", "", "", "", "</td><script>alert(1)"), ("<b>",))
    page = as_html(Explanation(("<i>",), (row,), ()))
    assert "<script" not in page and "<b>" not in page and "<i>" not in page


def test_an_unknown_format_is_refused_with_the_nearest(plan):
    with pytest.raises(rt.Refusal, match="did you mean 'html'"):
        plan.explain("htm")


# ---------------------------------------------------------------- costs


class Slow(nn.Module):
    """Two parts: one with arithmetic and a clock, one that waits on the host."""

    def __init__(self, clock):
        super().__init__()
        self.fast, self.other, self.clock = nn.Linear(8, 8), nn.Linear(8, 24), clock
        self.fast.register_forward_hook(lambda *_: self.clock.tick(38.0))

    def forward(self, x):
        self.clock.tick(62.0)
        return self.other(self.fast(x))


class Clock:
    def __init__(self):
        self.now = 0.0

    def tick(self, seconds):
        self.now += seconds

    def __call__(self):
        return self.now


def test_the_share_of_the_seats_bounds_the_gain():
    clock = Clock()
    model, x = Slow(clock), torch.ones(4, 8)
    with torch.no_grad():
        found = costs.measure(lambda: model(x), {"fast": [model.fast]}, torch.device("cpu"), clock)
    found = costs.replace(found, bound=("fast",))
    assert found.flops.total == 2 * 4 * 8 * (8 + 24) and found.flops.of(("fast",)) == 0.25
    assert found.seconds.total == 100.0 and found.seconds.of(("fast",)) == pytest.approx(0.38)
    assert found.ceiling == pytest.approx(1 / 0.62)
    told = "\n".join(costs.told(found))
    assert "62.0% stays on the host (Amdahl): a run can get faster by at most 1.61x" in told
    assert "1.61x" not in "\n".join(costs.told(found, timed=False))
    assert not model.fast._forward_pre_hooks and len(model.fast._forward_hooks) == 1


def test_a_call_inside_another_seats_call_counts_once():
    clock = Clock()
    model, x = Slow(clock), torch.ones(4, 8)
    seats = {"all": [model], "fast": [model.fast]}
    with torch.no_grad():
        found = costs.measure(lambda: model(x), seats, torch.device("cpu"), clock)
    assert found.seconds.of(("all", "fast")) == 1.0 and "fast" not in found.seconds.by_seat


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_flops_are_those_that_torch_counts(mode):
    from torch.utils.flop_counter import FlopCounterMode

    model, ids = small.tiny_decoder(), small.token_batches(1)[0]
    with mode():
        with FlopCounterMode(display=False) as theirs:
            model(ids)
        mine = costs.measure(lambda: model(ids), {}, torch.device("cpu"))
    assert mine.flops.total == theirs.get_total_flops() > 0


def test_a_plan_has_its_costs_and_its_receipt_too(plan):
    assert plan.costs.note == "" and plan.costs.bound == plan.bound
    share = plan.receipt["costs"]["flops"]["bound"]
    assert 0.1 < share < 0.9
    assert f"bound seats do {share:.1%} of the" in plan.explain("text")
    assert "(Amdahl)" in plan.explain("text") and receipt.verify(plan.receipt)


def test_what_cannot_be_measured_is_a_note():
    def broken():
        raise ValueError("consumed")

    found = costs.of_host(nn.Linear(1, 1), [], broken, torch.device("cpu"))
    assert "ValueError: consumed" in found.note and found.ceiling is None
    assert list(costs.told(found)) == [found.note]


def test_a_receipt_of_another_version_is_told_from_an_edited_one(plan):
    old = {**plan.receipt, "schema": "frtspec.receipt/1"}
    (problem,) = receipt.verify(old).problems
    assert "it is of frtspec.receipt/1" in problem and receipt.SCHEMA in problem

"""Back-off inside a unit: which seats go, how many, and that the search ends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frtspec import runtime as rt
from frtspec.runtime import receipt
from frtspec.runtime.gating import within
from frtspec.runtime.gating.gates import GateResult
from frtspec.runtime.gating.units import Unit
from tests.runtime import hosts_small as small


@dataclass
class Said:
    accurate: bool


def record(name, rel_l2=None):
    result = None if rel_l2 is None else GateResult("boundary", "pass", "", {"rel_l2": rel_l2})
    return SimpleNamespace(name=name, open=True, gate=lambda *_: result)


@given(st.integers(1, 60), st.integers(0, 60), st.integers(0, 40))
def test_the_fewest_go_that_have_to_and_trials_are_bounded(count, needed, budget):
    asked = []

    def trial(drop):
        asked.append(drop)
        return Said(drop >= needed)

    found = within.search(count, trial, budget)
    assert [drop for drop, _ in found.trials] == asked and len(asked) <= budget
    assert len(set(asked)) == len(asked) and all(0 < drop < count for drop in asked)
    if found.dropped is not None:
        assert found.dropped >= needed and found.outcome.accurate
    if budget >= 2 * count.bit_length() + 1:
        assert found.dropped == (max(needed, 1) if max(needed, 1) < count else None)


def test_the_furthest_goes_first_and_of_equal_ones_the_last_on_the_host():
    records = [record("a", 0.1), record("b", 0.3), record("c"), record("d", 0.1)]
    order = within.groups(Unit("u", "structure", records))
    assert [[r.name for r in group] for group in order] == [["b"], ["d"], ["a"], ["c"]]


def test_a_chain_goes_whole():
    records = [record("p", 0.0), record("c", 0.2), record("q", 0.1), record("d", 0.05)]
    tied = [frozenset({"p", "c"}), frozenset({"q", "d"})]
    order = within.groups(Unit("u", "chain", records, tied))
    assert [[r.name for r in group] for group in order] == [["p", "c"], ["q", "d"]]


# ---------------------------------------------------------------- on a host


def attach(floors, layers=4, **options):
    """A host whose second projection alone moves the output far."""
    model = small.tiny_decoder(num_hidden_layers=layers)
    marked = model.layers[1].self_attn.o_proj.weight[0, 0].item()

    class Impl(small.LinearFp8Static):
        def __init__(self, *, w, in_s, b=None):
            super().__init__(w=w, in_s=in_s, b=b)
            self.far = 1.5 if w[0, 0].item() == marked else 1.0

        def run_emulate(self, x):
            return super().run_emulate(x) * self.far

    routes = tuple(
        replace(route, impl=Impl) if route.structure == "linear_proj" else route
        for route in small.FP8_STATIC.routes
    )
    scheme = replace(small.FP8_STATIC, routes=routes)
    binding = replace(small.BINDING, schemes={"fp8_static": scheme, "none": small.NONE})
    options = {"structures": ("linear_proj",), **options}
    return rt.attach(
        binding,
        model,
        model,
        scheme="fp8_static",
        rungs=("emulate",),
        observations=small.token_batches(3),
        floors=floors,
        **options,
    )


def test_a_unit_that_misses_loses_its_most_sensitive_seat_and_keeps_the_rest():
    free = attach({})
    floor = {"rel_l2": free.units[0].host.metrics["rel_l2"] / 2}
    plan = attach(floor)
    assert [r.name for r in plan.seats if r.state == "bound"] == ["o[0]", "o[2]", "o[3]"]
    far = plan.seat("o[1]")
    assert (far.state, far.code) == ("refused", "gate.host")
    assert "without its 1 most sensitive of 4 it holds" in far.reason
    (unit,) = plan.units
    assert unit.verdict == "accepted" and unit.seats == ("o[0]", "o[2]", "o[3]")
    assert [(t.without, t.verdict) for t in unit.trials] == [
        ((), "refused"),
        (("o[1]",), "accepted"),
    ]
    told = plan.receipt["metrics"]["units"][0]["trials"]
    assert [row["without"] for row in told] == [[], ["o[1]"]] and receipt.verify(plan.receipt)


@pytest.mark.filterwarnings("ignore::frtspec.runtime.NothingBoundWarning")
@pytest.mark.parametrize(("trials", "made"), [(1, 0), (4, 3), (32, 4)])
def test_where_no_part_holds_the_unit_goes_whole_and_trials_are_bounded(trials, made):
    plan = attach({"rel_l2": 1e-12}, max_trials=trials)
    assert not plan.bound and {r.code for r in plan.seats if r.state == "refused"} == {"gate.host"}
    assert len(plan.units[0].trials) == made

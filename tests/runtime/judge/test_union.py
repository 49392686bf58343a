"""Units and the search for a union: what is one unit, in which order, what is dropped, and
that the search ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frtspec.runtime.gating.union import search
from frtspec.runtime.gating.units import Unit, units_of


def record(name, structure, routed=None):
    seat = SimpleNamespace(structure=SimpleNamespace(name=structure), routed=routed)
    return SimpleNamespace(name=name, seat=seat, open=True)


def tie(*seats, state="joined"):
    return SimpleNamespace(seats=seats, state=state)


@dataclass
class Said:
    verdict: str
    closeness: float = 1.0
    speedup: float | None = None


@dataclass
class Host:
    """Answers trials by a rule, and keeps what was asked."""

    holds: object
    verdict: str = "refused"
    asked: list = field(default_factory=list)

    def trial(self, units):
        names = frozenset(unit.name for unit in units)
        self.asked.append(names)
        return Said("accepted" if self.holds(names) else self.verdict)


def alone(**closeness):
    return [
        (Unit(name, "structure", [record(name, name)]), Said("accepted", c))
        for name, c in closeness.items()
    ]


# ---------------------------------------------------------------- units


def test_a_structure_a_joined_chain_and_a_route_are_one_unit_each():
    records = [
        record("norm[0]", "norm_fused"),
        record("qkv[0]", "qkv_pack"),
        record("attn[0]", "attention_core", SimpleNamespace(name="attention")),
        record("norm[1]", "norm_fused"),
        record("qkv[1]", "qkv_pack"),
        record("attn[1]", "attention_core", SimpleNamespace(name="attention")),
        record("final", "norm_fused"),
    ]
    chains = [
        tie("norm[0]", "qkv[0]"),
        tie("norm[1]", "qkv[1]"),
        tie("norm[0]", "final", state="apart"),
    ]
    found = {u.name: (u.kind, [r.name for r in u.records]) for u in units_of(records, chains, {})}
    assert found == {
        "norm -> qkv": ("chain", ["norm[0]", "qkv[0]", "norm[1]", "qkv[1]"]),
        "attention_core at attention": ("route", ["attn[0]", "attn[1]"]),
        "norm_fused": ("structure", ["final"]),
    }


def test_a_chain_with_an_end_that_is_settled_is_no_unit():
    (unit,) = units_of([record("norm[0]", "norm_fused")], [tie("norm[0]", "qkv[0]")], {})
    assert (unit.kind, unit.name) == ("structure", "norm_fused")


def test_chains_that_share_a_seat_are_one_unit():
    records = [record(n, n) for n in ("a", "b", "c")]
    (unit,) = units_of(records, [tie("a", "b"), tie("b", "c")], {})
    assert unit.name == "a -> b -> c" and unit.tied == [frozenset("abc")]


@given(st.permutations(["zeta", "alpha", "mid"]))
def test_the_largest_comes_first_whatever_it_is_called(names):
    records = [record(f"s{k}", name) for k, name in enumerate(names)]
    sizes = {"s0": 1.0, "s1": 3.0, "s2": 2.0}
    assert [u.name for u in units_of(records, [], sizes)] == [names[1], names[2], names[0]]
    assert [u.name for u in units_of(records, [], {})] == list(names), "then as the host runs them"


# ---------------------------------------------------------------- search


def test_all_together_is_one_trial():
    host = Host(lambda names: True)
    found = search(alone(a=0.9, b=0.8, c=0.7), host.trial, 8)
    assert len(host.asked) == 1 and [u.name for u in found.chosen] == ["a", "b", "c"]


def test_the_most_sensitive_unit_is_dropped_first():
    host = Host(lambda names: "b" not in names)
    found = search(alone(a=0.9, b=0.2, c=0.7), host.trial, 8)
    assert host.asked == [frozenset("abc"), frozenset("ac")]
    assert [u.name for u in found.chosen] == ["a", "c"] and set(found.dropped) == {"b"}


def test_what_was_dropped_without_need_comes_back():
    """c is dropped first for it is the most sensitive, but a is the one at fault."""
    host = Host(lambda names: "a" not in names)
    found = search(alone(a=0.9, b=0.8, c=0.1), host.trial, 16)
    assert {u.name for u in found.chosen} == {"b", "c"} or [u.name for u in found.chosen] == ["a"]
    host = Host(lambda names: not {"a", "b"} <= names)
    found = search(alone(a=0.9, b=0.8, c=0.1), host.trial, 16)
    assert {u.name for u in found.chosen} == {"a", "c"} and set(found.dropped) == {"b"}


def test_what_costs_speed_drops_the_smallest_gain():
    units = alone(a=0.1, b=0.9)
    units[0][1].speedup, units[1][1].speedup = 2.0, 1.1
    host = Host(lambda names: False, verdict="kept")
    found = search(units, host.trial, 8)
    assert [u.name for u in found.chosen] == ["a"] and set(found.dropped) == {"b"}


def test_without_trials_left_the_best_single_unit_stays_and_the_rest_is_told():
    units = alone(a=0.1, b=0.9, c=0.5)
    for (_, said), gain in zip(units, (1.1, 1.5, 1.2), strict=True):
        said.speedup = gain
    host = Host(lambda names: False)
    found = search(units, host.trial, 1)
    assert len(host.asked) == found.trials == 1
    assert [u.name for u in found.chosen] == ["b"]
    assert found.dropped["c"] is None and found.dropped["a"].verdict == "refused"


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=7),
    st.sets(st.frozensets(st.integers(0, 6), min_size=2, max_size=3), max_size=5),
    st.integers(1, 30),
)
def test_it_ends_within_its_trials_and_what_it_chooses_was_shown_to_hold(
    closeness, clashes, budget
):
    units = alone(**{f"u{k}": c for k, c in enumerate(closeness)})
    bad = [frozenset(f"u{k}" for k in clash) for clash in clashes]
    host = Host(lambda names: not any(clash <= names for clash in bad))
    found = search(units, host.trial, budget)
    chosen = frozenset(u.name for u in found.chosen)
    assert len(host.asked) == found.trials <= budget
    assert len(host.asked) == len(set(host.asked)), "no set is tried twice"
    assert chosen and (len(chosen) == 1 or (chosen in host.asked and host.holds(chosen)))
    assert chosen | set(found.dropped) == {u.name for u, _ in units}
    assert not chosen & set(found.dropped)


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_and_one_need_no_trial(count):
    host = Host(lambda names: False)
    found = search(alone(a=1.0)[:count], host.trial, 3)
    assert len(found.chosen) == count and not host.asked

"""Every call that a generated hub rung makes, against the package that stands for the Hub's: in
each combination of variants that the rung serves, eager and compiled whole, held against the
emulation of the impl and against the structure."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from frtspec.dims import at_least, between, dims, divides, equal, one_of
from frtspec.runtime import BoundImpl, harness
from frtspec.runtime.rungs import kernels
from tests.contracts import calls, staging
from tests.contracts.calls import HubRung, name_of, tried

pytestmark = pytest.mark.usefixtures("packages")

HUBS = calls.hub_rungs()
PAIRS = [(hub, case) for hub in HUBS for case in hub.cases()]

UNTRACED = {"fa4-cute-runtime"}
"""Packages whose entries have no fake: their rungs run eagerly only."""

TRACED = [pair for pair in PAIRS if pair[0].package not in UNTRACED]


def sampled(pairs: list[tuple[HubRung, harness.Case]]) -> list[Any]:
    """One case a rung in the default run, any of them; the others are slow."""
    chosen = random.Random(0)
    first = {hub: chosen.choice([c for h, c in pairs if h is hub]) for hub, _ in pairs}
    return [
        pytest.param(hub, case, marks=() if first[hub] is case else pytest.mark.slow)
        for hub, case in pairs
    ]


@pytest.mark.parametrize(("hub", "case"), PAIRS, ids=name_of)
def test_a_call_is_right(hub: HubRung, case: harness.Case) -> None:
    told = tried(hub, case).told(max(case.sizes.values()), hub.impl)
    assert not told, told


@pytest.mark.parametrize(("hub", "case"), sampled(TRACED), ids=name_of)
def test_a_call_is_compiled_whole(hub: HubRung, case: harness.Case) -> None:
    told = tried(hub, case, compiled=True, seed=1).told(max(case.sizes.values()), hub.impl)
    assert not told, told


@pytest.mark.parametrize("hub", HUBS, ids=name_of)
def test_every_rung_has_a_case_of_each_variant_that_it_names(hub: HubRung) -> None:
    cases = hub.cases()
    assert cases, f"no variants that {hub} serves"
    for axis, served in (*hub.impl.SPEC.only.items(), *hub.rung.only.items()):
        assert {case.variants[axis] for case in cases} <= set(served)
    for case in cases:
        assert all(rule.check(case.sizes) for rule in hub.rules()), case


@pytest.mark.parametrize("hub", HUBS, ids=name_of)
def test_the_version_that_a_rung_names_is_the_one_that_the_package_stands_for(
    hub: HubRung,
) -> None:
    found = kernels.load("hub", str(hub.rung.package), hub.rung.version, hub.rung.entries)
    assert calls.versions()[hub.package] == hub.rung.version
    assert found.module is staging.load(hub.package)
    assert found.origin.startswith("local override")


def test_an_impl_whose_rung_nothing_serves_is_not_passed_over() -> None:
    hub = HUBS[0]
    (axis, values) = next(iter(hub.module.SPEC.variants.items()))
    none = replace(hub, rung=replace(hub.rung, only={axis: ("no such",)}))
    assert values and not none.cases()
    with pytest.raises(AssertionError, match="no variants that"):
        test_every_rung_has_a_case_of_each_variant_that_it_names(none)


def test_a_rung_that_is_never_called_is_told() -> None:
    hub, case = PAIRS[0]
    spec: Any = hub.impl.SPEC
    idle: type[BoundImpl] = type("Idle", (hub.impl,), {"SPEC": replace(spec, admits={})})
    outcome = calls.Outcome()
    assert "not called" in outcome.told(64, idle)
    outside = replace(case, sizes=dict.fromkeys(case.sizes, 1))
    assert tried(hub, outside).told(64, hub.impl)


D, H, K, M, R = dims("D", "H", "K", "M", "R")


@pytest.mark.parametrize(
    ("rules", "sizes", "wanted"),
    [
        ((between(512, K, 1024), divides(16, K)), {"K": 5}, {"K": 512}),
        ((at_least(K, 100), divides(64, K)), {"K": 96}, {"K": 128}),
        ((equal(R, D), equal(D, 128)), {"R": 64, "D": 64}, {"R": 128, "D": 128}),
        ((one_of(H, 32, 48),), {"H": 40}, {"H": 48}),
        ((between(1, M, 3), at_least(D, 64)), {"M": 5, "D": 8}, {"M": 3, "D": 64}),
    ],
)
def test_sizes_are_the_smallest_that_rules_allow(
    rules: Any, sizes: dict[str, int], wanted: dict[str, int]
) -> None:
    assert calls.fitted(rules, sizes) == wanted


def test_sizes_that_no_rule_allows_are_told() -> None:
    with pytest.raises(ValueError, match="no sizes for|can't be held"):
        calls.fitted((at_least(K, 64), equal(K, 32)), {"K": 1})

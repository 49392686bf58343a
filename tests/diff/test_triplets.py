"""Every rule has a triplet, and both ways of it give the events that are written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from frtspec.diff.rules import RULES, Level
from tests.diff.triplets import GOLDEN, told

CASES = sorted(GOLDEN.iterdir())
WITHOUT = {"contract.changed"}
"""What no spec of today can bring about: tests/diff/test_facts.py makes it up."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_events(case: Path) -> None:
    wanted = (case / "events").read_text(encoding="utf-8")
    assert told(case) == wanted, "run `python -m tests.diff.triplets` where that is meant"


@pytest.mark.parametrize("rule", sorted(set(RULES) - WITHOUT))
def test_every_rule_has_a_triplet_that_shows_it(rule: str) -> None:
    there, _, back = (GOLDEN / rule / "events").read_text(encoding="utf-8").partition("b -> a")
    assert f" {rule}:" in there and back


def test_a_triplet_is_of_a_rule() -> None:
    assert {case.name for case in CASES} == set(RULES) - WITHOUT


def test_rows_are_told_apart_and_whole() -> None:
    assert len({rule.what for rule in RULES.values()}) == len(RULES)
    assert {rule.id for rule in RULES.values() if not rule.acceptable} == {
        "version.missing",
        "spec.retired",
    }
    for rule in RULES.values():
        assert rule.level == max(rule.providers, rule.consumers)
        assert not rule.reviewed or rule.level >= Level.VERSION

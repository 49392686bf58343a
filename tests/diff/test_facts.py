"""What holds for every comparison: nothing where nothing moved, and nothing unnamed."""

from __future__ import annotations

import dataclasses
import random
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frtspec.diag.source import SourceFile
from frtspec.diff.compare import Comparison
from frtspec.diff.dimrules import Known
from frtspec.diff.facts import Found, Subject, by_field
from frtspec.diff.rules import RULES, Level
from frtspec.diff.sides import Texts
from frtspec.dims import Poly, at_least, at_most, between, divides, equal
from frtspec.syntax.fmt import format_source
from tests.diff.triplets import GOLDEN, both_ways, compared

ROOT = Path(__file__).parents[2]
D, F = Poly.symbol("D"), Poly.symbol("F")
NAMES = sorted(case.name for case in GOLDEN.iterdir())


def one(text: str) -> Texts:
    return Texts("one", {"spec.frt": SourceFile.from_text("spec.frt", text)})


@cache
def text_of(rule: str, side: str) -> str:
    return (GOLDEN / rule / side / "spec.frt").read_text(encoding="utf-8")


def worst(found: Comparison) -> Level:
    return max((event.rule.level for event in found.events), default=Level.EDITORIAL)


@given(st.sampled_from(NAMES), st.sampled_from(["a", "b"]))
@settings(max_examples=12, deadline=None)
def test_a_side_against_itself_is_empty(rule: str, side: str) -> None:
    here = one(text_of(rule, side))
    assert compared(here, here).events == ()


@given(st.sampled_from(NAMES), st.integers(0, 10**6))
@settings(max_examples=12, deadline=None)
def test_comments_and_docs_are_editorial(rule: str, seed: int) -> None:
    text = text_of(rule, "a")
    lines = text.splitlines()
    at = random.Random(seed).randrange(3, len(lines))
    if '"""' not in lines[at]:
        lines.insert(at, "# Said in passing.")
    edited = "\n".join(lines).replace('"""A feed-forward part."""', '"""Another text."""') + "\n"
    found = compared(one(text), one(edited))
    assert found.events
    assert {event.rule.level for event in found.events} == {Level.EDITORIAL}
    assert not found.breaking


@given(st.sampled_from(NAMES), st.sampled_from(["a", "b"]))
@settings(max_examples=12, deadline=None)
def test_the_formatter_yields_no_fact_about_a_contract(rule: str, side: str) -> None:
    text = text_of(rule, side)
    ragged = text.replace("  ", " ")
    result = format_source(SourceFile.from_text("spec.frt", ragged))
    assert result.text is not None
    found = compared(one(ragged), one(result.text))
    assert worst(found) == Level.EDITORIAL


PLAIN = sorted(
    name
    for name in NAMES
    if not list((GOLDEN / name).rglob("spec.lock"))
    and name.split(".")[0] in ("point", "gate", "slot", "port", "variant", "reference", "param")
)


@given(st.sampled_from(PLAIN), st.sampled_from(["t version 1", "mine"]))
@settings(max_examples=12, deadline=None)
def test_an_unrelated_edit_improves_nothing(rule: str, what: str) -> None:
    """A declaration more on the newer side, or another docstring, leaves the class."""
    extra = (
        '\nscheme other {\n  otherwise keep "nothing"\n}\n'
        if what == "mine"
        else "\nstructure other version 1 {\n  dim M, D\n  in  x [rows M, D] : host\n"
        "  out y [rows M, D] : host\n  reference {\n    yield y = x\n  }\n}\n"
    )
    before, after = text_of(rule, "a"), text_of(rule, "b")
    alone = compared(one(before), one(after))
    both = compared(one(before), one(after + extra))
    assert worst(both) >= worst(alone)
    assert {e.fact.id for e in alone.events} <= {e.fact.id for e in both.events}


@pytest.mark.parametrize("rule", NAMES)
def test_a_moved_contract_is_always_named(rule: str) -> None:
    found, _ = both_ways(GOLDEN / rule)
    for pair in found.pairs:
        if pair.old is not None and pair.moved:
            mine = [e for e in found.events if e.pair == pair]
            assert max(e.rule.level for e in mine) > Level.EDITORIAL


@dataclasses.dataclass(frozen=True)
class Made:
    name: str
    shape: int


def test_what_no_comparator_names_counts_as_a_change() -> None:
    found = Found(Subject("structure", "made", 1))
    by_field(Made("made", 1), Made("made", 2), found, {}, "contract.changed")
    assert [(f.rule, f.item) for f in found.facts] == [("contract.changed", "shape")]
    assert RULES["contract.changed"].level == Level.VERSION


# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    "known, rule, follows",
    [
        ([at_least(D, 512)], at_least(D, 256), True),
        ([at_least(D, 256)], at_least(D, 512), False),
        ([], at_least(D, 1), True),
        ([between(64, D, 128)], at_most(D, 128), True),
        ([at_least(D, 64), at_least(F, 16)], at_least(D * F, 1024), True),
        ([at_least(D * F, 1024)], at_least(D, 64), False),
        ([divides(16, D)], divides(8, D), True),
        ([divides(8, D)], divides(16, D), False),
        ([divides(8, D), divides(4, F)], divides(32, D * F), True),
        ([divides(4, D), divides(6, D)], divides(12, D), True),
        ([], divides(4, 4 * D + 8 * F), True),
        ([equal(D, 2 * F)], equal(2 * F, D), True),
        ([equal(D, 64)], between(1, D, 64), True),
        ([at_least(2 * D, 7)], at_least(D, 4), True),
        ([at_most(D + F, 100)], at_most(D, 99), False),  # true, and not proven: counts as a change
    ],
)
def test_what_follows(known: list, rule: object, follows: bool) -> None:  # type: ignore[type-arg]
    assert Known.of(known).implies(rule) is follows  # type: ignore[arg-type]


_RULE = st.one_of(
    st.builds(at_least, st.sampled_from([D, F, D * F, D + 2 * F]), st.integers(1, 40)),
    st.builds(at_most, st.sampled_from([D, F, D * F, D + F]), st.integers(1, 40)),
    st.builds(divides, st.integers(1, 8), st.sampled_from([D, F, D * F, 2 * D])),
)


@given(st.lists(_RULE, max_size=4), _RULE)
@settings(max_examples=150, deadline=None)
def test_no_size_contradicts_what_was_proven(known: list, rule: object) -> None:  # type: ignore[type-arg]
    if not Known.of(known).implies(rule):  # type: ignore[arg-type]
        return
    for d in range(1, 17):
        for f in range(1, 17):
            env = {"D": d, "F": f}
            if all(one.check(env) for one in known):
                assert rule.check(env)  # type: ignore[attr-defined]

from __future__ import annotations

import itertools
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frtspec.diag.suggest import closest, did_you_mean

KEYWORDS = ["structure", "scheme", "seat", "seam", "slot", "gelu", "silu", "hidden_size"]


@pytest.mark.parametrize(
    "typed, meant",
    [
        ("sturcture", "structure"),
        ("structur", "structure"),
        ("sloot", "slot"),
        ("GeLU", "gelu"),
        ("hidden-size", "hidden_size"),
        ("hiden_sise", "hidden_size"),
        ("binding", None),
        ("x", None),
        ("", None),
        ("slot" * 100, None),
    ],
)
def test_closest(typed: str, meant: str | None) -> None:
    assert closest(typed, KEYWORDS) == meant


def test_ties_do_not_depend_on_order() -> None:
    for names in itertools.permutations(["w_gat", "w_gats", "w_gatx"]):
        assert closest("w_gate", names) == "w_gat"


def test_did_you_mean_is_a_sentence() -> None:
    assert did_you_mean("sloot", KEYWORDS) == "did you mean `slot`?"
    assert did_you_mean("binding", KEYWORDS) is None


@given(st.sampled_from([k for k in KEYWORDS if len(k) > 5]), st.data())
def test_one_edit_in_a_long_name_is_found(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name) - 1))
    letter = data.draw(st.sampled_from(string.ascii_lowercase))
    edits = [name[:at] + name[at + 1 :], name[:at] + letter + name[at:]]
    for typed in edits:
        if typed not in KEYWORDS:
            assert closest(typed, [name]) == name


@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=8))
def test_any_text_is_answered(name: str, candidates: list[str]) -> None:
    found = closest(name, candidates)
    assert found is None or found in candidates

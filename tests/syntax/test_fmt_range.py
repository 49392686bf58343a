"""Some lines of a file laid out: what is asked for, nothing lost, the rest as it was."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frtspec.diag.source import SourceFile
from frtspec.syntax.fmt_range import format_lines
from tests.syntax.support import parsed
from tests.syntax.test_fmt import SNIPPETS, TEXTS, bare, relaid, written

UGLY = """frt 1

scheme   a {
   # one
   status    draft
       otherwise   keep    "no"   # two
}

scheme b {
     otherwise   keep "x"
}
"""


def ranged(text: str, first: int, last: int) -> str:
    result = format_lines(SourceFile.from_text("case.frt", text), first, last)
    assert result.text is not None, result.diagnostics
    return result.text


def test_only_the_asked_lines_change() -> None:
    made = ranged(UGLY, 5, 5).split("\n")
    was = UGLY.split("\n")
    assert made[4] == "  status draft"
    assert made[:4] + made[5:] == was[:4] + was[5:]


def test_all_lines_are_the_whole() -> None:
    assert ranged(UGLY, 1, 99) == written(UGLY)


def test_lines_behind_the_end_are_none() -> None:
    assert ranged(UGLY, 50, 60) == UGLY


def test_a_member_on_several_lines_is_laid_out_whole() -> None:
    text = "frt 1\n\nstructure s version 1 {\n  dim\n     M,\n   D\n     dim   F\n}\n"
    assert ranged(text, 5, 5) == ("frt 1\n\nstructure s version 1 {\n  dim M, D\n     dim   F\n}\n")


def test_a_file_with_errors_is_refused() -> None:
    result = format_lines(SourceFile.from_text("a.frt", "frt 1\nscheme {\n"), 1, 2)
    assert result.text is None
    assert result.diagnostics


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(relaid(SNIPPETS, 12), relaid(TEXTS[:40], 20)), st.data())
def test_nothing_is_lost_in_any_range(text: str, data: st.DataObject) -> None:
    """The same tree and comments, and the second time nothing to do: so the contract and its
    digest, which know neither layout nor comments, are the same too."""
    before = parsed(text)
    if before.diagnostics:
        return
    lines = text.count("\n") + 1
    first = data.draw(st.integers(1, lines))
    last = data.draw(st.integers(first, lines))
    after = ranged(text, first, last)
    again = parsed(after)
    assert bare(again.file) == bare(before.file)
    assert Counter(c.text for c in again.comments) == Counter(c.text for c in before.comments)
    assert written(after) == written(text)


@pytest.mark.parametrize("text", TEXTS[:8])
def test_a_file_in_the_one_layout_stays(text: str) -> None:
    assert ranged(text, 1, text.count("\n")) == text

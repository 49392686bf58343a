"""Every construct: what it parses to, and what is said when it is written wrong."""

from __future__ import annotations

import re

import pytest

from frtspec.syntax.engine import Engine
from frtspec.syntax.fmt_tokens import nodes_in
from frtspec.syntax.parse import parse
from frtspec.syntax.tables import tables
from tests.syntax.support import Case, cases, framed, lines_before, meaning

ALL = list(cases())
GOOD = [case for case in ALL if case.tree is not None]
BAD = [case for case in ALL if case.errors]


@pytest.mark.parametrize("case", GOOD, ids=str)
def test_parses_to(case: Case) -> None:
    result = parse(framed(case.kind, case.snippet))
    assert [d.message for d in result.diagnostics] == []
    assert meaning(case.kind, result.file) == case.tree


@pytest.mark.parametrize("case", BAD, ids=str)
def test_reports(case: Case) -> None:
    source = framed(case.kind, case.snippet)
    before = lines_before(case.kind)
    found = []
    for d in parse(source).diagnostics:
        line, column = source.position(d.span.start)
        found.append((line - before, column, d.code, d.message))
    assert found == list(case.errors)


def test_one_mistake_is_one_finding() -> None:
    assert [str(case) for case in BAD if len(case.errors) > 1] == []


def _rules(case: Case) -> set[str]:
    tree = Engine(tables(), framed(case.kind, case.snippet).text).read()
    assert tree is not None
    return {node.rule for node in nodes_in(tree)}


def test_every_member_has_a_case_that_parses() -> None:
    seen = set().union(*(_rules(case) for case in GOOD))
    assert tables().members - {"error"} <= seen


def test_every_member_has_a_case_that_fails() -> None:
    """Two rules can begin with one word; each kind of block is a place of its own."""
    words = {(case.kind, word) for case in BAD for word in re.findall(r"[a-z_]+", case.snippet)}
    missing = []
    for case in GOOD:
        first = case.snippet.split(None, 1)[0].rstrip(":")
        if case.kind not in ("expression", "file") and (case.kind, first) not in words:
            missing.append(f"{case.kind}: {first}")
    assert sorted(set(missing)) == []

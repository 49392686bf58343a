"""Several mistakes in one file: each with its own finding, at its own place."""

from __future__ import annotations

from pathlib import Path

import pytest

from frtspec.diag.render import render
from frtspec.diag.source import SourceFile
from frtspec.syntax import ast
from frtspec.syntax.parse import ParseResult, parse
from tests.syntax.support import parsed

FILES = sorted((Path(__file__).parent / "recovery").glob("*.frt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_said(path: Path) -> None:
    """``name.frt`` gives ``name.txt``."""
    source = SourceFile.from_text(path.name, path.read_text("utf-8"))
    said = render(parse(source).diagnostics, {source.path: source})
    assert said == path.with_suffix(".txt").read_text("utf-8")


def members(result: ParseResult) -> list[str]:
    (decl,) = (d for d in result.file.decls if isinstance(d, ast.StructureDecl))
    return [type(member).__name__ for member in decl.members]


def test_a_repaired_member_is_kept() -> None:
    """A misspelt keyword and a missing mark leave no doubt about what was meant."""
    result = parsed("frt 1\nstructure s version 1 {\n  slto w [D F]\n  dim D\n}\n")
    assert members(result) == ["SlotDecl", "DimDecl"]


def test_a_guessed_member_is_left_out() -> None:
    """Nothing is said later about a name that was made up here."""
    result = parsed("frt 1\nstructure s version 1 {\n  slot [D]\n  dim D\n}\n")
    assert members(result) == ["ErrorNode", "DimDecl"]


def test_a_dropped_member_covers_its_text() -> None:
    text = "frt 1\nstructure s version 1 {\n  rung torch { lower a to b }\n  dim D\n}\n"
    result = parsed(text)
    (decl,) = result.file.decls
    assert isinstance(decl, ast.StructureDecl)
    dropped = decl.members[0]
    assert isinstance(dropped, ast.ErrorNode)
    assert text[dropped.span.start : dropped.span.end].strip() == "rung torch { lower a to b }"


def test_spans_are_those_of_the_text_where_a_brace_was_put() -> None:
    """The reading with a brace put in knows the offsets of the text without it."""
    text = (
        "frt 1\nstructure s version 1 {\n  reference {\n    yield y = x\n\n"
        "  gate boundary { cosine }\n  dim §D\n}\nscheme z { status draft }\n"
    )
    result = parsed(text)
    assert [d.code for d in result.diagnostics] == ["FRT0103", "FRT0109"]
    scheme = result.file.decls[-1]
    assert isinstance(scheme, ast.SchemeDecl)
    assert text[scheme.span.start : scheme.span.end] == "scheme z { status draft }"
    assert text[scheme.name.span.start : scheme.name.span.end] == "z"


def test_odd_indentation_alone_is_no_mistake() -> None:
    text = "frt 1\nstructure s version 1 {\ndim D\n      reference {\n yield y = x\n  }\n }\n"
    assert parsed(text).diagnostics == ()


def test_odd_indentation_does_not_add_findings() -> None:
    text = "frt 1\nstructure s version 1 {\ndim D,, M\n      reference {\n yield y = x\n  }\n }\n"
    assert [d.code for d in parsed(text).diagnostics] == ["FRT0105"]


def test_findings_are_in_order_and_the_same_each_time() -> None:
    text = FILES[0].read_text("utf-8")
    first, second = parsed(text), parsed(text)
    assert first == second
    starts = [d.span.start for d in first.diagnostics]
    assert starts == sorted(starts)

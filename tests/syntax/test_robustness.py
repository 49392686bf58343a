"""Any text gives a tree and findings, soon and without an exception."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frtspec.diag.source import SourceFile
from frtspec.syntax import ast
from frtspec.syntax.fmt import format_source
from frtspec.syntax.parse import MAX_ERRORS, ParseResult, parse
from frtspec.syntax.scanner import lexemes
from frtspec.syntax.tables import tables
from tests.syntax.support import catalog, framed, source_of

SECONDS = 8.0
"""Far above what any of these takes; quadratic behaviour would pass it."""

TEXTS = [source_of(path).text for path in catalog()]
WORDS = sorted({lexeme.text for text in TEXTS for lexeme in lexemes(text)} | tables().words)
INSIDE = "frt 1\nstructure s version 1 { reference { let a = "


def survives(text: str) -> ParseResult:
    """Parse, and hold what must hold for any text."""
    source = SourceFile.from_text("a.frt", text)
    begin = time.process_time()
    result = parse(source)
    formatted = format_source(source)
    assert time.process_time() - begin < SECONDS
    assert isinstance(result.file, ast.File)
    errors = [d for d in result.diagnostics if d.severity == "error"]
    assert (formatted.text is None) == bool(errors)
    for d in result.diagnostics:
        assert 0 <= d.span.start <= d.span.end <= len(text) + 1
        assert d.code.startswith("FRT0")
        said = f"{d.message} {d.help}"
        assert "__ANON" not in said
        assert not any(name in said for name in ("LBRACE", "RSQB", "LPAR", "COLON", "$END"))
    return result


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "# only a comment",
        "frt",
        "frt 1",
        "frt 1 {",
        "}",
        '"""',
        '"',
        "'",
        "\\",
        "\0",
        "\ufeff frt 1",
        "frt 1\r\rstructure",
        "\u2028\u2029\x85",
        "frt 1\nstructure é version 1 { dim ß }",
        'frt 1\nscheme s { otherwise keep "\U0001f600" }',
        "frt 1\n" + "structure s version 1 { } " * 300,
        "frt 9" * 200,
        "<<<<<<< HEAD\nfrt 1\n=======\nfrt 2\n>>>>>>>\n",
    ],
    ids=repr,
)
def test_small_oddities(text: str) -> None:
    survives(text)


DEEP = 10_000


@pytest.mark.parametrize(
    "text",
    [
        INSIDE + "(" * DEEP + "1" + ")" * DEEP + " } }",
        INSIDE + "(" * DEEP,
        INSIDE + "f(" * DEEP + ")" * DEEP + " } }",
        INSIDE + "-" * DEEP + "1 } }",
        INSIDE + "not " * DEEP + "present x } }",
        INSIDE + "1" + " + 1" * DEEP + " } }",
        INSIDE + "2" + " ** 2" * DEEP + " } }",
        INSIDE + "a" + ".b" * DEEP + " } }",
        INSIDE + "a" + "[1]" * DEEP + " } }",
        INSIDE + "x[" * DEEP,
        INSIDE + "match a { b => " * DEEP,
        INSIDE + "match a { b => " * DEEP + "1" + " }" * DEEP + " } }",
        "frt 1\nstructure s version 1 { reference {" + " each i {" * DEEP,
        "frt 1\nstructure s version 1 { reference {" + " each i {" * DEEP + "}" * DEEP + "} }",
        "frt 1\npipeline p version 1 { " + "stage s { " * DEEP + "}" * DEEP + " }",
        "frt 1\n" + "{" * DEEP,
        "frt 1\n" + "}" * DEEP,
        "frt 1\n" + "(" * DEEP + "]" * DEEP,
        "frt 1\nstructure s version 1 { dim " + "M, " * DEEP + "N }",
        "frt 1\nstructure s version 1 { " + "dim M\n" * DEEP + " }",
        "frt 1\nstructure s version 1 { " + "dmi M\n" * DEEP + " }",
        "frt 1\nbinding b { seat s : t version 1 at a" + ".b" * DEEP + " { } }",
        "frt 1\nbinding b { seat s : t version 1 at a" + ".{i}" * DEEP + " { } }",
        "frt 1\nbinding b { seat s : t version 1 at a.{" + "i + " * DEEP + "i} { } }",
        "frt 1\n" + '"' * DEEP,
        "frt 1\n" + "#" * DEEP,
        "frt 1\n" + "x" * 10 * DEEP,
    ],
    ids=lambda text: f"{text[:50]!r}…{len(text)}",
)
def test_deep_and_long(text: str) -> None:
    survives(text)


@pytest.mark.parametrize("number", ["9" * 100_000, "1." + "0" * 100_000, "1e" + "9" * 100_000])
@pytest.mark.parametrize(
    "text",
    [
        "frt {}",
        INSIDE + "{} } }",
        "frt 1\nstructure s version {} { }",
        "frt 1\nstructure s version {}",
    ],
)
def test_long_numbers(text: str, number: str) -> None:
    begin, _, end = text.partition("{}")
    result = survives(begin + number + end)
    if "{ }" in text or "} }" in text:
        assert [d.code for d in result.diagnostics] == ["FRT0111"]
    assert all(len(d.message) < 300 for d in result.diagnostics)


def test_a_number_in_range_is_exact() -> None:
    result = survives(framed("structure", "param a = 1e-300").text)
    assert result.diagnostics == ()


def test_no_more_findings_than_a_reader_can_use() -> None:
    result = survives(framed("structure", "dim M;\n" * 200).text)
    assert len(result.diagnostics) == MAX_ERRORS + 1
    assert result.diagnostics[-1].code == "FRT0112"


# ---------------------------------------------------------------- any text


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80))
def test_any_characters(text: str) -> None:
    survives(text)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40), st.sampled_from([" ", "\n"]))
def test_any_words(words: list[str], between: str) -> None:
    survives("frt 1\n" + between.join(words))


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A catalog file with up to eight tokens dropped, doubled, swapped, replaced or cut."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 8))):
        found = list(lexemes(text))
        if not found:
            break
        here = found[draw(st.integers(0, len(found) - 1))]
        there = found[draw(st.integers(0, len(found) - 1))]
        start, end = here.start, here.end
        match draw(st.integers(0, 6)):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:end] + " " + here.text + text[end:]
            case 2:
                text = text[:start] + there.text + text[end:]
            case 3:
                text = text[:start] + draw(st.sampled_from(WORDS)) + " " + text[start:]
            case 4:
                text = text[:start] + draw(st.characters()) + text[end:]
            case 5:
                text = text[: draw(st.integers(0, len(text)))]
            case 6:
                middle = (start + end) // 2
                text = (
                    text[:middle] + draw(st.sampled_from(["\n", "", "x", '"', "{"])) + text[middle:]
                )
    return text


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_any_mutation_of_the_catalog(text: str) -> None:
    survives(text)

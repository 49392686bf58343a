"""The four renderings, against golden files, and the places where columns go wrong."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from frtspec.diag.diagnostic import Diagnostic, in_order
from frtspec.diag.place import place, visible, width
from frtspec.diag.render import FORMATS, Format, render
from frtspec.diag.source import NOWHERE, SourceFile, Span
from frtspec.diag.text import LONGEST_EXCERPT

TEXT = """frt 1

structure ffn version 1 {
  dim M, D
\tin  x [rows Q, D] : host
  # größe 規格 b\u0301
  let ü = 規格 + nope
  reference {
    yield y = x
  }
}
"""
SOURCE = SourceFile.from_text("specs/ffn.frt", TEXT)
SOURCES = {SOURCE.path: SOURCE}


def span(needle: str, text: str = TEXT, path: str = SOURCE.path) -> Span:
    start = text.index(needle)
    return Span(path, start, start + len(needle))


def report() -> tuple[Diagnostic, ...]:
    """One of each kind: notes with and without a place, help, no place, several lines."""
    return in_order(
        [
            Diagnostic(
                "FRT0201",
                "no dim `Q` in this structure",
                Span(SOURCE.path, span("Q").start, span("Q").end),
                notes=((span("M, D"), "its dims are declared here"),),
                help="did you mean `D`?",
            ),
            Diagnostic(
                "FRT0202",
                "no value `nope`",
                span("nope"),
                severity="warning",
                notes=((None, "100% sure\nand a second line"),),
                help="declare it first\nor correct it",
            ),
            Diagnostic("FRT0301", "the block is wrong, as: a whole", span(TEXT[140:178])),
            Diagnostic("FRT0001", "this file is not UTF-8", Span("specs/raw, 1%.frt", 0, 0)),
            Diagnostic("FRT0801", "no such option", NOWHERE, severity="note"),
        ]
    )


@pytest.mark.parametrize("format", FORMATS)
def test_golden(format: Format, golden: Callable[[str, str], None]) -> None:
    text = render(report(), SOURCES, format)
    if format == "sarif":
        text = without_tool(text)
    golden(f"report.{format}", text)


def without_tool(log: str) -> str:
    """The log without what changes with every release and every new code page."""
    data = json.loads(log)
    driver = data["runs"][0]["tool"]["driver"]
    del driver["version"]
    driver["rules"] = [rule["id"] for rule in driver["rules"]]
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def test_golden_in_colour(golden: Callable[[str, str], None]) -> None:
    golden("report.ansi", render(report(), SOURCES, color=True))


@pytest.mark.parametrize("format", ["text", "github"])
def test_nothing_found_prints_nothing(format: Format) -> None:
    assert render((), SOURCES, format) == ""


@pytest.mark.parametrize("format", ["json", "sarif"])
def test_nothing_found_is_still_a_document(format: Format) -> None:
    assert json.loads(render((), SOURCES, format))


@pytest.mark.parametrize(
    "line, needle",
    [
        ("\tlet x = nope", "nope"),
        ("\t a\tb\tnope", "nope"),
        ("規格 = nope # 規", "nope"),
        ("b\u0301 = nope", "nope"),
        ("let ｎ = 規格", "規格"),
        ("\x1b[31m = nope", "nope"),
        ("a\u202e = nope", "nope"),
    ],
)
def test_caret_stands_under_the_span(line: str, needle: str) -> None:
    source = SourceFile.from_text("a.frt", f"frt 1\n{line}\n")
    text = render(
        [Diagnostic("FRT0201", "m", span(needle, source.text, "a.frt"))], {"a.frt": source}
    )
    shown, pointer = text.splitlines()[1:3]
    left = shown[: shown.index(visible(needle))]
    assert width(left) == pointer.index("^")
    assert pointer.count("^") == width(needle)
    assert "\x1b" not in text and "\u202e" not in text and "\t" not in text


def test_column_counts_code_points() -> None:
    source = SourceFile.from_text("a.frt", "規格\tx")
    found = place(Span("a.frt", 3, 4), {"a.frt": source})
    assert found is not None and (found.line, found.column, found.end_column) == (1, 4, 5)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_span_up_to_the_line_end_stays_on_its_line(ends: str) -> None:
    text = f"frt 1{ends}nope{ends}next"
    source = SourceFile.from_text("a.frt", text)
    start = text.index("nope")
    found = place(Span("a.frt", start, text.index("next")), {"a.frt": source})
    assert found is not None
    assert (found.line, found.column, found.end_line, found.end_column) == (2, 1, 2, 5)


def test_a_span_past_the_end_points_at_the_end() -> None:
    source = SourceFile.from_text("a.frt", "frt 1")
    text = render([Diagnostic("FRT0101", "m", Span("a.frt", 900, 950))], {"a.frt": source})
    assert text.splitlines()[0].startswith("a.frt:1:6: ")


def test_a_long_line_is_shown_around_the_caret() -> None:
    line = "a" * 5000 + "nope" + "b" * 5000
    source = SourceFile.from_text("a.frt", line)
    text = render([Diagnostic("FRT0201", "m", Span("a.frt", 5000, 5004))], {"a.frt": source})
    head, shown, pointer = text.splitlines()
    assert head.startswith("a.frt:1:5001: ")
    assert len(shown) < LONGEST_EXCERPT + 20
    assert shown[pointer.index("^") : pointer.index("^") + 4] == "nope"


def test_messages_are_never_cut() -> None:
    long = "x" * 5000
    for format in FORMATS:
        text = render([Diagnostic("FRT0201", long, NOWHERE, help=long)], {}, format)
        assert text.count(long) == 2


def test_order_does_not_depend_on_the_order_found() -> None:
    assert in_order(reversed(report())) == report()
    assert in_order([*report(), *report()]) == report()


def test_sarif_uris_are_quoted() -> None:
    log = json.loads(render(report(), SOURCES, "sarif"))
    uris = [
        place["physicalLocation"]["artifactLocation"]["uri"]
        for result in log["runs"][0]["results"]
        for place in result.get("locations", ())
    ]
    assert "specs/raw%2C%201%25.frt" in uris

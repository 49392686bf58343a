"""One layout: the same tree, every comment, and the second time nothing to do."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frtspec.diag.source import NOWHERE, SourceFile, Span
from frtspec.syntax.engine import Engine
from frtspec.syntax.fmt import format_source
from frtspec.syntax.scanner import skip_trivia
from frtspec.syntax.tables import tables
from tests.syntax.support import catalog, framed, parsed, source_of
from tests.syntax.test_cases import GOOD

LAYOUTS = sorted((Path(__file__).parent / "layouts").glob("*.frt"))


def bare(node: Any) -> Any:
    """A syntax tree without spans, and without how a docstring was laid out."""
    if isinstance(node, Span):
        return NOWHERE
    if isinstance(node, tuple):
        return tuple(bare(item) for item in node)
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        changed = {f.name: bare(getattr(node, f.name)) for f in dataclasses.fields(node)}
        return dataclasses.replace(node, **(changed | ({"raw": ""} if "raw" in changed else {})))
    return node


def written(text: str) -> str:
    result = format_source(SourceFile.from_text("case.frt", text))
    assert result.text is not None, result.diagnostics
    return result.text


def check(text: str) -> str:
    """Format, and hold the formatter to its promises."""
    before = parsed(text)
    assert before.diagnostics == ()
    after = written(text)
    again = parsed(after)
    assert again.diagnostics == ()
    assert bare(again.file) == bare(before.file)
    assert Counter(c.text for c in again.comments) == Counter(c.text for c in before.comments)
    assert written(after) == after
    assert after.endswith("\n") and not re.search(r"[ \t\r]\n|\t", after)
    assert "\n\n\n" not in re.sub(r'"""[\s\S]*?"""', "", after)
    return after


@pytest.mark.parametrize("path", catalog(), ids=lambda path: path.stem)
def test_catalog(path: Path) -> None:
    check(source_of(path).text)


@pytest.mark.parametrize("path", catalog(), ids=lambda path: path.stem)
def test_layout_is_lost_and_found(path: Path) -> None:
    """All of it on as few lines as comments allow, then formatted: still the same tree."""
    text = source_of(path).text
    check(re.sub(r"\n[ \t]*(?=[^ \t#\n])", " ", text) if '"""' not in text else text)


@pytest.mark.parametrize("case", GOOD, ids=str)
def test_every_construct(case: Any) -> None:
    check(framed(case.kind, case.snippet).text)


@pytest.mark.parametrize("path", LAYOUTS, ids=lambda path: path.stem)
def test_layout(path: Path) -> None:
    """``name.frt`` becomes ``name.out``."""
    assert check(path.read_text("utf-8")) == path.with_suffix(".out").read_text("utf-8")


def test_a_file_with_errors_is_left_alone() -> None:
    result = format_source(SourceFile.from_text("a.frt", "frt 1\nstructure s {\n"))
    assert result.text is None
    assert result.diagnostics


def test_line_ends_and_mark_go() -> None:
    assert written("frt 1\r\nscheme s {\r\n  status draft # c\r\n}\r\n") == (
        "frt 1\n\nscheme s {\n  status draft  # c\n}\n"
    )


# ---------------------------------------------------------------- any layout

BLANKS = st.sampled_from(
    [
        " ",
        "  ",
        "\n",
        "\n\n",
        "\n\n\n",
        "\t",
        " # a\n",
        "\n# b\n",
        "\n  # c # d\n\n",
        "  #\n",
        "\r\n",
    ]
)
SNIPPETS = [framed(case.kind, case.snippet).text for case in GOOD]
TEXTS = [source_of(path).text for path in catalog()]


def _gaps(text: str) -> list[tuple[int, int]]:
    """The ranges between tokens, as the parser reads them."""
    engine = Engine(tables(), text, keep_all=True)
    assert engine.read() is not None
    ends = [step.start + len(step.text) for step in engine.recent]
    return [(end, skip_trivia(text, end)) for end in ends]


@st.composite
def relaid(draw: st.DrawFn, texts: list[str], most: int) -> str:
    """A text with some of the gaps between its tokens filled anew."""
    text = draw(st.sampled_from(texts))
    gaps = _gaps(text)
    chosen = draw(st.lists(st.sampled_from(gaps), min_size=1, max_size=most, unique=True))
    for start, end in sorted(chosen, reverse=True):
        text = text[:start] + draw(BLANKS) + text[end:]
    return text


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(relaid(SNIPPETS, 12))
def test_any_layout_of_a_snippet(text: str) -> None:
    if parsed(text).diagnostics == ():
        check(text)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(relaid(TEXTS, 60))
def test_any_layout_of_the_catalog(text: str) -> None:
    if parsed(text).diagnostics == ():
        check(text)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='ab "\\\n\t #é', max_size=40))
def test_any_docstring(inside: str) -> None:
    if '"""' not in f"{inside}x" and not inside.endswith('"'):
        check(f'frt 1\nscheme s {{\n   """{inside}"""\n otherwise keep "x" }}')


def test_a_not_before_a_line_break_is_one() -> None:
    """Read as a call of something named `not`, it was laid out as a negation."""
    check(
        "frt 1\n\nstructure s version 1 {\n  variant a { b, c }\n"
        "  reference { let x = y when not\n    (a is b) }\n}\n"
    )

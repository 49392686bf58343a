"""spec.lock as a file, and what counts as moved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frtspec.diag.place import place
from frtspec.diag.source import SourceFile, Span
from frtspec.lock import STATUSES, Declared, Row, compare, declared, read_lock, render_lock
from frtspec.sema import analyse
from frtspec.syntax.parse import parse

ROOT = Path(__file__).parents[2]

A = Row("structure", "ffn", 1, "structures/ffn/v1.frt", "s1", "c1", "draft")
B = Row("impl", "fp8 for ffn.mlp", 1, "impls/ffn.frt", "s2", "c2", "draft")
C = Row("scheme", "none", None, "schemes/none.frt", "s3", "c3", "imported")


def now(*rows: Row) -> list[Declared]:
    return [Declared(row, Span(row.path, 0, 1)) for row in rows]


def messages(*rows: Row, locked: tuple[Row, ...]) -> list[str]:
    change = compare(now(*rows), locked, "spec.lock")
    return [d.message for d in change.refused or change.moved]


def test_round_trip() -> None:
    text = render_lock([C, A, B])
    rows, problems = read_lock(SourceFile.from_text("spec.lock", text))
    assert problems == ()
    assert rows == (B, C, A)
    assert render_lock(reversed(rows)) == text


_TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\ufffd"), max_size=20)


@given(
    st.builds(
        Row,
        _TEXT,
        _TEXT,
        st.none() | st.integers(0, 99),
        _TEXT,
        _TEXT,
        _TEXT,
        st.sampled_from(STATUSES),
    )
)
def test_any_row_survives(row: Row) -> None:
    rows, problems = read_lock(SourceFile.from_text("spec.lock", render_lock([row])))
    assert (rows, problems) == ((row,), ())


@pytest.mark.parametrize(
    "row, locked, wanted",
    [
        (A, (A,), []),
        (A, (), ["structure ffn version 1 is not in spec.lock"]),
        (
            replace(A, source_digest="s9"),
            (A,),
            ["structure ffn version 1: the text moved, the contract did not"],
        ),
        (
            replace(A, source_digest="s9", contract_digest="c9"),
            (A,),
            ["structure ffn version 1: the contract moved"],
        ),
        (
            replace(A, path="other.frt"),
            (A,),
            ["structure ffn version 1: the file moved from structures/ffn/v1.frt to other.frt"],
        ),
        (
            replace(A, source_digest="s9"),
            (replace(A, status="released"),),
            [
                (
                    "structure ffn version 1 is released, and its file changed: an editorial "
                    "change, which can ride with the next version"
                )
            ],
        ),
        (
            replace(A, source_digest="s9", contract_digest="c9"),
            (replace(A, status="released"),),
            ["structure ffn version 1 is released, and its file changed: a change of the contract"],
        ),
        (A, (replace(A, status="released"),), []),
        (A, (A, B), ["impl fp8 for ffn.mlp version 1 is locked and no longer declared"]),
        (
            A,
            (A, replace(B, status="released")),
            ["impl fp8 for ffn.mlp version 1 is released, and its declaration is gone"],
        ),
        (A, (A, replace(B, status="retired")), []),
    ],
)
def test_what_moved(row: Row, locked: tuple[Row, ...], wanted: list[str]) -> None:
    assert messages(row, locked=locked) == wanted


def test_a_status_set_by_hand_is_kept() -> None:
    released, retired = replace(A, status="released"), replace(B, status="retired")
    assert set(compare(now(A), (released, retired), "spec.lock").rows) == {released, retired}


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("[[declaration]\n", "1:14 not valid TOML"),
        ("rows = 1\n", "1:1 unknown key `rows`"),
        ("declaration = 1\n", "1:1 `declaration` is no list"),
        ("[[declaration]]\nkind = 3\n", "1:1 row 1: `kind` must be a text"),
        ("[[declaration]]\nkimd = 'x'\n", "1:1 row 1: unknown key `kimd`"),
        (render_lock([A, B]).replace("draft", "done", 1), "4:1 row 1: status `done` is none of"),
        (render_lock([A]).replace("version = 1", "version = '1'"), "4:1 row 1: `version` must"),
    ],
)
def test_a_broken_lock_is_told(text: str, wanted: str) -> None:
    source = SourceFile.from_text("spec.lock", text)
    _, problems = read_lock(source)
    (problem,) = problems
    found = place(problem.span, {"spec.lock": source})
    assert found is not None
    assert f"{found.line}:{found.column} {problem.message}".startswith(wanted)
    assert problem.code == "FRT0861"


@given(st.text(max_size=80))
def test_any_text_is_read(text: str) -> None:
    read_lock(SourceFile.from_text("spec.lock", "[[declaration]]\n" + text))


def test_no_two_declarations_of_the_catalog_share_a_row() -> None:
    """Impls of one name serve several versions of a structure."""
    paths = sorted((ROOT / "specs").rglob("*.frt"))
    sources = [SourceFile.from_text(path.name, path.read_text("utf-8")) for path in paths]
    program = analyse([(source, parse(source).file) for source in sources]).program
    rows = [item.row for item in declared(program)]
    assert len({row.key for row in rows}) == len(rows) == len(paths)
    assert compare(now(*rows), rows, "spec.lock").moved == ()

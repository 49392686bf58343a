"""The grammar has no conflict, and what was compiled from it is current."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from lark import Lark

from frtspec.resources import grammar_dir
from frtspec.syntax.compile import END, FILE, grammar_digest, load_tables, tables_text
from frtspec.syntax.grammar import compile_grammar
from frtspec.syntax.messages import mistakes
from frtspec.syntax.parse import parse
from frtspec.syntax.scanner import lexemes
from frtspec.syntax.tables import ERROR, tables
from frtspec.syntax.wording import wording
from tests.syntax.support import ROOT, catalog, parsed, source_of


@pytest.fixture(scope="module")
def lark() -> Lark:
    return compile_grammar()


def test_lark_resolves_nothing_in_silence() -> None:
    """Strict mode refuses every conflict of rules and every collision of terminals."""
    pytest.importorskip("interegular")
    compile_grammar(strict=True)


def test_strict_mode_would_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    from lark.exceptions import GrammarError

    from frtspec.syntax import grammar

    pytest.importorskip("interegular")
    clash = grammar.grammar_text().replace("| chain | group", "| chain | chain_too | group", 1)
    clash += '\nchain_too: "chain" NAME "." NAME "->" NAME "." NAME "wire" NAME\n'
    monkeypatch.setattr(grammar, "grammar_text", lambda: clash)
    with pytest.raises(GrammarError):
        compile_grammar(strict=True)


def test_the_committed_tables_are_those_of_the_grammar() -> None:
    """If this fails: python -m frtspec.syntax.compile"""
    assert load_tables()["grammar"] == grammar_digest()
    assert (grammar_dir() / FILE).read_text("utf-8") == tables_text()


@pytest.mark.parametrize("seed", ["1", "77"])
def test_the_tables_do_not_depend_on_hashing(seed: str) -> None:
    code = "from frtspec.syntax.compile import tables_text; print(tables_text(), end='')"
    made = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout == (grammar_dir() / FILE).read_text("utf-8")


def test_an_edited_grammar_is_compiled_on_the_spot(monkeypatch: pytest.MonkeyPatch) -> None:
    from frtspec.syntax import compile as compiling
    from frtspec.syntax import grammar

    edited = grammar.grammar_text() + "\n// edited\n"
    monkeypatch.setattr(grammar, "grammar_text", lambda: edited)
    monkeypatch.setattr(compiling, "grammar_text", lambda: edited)
    made = load_tables()
    assert made["grammar"] == grammar_digest()
    assert made["states"] == compiling.compile_tables()["states"]


def test_parsing_needs_no_lark() -> None:
    code = (
        "import sys; sys.modules['lark'] = None\n"
        "from frtspec.diag.source import SourceFile\n"
        "from frtspec.syntax.parse import parse\n"
        "bad = parse(SourceFile.from_text('a', 'frt 1 structure s versoin 1 { dim M, N,, }'))\n"
        "print(len(bad.diagnostics))"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    made = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert made.stdout == "2\n", made.stderr


@pytest.mark.parametrize("path", catalog(), ids=lambda path: path.stem)
def test_the_catalog_parses(path: object) -> None:
    assert parse(source_of(path)).diagnostics == ()  # type: ignore[arg-type]


@pytest.mark.parametrize("path", catalog(), ids=lambda path: path.stem)
def test_lark_reads_it_alike(path: object, lark: Lark) -> None:
    """Our loop and Lark's own parser read the same rules over the same ranges."""
    from lark import Token, Tree

    from frtspec.syntax.engine import Engine
    from frtspec.syntax.nodes import Node

    def ours(node: object) -> object:
        if isinstance(node, Node):
            return (node.rule, node.start, node.end, [ours(child) for child in node.children])
        return None if node is None else node.text  # type: ignore[attr-defined]

    def theirs(node: object) -> object:
        if isinstance(node, Tree):
            begin, end = node.meta.start_pos, node.meta.end_pos
            return (node.data, begin, end, [theirs(child) for child in node.children])
        return str(node) if isinstance(node, Token) else None

    source = source_of(path)  # type: ignore[arg-type]
    assert ours(Engine(tables(), source.text).read()) == theirs(lark.parse(source.text))


# ---------------------------------------------------------------- words for people


def test_every_terminal_has_a_word() -> None:
    known = set(tables().marks) | set(wording()["words"])
    skipped = {"COMMENT", "WS", ERROR}
    assert set(tables().patterns) | {"END"} <= known | skipped
    assert END not in known


def test_the_words_name_terminals_that_exist() -> None:
    terminals = set(tables().patterns) | {"END"}
    assert set(wording()["words"]) <= terminals
    assert set(wording()["continuations"]) <= terminals


def test_every_common_mistake_has_a_place_of_its_own() -> None:
    assert len(mistakes()) == len(wording()["mistake"])


@pytest.mark.parametrize("row", wording()["mistake"], ids=lambda row: row["message"])
def test_a_common_mistake_gets_its_message(row: dict[str, str]) -> None:
    found = parsed(row["example"]).diagnostics
    assert [d.message for d in found] == [row["message"]]
    assert found[0].help == row["help"]


@pytest.mark.parametrize("word", wording()["habits"])
def test_a_habit_gets_its_message(word: str) -> None:
    text = f"frt 1\nstructure s version 1 {{\n  dim M\n  {word} x\n  dim D\n}}\n"
    assert next(lexemes(word)).text == word
    found = [
        d for d in parsed(text).diagnostics if d.message == wording()["habits"][word]["message"]
    ]
    assert found


def test_blocks_say_what_they_hold() -> None:
    """The lists in errors.toml name every keyword that can begin a member there."""
    from tests.syntax.test_cases import GOOD

    blocks = wording()["blocks"]
    kinds = {"reference": "reference", "scan": "scan", "impl": "impl", "rung": "rung"}
    kinds |= {"scheme": "scheme", "binding": "binding", "seat": "seat", "structure": "structure"}
    for case in GOOD:
        block = kinds.get(case.kind)
        if block:
            first = case.snippet.split(None, 1)[0]
            assert first in blocks[block], (case.kind, first)

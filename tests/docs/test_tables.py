"""The tables of the docs are what the registries say, and so are the lists in their prose."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from frtspec.diag.codes import codes
from frtspec.ir.consumers import CONSUMERS
from frtspec.ir.ops import OPS
from frtspec.syntax.grammar import RESERVED

DOCS = Path(__file__).resolve().parents[2] / "docs"


def _tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_tables", DOCS / "tables.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLES = _tables()


@pytest.mark.parametrize("page", TABLES.PAGES)
def test_tables_are_current(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert TABLES.rendered(text) == text, "run `python docs/tables.py`"


def test_every_table_is_used_and_every_use_is_closed() -> None:
    text = "".join((DOCS / page).read_text(encoding="utf-8") for page in TABLES.PAGES)
    used = re.findall(r"<!-- table: (\w+) -->", text)
    assert sorted(used) == sorted(TABLES.TABLES)
    assert text.count("<!-- end -->") == len(used)


def test_a_stale_table_is_found() -> None:
    text = "before\n<!-- table: dtypes -->\n\n| dtype |\n\n<!-- end -->\nafter\n"
    new = TABLES.rendered(text)
    assert new != text and "`fp8_e4m3`" in new
    assert new.startswith("before\n") and new.endswith("\nafter\n")


def test_the_op_table_and_the_code_list_are_whole() -> None:
    ops, errors = TABLES.ops(), TABLES.code_list()
    assert [line.split("`")[1] for line in ops.splitlines()[2:]] == list(OPS)
    assert sorted(re.findall(r"`(FRT\d{4})`", errors)) == list(codes())


def test_every_construct_has_a_reader_in_the_table() -> None:
    listed = {cls for classes in TABLES.CONSTRUCTS.values() for cls in classes}
    kinds = ("Decl", "Stmt", "Set", "Map", "Request", "Use", "Item")
    declared = {name for name in CONSUMERS if name.endswith(kinds)} - {"DimItem", "EllipsisItem"}
    assert listed == declared


def test_keywords_are_those_of_the_grammar() -> None:
    listed = TABLES.keywords().replace("```text", "").replace("```", "").split()
    assert {"structure", "slot", "siblings", "hot_path", "emit"} <= set(listed)
    assert not set(listed) & set(RESERVED)
    assert "match  scan  rows  per  present  against  input" in (DOCS / "language.md").read_text()
    assert len(RESERVED) == 7


def test_figures_in_the_prose() -> None:
    from frtspec.config import KEYS
    from frtspec.runtime.gating.gates import CLIPS_FROM
    from frtspec.runtime.seats.ledger import IN_A_ROW

    runtime = (DOCS / "runtime.md").read_text()
    assert f"After {IN_A_ROW} fallbacks in a row" in runtime
    assert f"past {CLIPS_FROM:g} times the calibrated amax" in runtime
    settings = (DOCS / "commands.md").read_text().partition("```toml")[2].partition("```")[0]
    assert re.findall(r"^(\w+) =", settings, re.MULTILINE) == list(KEYS)

"""The VS Code extension: its files belong together, and its colours follow the grammar."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from frtspec.lsp import textmate
from frtspec.syntax.engine import Engine
from frtspec.syntax.read import read_source
from frtspec.syntax.scanner import comments
from frtspec.syntax.tables import tables

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "editors/vscode"
CATALOG = sorted((ROOT / "specs").rglob("*.frt"))


def test_the_grammar_is_that_of_the_language() -> None:
    made = (ROOT / textmate.FILE).read_text("utf-8")
    assert made == textmate.text(), "run `python -m frtspec.lsp.textmate`"
    assert all(re.search(rf"[(|]{word}[|)]", made) for word in tables().words)


def test_what_the_package_names_is_there() -> None:
    package = json.loads((FOLDER / "package.json").read_text())
    (language,) = package["contributes"]["languages"]
    (grammar,) = package["contributes"]["grammars"]
    assert grammar["language"] == language["id"]
    for path in (package["main"], language["configuration"], grammar["path"]):
        assert (FOLDER / path).is_file()
    json.loads((FOLDER / language["configuration"]).read_text())
    command = package["contributes"]["configuration"]["properties"]["frtspec.command"]["default"]
    assert command[1:] == ["lsp", "--stdio"]


@pytest.fixture(scope="module")
def scopes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[tuple[int, int, str]]]]:
    """Scopes of the catalog's tokens, by file and line."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("vscode-textmate needs node and npm")
    folder = tmp_path_factory.mktemp("npm")
    install = (npm, "install", "--no-save", "--prefix", folder)
    install += ("vscode-textmate@9.3.2", "vscode-oniguruma@2.0.1")
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"npm could not fetch vscode-textmate: {done.stderr[-300:]}")
    script = Path(__file__).with_name("tokens.cjs")
    argv = (node, script, folder / "node_modules", ROOT / textmate.FILE, *CATALOG)
    run = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found: dict[str, list[list[tuple[int, int, str]]]] = json.loads(run.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("path", CATALOG, ids=lambda path: path.stem)
def test_colours_follow_the_parser(
    path: Path, scopes: dict[str, list[list[tuple[int, int, str]]]]
) -> None:
    """Comments, texts and the keywords of members are coloured as what the parser reads."""
    source, _ = read_source(str(path))
    assert source is not None
    lines = scopes[str(path)]

    def scope(offset: int) -> str:
        line, column = source.position(offset)
        return next(s for low, high, s in lines[line - 1] if low <= column - 1 < high)

    for comment in comments(source):
        assert scope(comment.span.start).startswith("comment")
    engine = Engine(tables(), source.text, keep_all=True)
    assert engine.read() is not None
    for step in engine.recent:
        found = scope(step.start)
        said = f"{step.text!r} at {source.position(step.start)} is {found}"
        if step.terminal in ("STRING", "DOCSTRING"):
            assert found.startswith("string"), said
        elif step.terminal == "NUMBER":
            assert found.startswith("constant.numeric"), said
        elif step.text in tables().words and step.terminal not in ("NAME", "PATH"):
            assert found.startswith(("keyword", "storage")), said
        elif step.terminal in ("NAME", "PATH"):
            assert not found.startswith(("string", "comment")), said

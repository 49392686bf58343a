"""What the README and the pages tell a reader to type is there, and does what they say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.fences import Fence, fences

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "bench/README.md")


def written(language: str) -> list[Fence]:
    return [fence for page in PAGES for fence in fences(page) if fence.language == language]


def commands() -> Iterator[tuple[str, str]]:
    """(where, command) for every line with a prompt."""
    for fence in written("console"):
        if fence.path == "diff.md":  # typed whole by test_diff.py
            continue
        for line in fence.text.splitlines():
            if line.startswith("$ "):
                yield f"{fence.path}:{fence.line}", line[2:].partition("#")[0].strip()


@pytest.mark.parametrize("fence", written("python"), ids=lambda f: f"{f.path}:{f.line}")
def test_python_parses(fence: Fence) -> None:
    ast.parse(fence.text)


@pytest.mark.parametrize("where, command", list(commands()))
def test_commands_exist(where: str, command: str) -> None:
    words = command.split()
    if words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert words[1] in targets, where
    elif words[0] == "frtspec":
        from frtspec.cli.commands import parser

        parser().parse_args(words[1:])
    elif words[0].endswith("python"):
        assert (ROOT / words[1]).is_file(), where
    else:
        assert words[0] == "export", where


def test_the_readme_attaches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The snippet as it stands, on a small model in place of the one it downloads."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    (snippet,) = [f for f in written("python") if f.path == "README.md"]

    def small(name: str) -> Any:
        torch.manual_seed(0)
        config = transformers.LlamaConfig(
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            vocab_size=97,
            max_position_embeddings=64,
        )
        return transformers.LlamaForCausalLM(config)

    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", small)
    monkeypatch.chdir(tmp_path)
    tokens = torch.arange(48).reshape(3, 1, 16)
    names: dict[str, Any] = {
        "calibration": list(tokens[:2]),
        "held_out": list(tokens[2:]),
        "prompt": tokens[0],
    }
    exec(compile(snippet.text, "README.md", "exec"), names)  # noqa: S102 - a page of our own
    assert not names["plan"].active
    assert (tmp_path / "receipt.json").is_file()

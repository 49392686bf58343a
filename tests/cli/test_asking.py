"""``frtspec cost``, ``graph`` and ``query``: what the specs say, asked for by name."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from frtspec.cli import named, query
from frtspec.cli.main import main
from frtspec.devices import DEVICES

CONFIG = {
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_act": "silu",
    "attention_bias": False,
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> object:
    """The catalog, read once for all of these."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("empty"))
    try:
        return named.read()
    finally:
        os.chdir(before)


@pytest.fixture(autouse=True)
def read_once(catalog: object, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (named, query):
        monkeypatch.setattr(module, "read", lambda: catalog)


def asked(capsys: pytest.CaptureFixture[str], *argv: str) -> Any:
    assert main(argv) == 0
    return json.loads(capsys.readouterr().out)


def test_cost_of_a_seat_from_its_dims(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("cost", "qwen3", "--rows", "1,2048", "--config", "config.json", "--format", "json")
    made = asked(capsys, *argv)
    one, many = (row for row in made["seats"] if row["seat"] == "ffn")
    D, F = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    assert one["times"] == 36
    assert one["at"]["weights"] == 3 * D * F * 2
    assert many["at"]["flops"] >= 2 * 3 * D * F * 2048
    h200 = DEVICES["h200"]
    assert one["bound"] == "memory" and many["bound"] == "compute"
    assert one["seconds"] == pytest.approx(one["at"]["least"] / h200.bandwidth)
    assert many["seconds"] == pytest.approx(many["at"]["flops"] / h200.peak["bf16"])
    gains = {form["scheme"]: form["gain"] for form in many["forms"]}
    assert gains["fp8_static"] == pytest.approx(h200.peak["fp8_e4m3"] / h200.peak["bf16"])
    assert "w8a16_decode" not in gains  # its bands take few rows
    assert {form["scheme"] for form in one["forms"]} >= {"w8a16_decode", "fp8_static"}


def test_cost_without_a_config_says_whose_sizes_these_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["cost", "qwen3"]) == 0
    out = capsys.readouterr().out
    assert "at the sizes of Qwen3-8B" in out and "fp8_static 2.00x" in out


@pytest.mark.parametrize(
    "argv",
    [("--rows", "0"), ("--rows", "a"), ("--config", "none.json"), ("--config", "list.json")],
)
def test_cost_usage(argv: tuple[str, str], here: Path) -> None:
    (here / "list.json").write_text("[]")
    assert main(["cost", "qwen3", *argv]) == 2


def test_a_config_that_lacks_a_size_is_named(
    capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    (here / "config.json").write_text(json.dumps(CONFIG | {"intermediate_size": None}))
    assert main(["cost", "qwen3", "--config", "config.json", "--rows", "1"]) == 0
    out = capsys.readouterr().out
    assert "ffn (decoder_ffn.mlp v1): no figures" in out and "o : linear_proj" in out


@pytest.mark.parametrize("name", ["decoder_ffn@1", "vla_tick_pipeline"])
def test_graph_is_a_picture(capsys: pytest.CaptureFixture[str], here: Path, name: str) -> None:
    assert main(["graph", name]) == 0
    shown = capsys.readouterr().out
    assert ElementTree.fromstring(shown).tag.endswith("svg")
    assert main(["graph", name, "--out", "a.svg"]) == 0
    assert (here / "a.svg").read_text("utf-8") == shown


def test_query_lists_and_finds_who_pins(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = asked(capsys, "query", "bindings", "qwen3", "--json")
    assert "ffn : decoder_ffn.mlp@1" in row["seats"]
    users = asked(capsys, "query", "users", "decoder_ffn@1", "--json")
    assert {"kind": "binding", "name": "qwen3.ffn", "pins": "decoder_ffn.mlp@1"} in users
    assert {"kind": "impl", "name": "fp8_static", "pins": "decoder_ffn.mlp@1"} in users
    assert {user["kind"] for user in users} == {"structure", "impl", "scheme", "binding"}
    assert not any(user["pins"].startswith("vision_ffn") for user in users)
    older = asked(capsys, "query", "users", "norm_fused@1", "--json")
    assert older and all("@1" in user["pins"] for user in older)
    for what in ("structures", "pipelines", "impls", "schemes"):
        assert main(["query", what]) == 0
        assert len(capsys.readouterr().out.splitlines()) > 2


@pytest.mark.parametrize(
    ("argv", "near"),
    [
        (("graph", "decoder_fn"), "decoder_ffn"),
        (("cost", "qwen33"), "qwen3"),
        (("query", "impls", "fp8_statik"), "fp8_static"),
        (("query", "users", "decoder_fn@1"), "decoder_ffn@1"),
    ],
)
def test_an_unknown_name(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], near: str
) -> None:
    assert main(argv) == 1
    out = capsys.readouterr().out
    assert "FRT0950" in out and f"`{near}`" in out

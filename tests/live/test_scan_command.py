"""`frtspec scan`: the draft and the report, and what it says when it can't scan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from frtspec.cli.common import FINDINGS, OK, USAGE
from frtspec.cli.main import main

HOST = """
import torch
from torch import nn

class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(8, 12), nn.GELU(), nn.Linear(12, 8)

    def forward(self, x):
        return self.down(self.act(self.up(x)))

class Host(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(8), Mlp()

    def forward(self, x):
        return x + self.mlp(self.norm(x))

def alone():
    return Host().eval()

def runs():
    host = Host().eval()
    return host, host, [torch.randn(2, 8)]

def empty():
    return nn.Dropout().eval()

def raises():
    raise LookupError("no weights on this machine")

def wrong():
    return 3

def stumbles():
    host = Host().eval()
    return host, lambda: host(torch.randn(2, 9))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scanned_host.py").write_text(HOST)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def scan(name: str, *more: str) -> int:
    return main(["scan", f"scanned_host.py:{name}", *more])


def test_the_draft_goes_to_stdout_and_the_report_beside_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scan("runs") == OK
    out, err = capsys.readouterr()
    assert out.startswith("frt 1\n\nbinding host {")
    assert "seat mlp : vision_ffn.mlp version 3 at mlp" in out
    assert "100.0 % of FLOPs (measured)" in err


def test_a_draft_that_was_written_passes_check_and_fmt(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scan("runs", "--out", "mine.frt", "--name", "mine") == OK
    assert "wrote mine.frt" in capsys.readouterr().out
    assert main(["check", "mine.frt"]) == OK
    assert main(["fmt", "--check", "mine.frt"]) == OK
    assert "binding mine {" in (folder / "mine.frt").read_text()


def test_nothing_is_written_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.frt").write_text("mine")
    assert scan("alone", "--out", "mine.frt") == USAGE
    assert "mine.frt exists" in capsys.readouterr().err
    assert (folder / "mine.frt").read_text() == "mine"


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scan("alone", "--format", "json") == OK
    found = json.loads(capsys.readouterr().out)
    assert found["proven"] is False
    assert {seat["target"] for seat in found["seats"]} == {"norm_fused", "vision_ffn.mlp"}
    assert found["binding"].startswith("frt 1")


def test_a_model_without_a_seat_is_no_success(folder: Path) -> None:
    assert scan("empty") == FINDINGS


def test_what_the_factory_raised_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scan("raises") == FINDINGS
    err = capsys.readouterr().err
    assert "in raises" in err and "LookupError: no weights on this machine" in err
    assert "frtspec/live" not in err


def test_what_the_forward_raised_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scan("stumbles") == FINDINGS
    err = capsys.readouterr().err
    assert "RuntimeError" in err and "forward raised; make it run first" in err


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("scanned_host.py:wrong", "returned int"),
        ("scanned_host.py:runz", "did you mean `runs`?"),
        ("scanned_host.py", "names no factory"),
        ("no_such_module_here:x", "No module named"),
        ("nothing.py:x", "there is no file"),
    ],
)
def test_a_factory_that_is_not_there(
    folder: Path, capsys: pytest.CaptureFixture[str], target: str, says: str
) -> None:
    assert main(["scan", target]) == USAGE
    err = capsys.readouterr().err
    assert says in err and "Traceback" not in err


def test_a_package_that_is_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scan("alone", "--package", "no_such_package") == USAGE
    assert "run `frtspec gen`" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["two words", "1x", "class", "ä"])
def test_a_name_that_is_none(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert scan("alone", "--name", name) == USAGE
    assert "can't be a binding's name" in capsys.readouterr().err

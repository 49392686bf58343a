"""What is committed is what the import writes today, and what the report said of it."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest
from hosts import tiny
from torch import nn

from frtspec.cli.common import FINDINGS, OK
from frtspec.cli.main import main
from frtspec.diag.render import render
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.host import seat_weights
from importers import kit

REPORT = Path(__file__).parent / "golden" / "flash_rt_0_2_0.txt"


def test_the_import_writes_what_is_committed_byte_for_byte() -> None:
    files = kit.imported().files
    assert len(files) == 27
    there = {path.name: path.read_bytes() for path in kit.COMMITTED.iterdir()}
    assert there == {name: text.encode() for name, text in files.items()}


def test_the_command_finds_nothing_to_change(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(kit.COMMITTED.parents[2])
    out = "specs/bindings/flash_rt"
    assert main(["import", "flash-rt", "--out", out, "--check"]) == OK
    printed = capsys.readouterr().out
    assert "27 bindings: 7 verified, 20 imported unverified" in printed
    assert printed.endswith(f"{out}: 27 up to date\n")


def test_a_changed_file_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["import", "flash-rt", "--out", "out"]) == OK
    path = tmp_path / "out" / "flashrt_pi05.frt"
    path.write_text(path.read_text("utf-8").replace("L = 18", "L = 17"), "utf-8")
    capsys.readouterr()
    assert main(["import", "flash-rt", "--out", "out", "--check"]) == FINDINGS
    printed = capsys.readouterr().out
    assert "-  dims { D = 1024, F = 4096, L = 17 }" in printed
    assert "+  dims { D = 1024, F = 4096, L = 18 }" in printed


def test_the_report_is_the_golden_one() -> None:
    """Every finding about flash-rt 0.2.0, with file and line; FRTSPEC_UPDATE_GOLDEN=1 rewrites
    it."""
    text = render(kit.imported().diagnostics, kit.installed().sources)
    if os.environ.get("FRTSPEC_UPDATE_GOLDEN") == "1":
        REPORT.write_text(text, "utf-8")
    assert text == REPORT.read_text("utf-8")


def test_no_finding_of_the_installed_catalog_is_an_error() -> None:
    """Each is judged, none keeps it from being imported."""
    found = kit.imported().diagnostics
    assert {d.severity for d in found} == {"warning", "note"}
    assert all(d.span.path and d.span.end > 0 for d in found)
    assert all(d.help or d.code == "FRT0891" for d in found)


@pytest.mark.parametrize("name", ["flashrt_pi05", "flashrt_smolvla_base", "flashrt_pi05_tick"])
def test_attach_refuses_what_is_imported_unverified(name: str) -> None:
    generated = importlib.import_module(f"flashrt_gen.{name}")
    with pytest.raises(Refusal) as refused:
        generated.attach(nn.Linear(2, 2), lambda: None)
    assert refused.value.code == "spec.imported"
    assert refused.value.what.endswith(generated.HOST.imported)


def test_a_model_of_other_sizes_is_refused() -> None:
    """The sizes of a verified binding are its source's numbers."""
    generated = importlib.import_module("flashrt_gen.flashrt_qwen3_8b")
    assert generated.dims(None) == {"D": 4096, "F": 12288, "L": 36}
    model = tiny.QWEN3.model()
    first = generated.seats(model)[0]
    with pytest.raises(Refusal) as refused:
        seat_weights(model, first)
    assert refused.value.code == "host.shape" and "4096" in refused.value.what

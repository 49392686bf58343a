"""Broken YAML never ends in a traceback, and never in half of the files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frtspec.cli.common import FAULT, FINDINGS, USAGE
from frtspec.cli.main import main
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile
from frtspec.importers.flashrt import structnotes
from frtspec.importers.flashrt.convert import convert
from frtspec.importers.flashrt.structures import structure
from frtspec.importers.flashrt.yamldoc import read
from importers import kit

BINDINGS = ("pi05", "groot_n16_dit", "qwen3_8b", "pi05_tick", "smolvla_tick")
STRUCTURES = ("decoder_ffn", "modnorm_qkv_chain", "qkv_rope", "vla_tick_pipeline")
ODD = (
    "",
    "~",
    "{}",
    "[]",
    "{a: 1}",
    "[1, [2]]",
    "0",
    "-1",
    "1e999",
    ".nan",
    "true",
    "'",
    '"',
    "&a x",
    "*a",
    "!!int x",
    "? x",
    "- x",
    "{i}",
    "a.{i}",
    "a..b",
    "x" * 300,
    "\u202e",
    "\x07",
    "é",
    "#",
    "9" * 5000,
    "2026-11-30",
    "0o7",
    "0b1",
    "1:30",
    "<<",
    "a: b: c",
    "%",
    "\t",
    "{{i}}",
    "import",
    '\\"',
    '"""',
    "\\",
)
"""Things that stand in a place where something else belongs."""


@st.composite
def broken(draw: st.DrawFn, text: str) -> str:
    """The text after a few edits: lines lost, doubled, swapped, moved in, values replaced."""
    lines = text.split("\n")
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        match draw(
            st.sampled_from(("drop", "double", "swap", "indent", "value", "key", "cut", "char"))
        ):
            case "drop":
                del lines[at]
                lines = lines or [""]
            case "double":
                lines.insert(at, lines[at])
            case "swap":
                other = draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
            case "indent":
                lines[at] = " " * draw(st.integers(1, 5)) + lines[at]
            case "value":
                lines[at] = f"{lines[at].partition(':')[0]}: {draw(st.sampled_from(ODD))}"
            case "key":
                lines[at] = f"{draw(st.sampled_from(ODD))}:{lines[at].partition(':')[2]}"
            case "cut":
                lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
            case "char":
                place = draw(st.integers(0, len(lines[at])))
                lines[at] = lines[at][:place] + draw(st.characters()) + lines[at][place:]
    return "\n".join(lines)


FEW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@FEW
@given(st.data(), st.sampled_from(BINDINGS))
def test_a_broken_binding_is_told_or_written_whole(data: st.DataObject, name: str) -> None:
    text = data.draw(broken(kit.text_of(name)))
    made = convert(kit.of_text(name, text), kit.world())
    errors = [d for d in made.diagnostics if d.severity == "error"]
    assert len(made.files) == (0 if errors else 1), text


@FEW
@given(st.data(), st.sampled_from(STRUCTURES))
def test_a_broken_structure_is_told(data: st.DataObject, name: str) -> None:
    path = kit.folder() / "structures" / name / "structure.yaml"
    text = data.draw(broken(path.read_text("utf-8")))
    source = SourceFile.from_text("structure.yaml", text)
    held, found = read(source)
    made = None if held is None else structure(held, name, source.path, found.append)
    notes: list[Diagnostic] = []
    if made is not None:
        notes = list(structnotes.notes({name: made}, kit.folder()))
    assert all(d.severity == "note" for d in notes)
    assert made is not None or any(d.severity == "error" for d in found), text


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_a_document_or_a_finding(data: bytes) -> None:
    text = data.decode("utf-8", errors="replace")
    held, found = read(SourceFile.from_text("any.yaml", text))
    assert (held is None) <= bool(found)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"\x00",
        b"[" * 5000,
        b"a: " + b"{b: " * 3000,
        b"- " * 3000,
        b"a: &a [*a]",
        b"x: [" + b"[0]," * 200_000 + b"]",
        b"\xef\xbb\xbfbinding: x\n",
        b"a: 1\n---\nb: 2\n",
    ],
    ids=range(10),
)
def test_no_file_brings_the_command_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], data: bytes
) -> None:
    """The other bindings are right, and still none of them is written."""
    target = kit.small(tmp_path, "qwen3_8b")
    (target / "bindings" / "odd.yaml").write_bytes(data)
    monkeypatch.chdir(tmp_path)
    code = main(["import", "flash-rt", "--from", "flash_rt", "--out", "out"])
    printed = capsys.readouterr()
    assert code == FINDINGS and code != FAULT and printed.err == ""
    assert "flash_rt/catalog/bindings/odd.yaml" in printed.out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["", ".", "gone", "\0", "a" * 5000, "/dev/null"])
def test_a_folder_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["import", "flash-rt", "--from", name, "--out", "out"]) == USAGE
    assert "FRT0880" in capsys.readouterr().out

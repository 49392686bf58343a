"""``frtspec fmt`` from standard input, and of some lines."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from frtspec.cli.main import main
from frtspec.diag.source import SourceFile
from frtspec.ir.canon import contract_digest
from frtspec.sema import analyse
from frtspec.syntax.parse import parse

UGLY = 'frt 1\nscheme a {\n   otherwise   keep    "no"  # é\n}\n'
NICE = 'frt 1\n\nscheme a {\n  otherwise keep "no"  # é\n}\n'


def run(
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
    text: bytes,
    *argv: str,
) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    code = main(["fmt", *argv])
    out = capsysbinary.readouterr()
    return code, out.out.decode(), out.err.decode()


def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(monkeypatch, capsysbinary, UGLY.encode(), "-") == (0, NICE, "")
    assert run(monkeypatch, capsysbinary, NICE.encode(), "-", "--check") == (0, "", "")
    code, out, _ = run(
        monkeypatch, capsysbinary, UGLY.encode(), "-", "--check", "--stdin-name", "mine.frt"
    )
    assert code == 1 and "FRT0870" in out and "mine.frt:" in out


@pytest.mark.parametrize(
    ("raw", "code"), [(b"frt 1\nscheme {\n", "FRT0"), (b"\xff\xfe", "FRT0002")]
)
def test_what_can_not_be_read_writes_nothing(
    raw: bytes,
    code: str,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    status, out, err = run(monkeypatch, capsysbinary, raw, "-", "--stdin-name", "mine.frt")
    assert status == 1 and out == "" and code in err and "mine.frt" in err


@pytest.mark.parametrize(
    "argv",
    [("-", "a.frt"), ("--range", "3", "a.frt"), ("--range", "4:2", "a.frt"), ("--range", "1:2")],
)
def test_usage(
    argv: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run(monkeypatch, capsysbinary, b"", *argv)
    assert code == 2 and "error" in err


def test_a_range_of_a_file(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.frt"
    path.write_text(UGLY.replace("}\n", '}\n\nscheme   b {\n    otherwise keep "y"\n}\n'))
    assert run(monkeypatch, capsysbinary, b"", "--range", "3:3", "a.frt")[0] == 0
    assert '  otherwise keep "no"  # é\n' in path.read_text("utf-8")
    assert "scheme   b" in path.read_text("utf-8")


def test_the_contract_digest_does_not_move() -> None:
    def digest(text: str) -> str:
        source = SourceFile.from_text("a.frt", text)
        return contract_digest(analyse([(source, parse(source).file)]).program.schemes["a"])

    assert digest(UGLY) == digest(NICE)

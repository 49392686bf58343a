"""The command as a user meets it: exit codes, help, output that a pipe can take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from frtspec import __version__
from frtspec.cli import main as cli
from frtspec.cli.common import FAULT, FINDINGS, OK, USAGE
from frtspec.cli.main import main
from frtspec.diag.codes import codes

SCHEME = 'frt 1\n\nscheme plain {\n  otherwise keep "this scheme changes nothing"\n}\n'
ROOT = Path(__file__).parents[2]
COMMANDS = ("check", "gen", "fmt", "lock", "explain", "demo")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == OK
    assert capsys.readouterr().out == f"frtspec {__version__}\n"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == OK
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)


@pytest.mark.parametrize(
    "argv, help",
    [
        (["chek"], "did you mean `check`?"),
        (["check", "--fromat", "json"], "did you mean `--format`?"),
        (["check", "--format", "jsn"], "did you mean `json`?"),
        (["gen", "--chek"], "did you mean `--check`?"),
        ([], None),
    ],
)
def test_usage(argv: list[str], help: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == USAGE
    printed = capsys.readouterr()
    assert printed.out == "" and "error: " in printed.err
    assert help is None or help in printed.err


def test_check_of_the_catalog(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == OK
    assert " files: no findings\n" in capsys.readouterr().out


def test_findings_are_placed_and_counted(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(here / "a.frt", SCHEME.replace("otherwise", "otherwize"))
    assert main(["check", "a.frt"]) == FINDINGS
    text = capsys.readouterr().out
    assert text.startswith("a.frt:4:3: error[FRT0")
    assert text.endswith("\n1 error in 1 file\n")


@pytest.mark.parametrize("format", ["json", "sarif"])
def test_machine_formats_are_documents(
    here: Path, format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(here / "a.frt", SCHEME.replace("otherwise", "otherwize"))
    assert main(["check", "--format", format, "a.frt"]) == FINDINGS
    assert json.loads(capsys.readouterr().out)


def test_a_missing_path_is_usage(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "nope.frt"]) == USAGE
    assert "error[FRT0856]: no file or folder `nope.frt`" in capsys.readouterr().out


def test_another_files_errors_do_not_fail_the_run(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = codes()["FRT0858"].project()
    for name, text in example.files:
        put(here / name, str(text))
    put(here / "specs/apart.frt", "frt 1\n\nscheme {\n")
    assert main(["check", "schemes/plain.frt"]) == OK
    told = capsys.readouterr().out
    assert "specs/gain.frt:1:1: warning[FRT0858]" in told
    assert "apart" not in told  # nothing leads there, so it is not even read
    assert main(["check"]) == FINDINGS


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xef\xbb\xbf" + SCHEME.encode(),
        SCHEME.replace("\n", "\r\n").encode(),
        SCHEME.encode("utf-16"),
        b"\0" * 50,
        b"\xff\xfe\xfa",
        b"frt 1\n" + b"{" * 10_000,
        b"frt 1\n" + b"(" * 10_000,
        b"frt " + b"9" * 100_000,
        b"frt 1\nscheme s { otherwise keep " + b'"' * 10_001,
    ],
    ids=["empty", "bom", "crlf", "utf16", "nul", "binary", "braces", "parens", "digits", "quotes"],
)
@pytest.mark.parametrize("command", [["check"], ["fmt", "--check"], ["gen", "--check"]])
def test_no_bytes_are_our_fault(
    here: Path, data: bytes, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    put(here / "a.frt", data)
    assert main([*command, "a.frt"]) in (OK, FINDINGS)
    printed = capsys.readouterr()
    assert "Traceback" not in printed.out + printed.err


@pytest.mark.parametrize("command", ["check", "fmt", "gen"])
def test_a_pipe_and_a_folder(here: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(here / "pipe.frt")
    (here / "folder.frt").mkdir()
    assert main([command, "pipe.frt"]) == FINDINGS
    assert main([command, "folder.frt"]) == FINDINGS
    assert "Traceback" not in capsys.readouterr().err


def test_a_fault_of_ours(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(argv: list[str]) -> int:
        raise LookupError("a table row is missing")

    monkeypatch.setattr(cli, "_run", broken)
    assert main(["check"]) == FAULT
    text = capsys.readouterr().err
    assert "LookupError: a table row is missing" in text
    assert "a fault in frtspec, not in your files" in text and "report it" in text


def test_interruption_is_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(argv: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_run", stop)
    assert main(["check"]) == 130
    assert capsys.readouterr().err == ""


def test_a_closed_pipe_is_quiet() -> None:
    command = f"{sys.executable} -m frtspec explain | head -c 1"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, check=False)
    assert done.stderr == b""


@pytest.mark.parametrize("locale", ["C", "en_US.ISO-8859-1", "tr_TR.UTF-8"])
def test_output_does_not_depend_on_the_locale(here: Path, locale: str) -> None:
    put(here / "größe.frt", "frt 1\nlet ü = 規格\n")
    env = {**os.environ, "LC_ALL": locale, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-m", "frtspec", "check", "größe.frt"],
        cwd=here,
        env=env,
        capture_output=True,
        check=False,
    )
    assert done.returncode == FINDINGS, done.stderr
    assert "let ü = 規格" in done.stdout.decode("utf-8")


def test_the_current_folder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["check"]) == USAGE
    assert capsys.readouterr().err == "frtspec: error: the current folder is gone\n"


def test_output_does_not_depend_on_hashing(here: Path) -> None:
    put(here / "a.frt", SCHEME.replace("plain", "none").replace("keep", "kep"))
    put(here / "specs/b.frt", "frt 1\n\nscheme { x y z }\nbinding b { host }\n")
    printed = {
        subprocess.run(
            [sys.executable, "-m", "frtspec", "check", "--format", "json", "a.frt", "specs"],
            cwd=here,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
            capture_output=True,
            check=False,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(printed) == 1 and b"FRT" in printed.pop()


def test_explain_lists_every_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == OK
    assert "  FRT0852  unknown key in [tool.frtspec]\n" in capsys.readouterr().out


@pytest.mark.parametrize("typed", ["FRT0852", "frt0852", "852", "0852"])
def test_explain_takes_a_code_as_people_type_it(
    typed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", typed]) == OK
    assert capsys.readouterr().out.startswith("FRT0852: ")


def test_explain_of_an_unknown_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "FRT08522"]) == USAGE
    assert "did you mean `FRT0852`?" in capsys.readouterr().err


def test_check_says_when_it_read_only_the_catalog(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(here / "mine.frt", SCHEME)
    assert main(["check"]) == OK
    assert "these are the specs that ship with frtspec" in capsys.readouterr().out
    assert main(["check", "mine.frt"]) == OK
    assert capsys.readouterr().out == "1 file: no findings\n"

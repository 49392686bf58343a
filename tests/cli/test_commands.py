"""gen, fmt and lock on a project of one's own, as a user runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from frtspec import resources
from frtspec.cli.common import FINDINGS, OK, USAGE
from frtspec.cli.main import main

SCHEME = 'frt 1\n\nscheme plain {\n  otherwise keep "this scheme changes nothing"\n}\n'
PROJECT = '[tool.frtspec]\nout = "src"\npackage = "my_kernels"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One own scheme and one own binding, beside the catalog."""
    monkeypatch.chdir(tmp_path)
    text = (resources.specs_dir() / "bindings" / "llama.frt").read_text("utf-8")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "mine.frt").write_text(text.replace("binding llama", "binding mine"))
    (tmp_path / "specs" / "plain.frt").write_text(SCHEME)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    code = main(argv)
    printed = capsys.readouterr()
    assert printed.err == ""
    return code, printed.out


# ---------------------------------------------------------------- check


def test_check_tells_what_would_only_stand_against_generating(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = """frt 1

structure copy version 1 {
  dim M, D
  in  torch [rows M, D] : host
  out y     [rows M, D] : host
  reference {
    point x_in = torch
    yield y = x_in
  }
}
"""
    (project / "specs" / "copy.frt").write_text(copy)
    code, text = run(capsys, "check", "specs/copy.frt")
    assert code == FINDINGS and "specs/copy.frt:5:7: error[FRT0835]" in text
    assert run(capsys, "check", "specs/plain.frt")[0] == OK


# ---------------------------------------------------------------- gen


def test_gen_writes_once_and_checks(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(capsys, "gen")
    assert code == OK and "wrote src/my_kernels/mine/__init__.py" in text
    before = {p: p.stat().st_mtime_ns for p in (project / "src").rglob("*") if p.is_file()}
    code, text = run(capsys, "gen")
    assert code == OK and "src: 0 written" in text
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert run(capsys, "gen", "--check")[0] == OK


def test_gen_check_shows_the_difference_and_writes_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "gen")
    spec = project / "specs" / "plain.frt"
    spec.write_text(SCHEME.replace("changes nothing", "keeps every seat"))
    before = {p: p.read_bytes() for p in (project / "src").rglob("*") if p.is_file()}
    code, text = run(capsys, "gen", "--check")
    assert code == FINDINGS
    assert "+++ src/my_kernels/schemes/plain.py (generated)" in text
    assert "keeps every seat" in text and "error[FRT0832]" in text
    assert {p: p.read_bytes() for p in before} == before


def test_gen_removes_what_is_no_longer_declared(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "gen")
    package = project / "src" / "my_kernels"
    (package / "notes.txt").write_text("mine")
    (project / "specs" / "mine.frt").unlink()
    code, text = run(capsys, "gen", "plain.frt")
    assert code == OK and (package / "mine" / "__init__.py").exists()
    code, text = run(capsys, "gen")
    assert code == OK and "removed src/my_kernels/mine/__init__.py" in text
    assert not (package / "mine").exists() and (package / "notes.txt").exists()


def test_gen_of_specs_with_errors_writes_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "specs" / "plain.frt").write_text(SCHEME.replace("otherwise", "otherwize"))
    code, text = run(capsys, "gen")
    assert code == FINDINGS and "plain.frt:4:3: error[" in text
    assert not (project / "src").exists()


def test_gen_needs_a_name_for_own_specs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").unlink()
    code, text = run(capsys, "gen")
    assert code == FINDINGS and "error[FRT0865]" in text
    code, text = run(capsys, "gen", "--package", "flashrt_gen")
    assert code == FINDINGS and "error[FRT0855]" in text
    code, text = run(capsys, "gen", "--package", "own", "--out", "here")
    assert code == OK and (project / "here" / "own" / "mine" / "__init__.py").is_file()


def test_gen_into_something_that_is_no_folder(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "src").write_text("a file")
    code, text = run(capsys, "gen")
    assert code == FINDINGS and "error[FRT083" in text


# ---------------------------------------------------------------- fmt


def test_fmt_rewrites_and_then_has_nothing_to_do(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "fmt")
    spec = project / "specs" / "plain.frt"
    spec.write_text(SCHEME.replace("  otherwise", "      otherwise") + "# the end\n")
    spec.chmod(0o640)
    code, text = run(capsys, "fmt", "--check")
    assert code == FINDINGS
    assert text.startswith("specs/plain.frt:4:7: error[FRT0870]")
    assert 'note: this line becomes `otherwise keep "this scheme changes nothing"`' in text
    assert "      otherwise" in spec.read_text()
    code, text = run(capsys, "fmt")
    assert (code, text) == (OK, "1 file reformatted, 1 as they were\n")
    assert spec.read_text() == SCHEME + "# the end\n"
    assert spec.stat().st_mode & 0o777 == 0o640
    assert run(capsys, "fmt", "--check")[0] == OK


def test_fmt_leaves_a_broken_file_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = project / "specs" / "plain.frt"
    broken = SCHEME.replace("  otherwise keep", " otherwize  keep")
    spec.write_text(broken)
    code, text = run(capsys, "fmt")
    assert code == FINDINGS and "plain.frt:4:2: error[" in text
    assert spec.read_text() == broken


def test_fmt_does_not_write_the_installed_catalog(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = run(capsys, "fmt", "bindings/qwen3.frt")
    assert code == USAGE and "error[FRT0859]" in text


def test_the_catalog_is_formatted(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(capsys, "fmt", "--check", str(resources.specs_dir()))
    assert code == OK, text


# ---------------------------------------------------------------- lock


def test_lock_records_and_then_tells_what_moved(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = project / "specs" / "spec.lock"
    assert run(capsys, "lock", "--check")[0] == FINDINGS and not lock.exists()
    code, text = run(capsys, "lock")
    assert (code, text) == (OK, "specs/spec.lock: 2 declarations, 2 of them new or moved\n")
    assert run(capsys, "lock", "--check") == (OK, "specs/spec.lock: 2 declarations, up to date\n")
    rows = lock.read_text()
    assert 'name = "mine"\npath = "mine.frt"\n' in rows and rows.count('status = "draft"') == 2

    spec = project / "specs" / "plain.frt"
    spec.write_text(SCHEME + "# a comment\n")
    code, text = run(capsys, "lock", "--check")
    assert code == FINDINGS and "scheme plain: the text moved, the contract did not" in text
    spec.write_text(SCHEME.replace("changes nothing", "keeps every seat"))
    code, text = run(capsys, "lock", "--check")
    assert code == FINDINGS and "scheme plain: the contract moved" in text
    assert lock.read_text() == rows
    assert run(capsys, "lock")[0] == OK and run(capsys, "lock", "--check")[0] == OK


def test_a_released_version_is_frozen(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "lock")
    lock = project / "specs" / "spec.lock"
    released = lock.read_text().replace('"draft"', '"released"')
    lock.write_text(released)
    assert run(capsys, "lock", "--check")[0] == OK
    (project / "specs" / "plain.frt").write_text(SCHEME + "# a comment\n")
    code, text = run(capsys, "lock")
    assert code == FINDINGS and "scheme plain is released, and its file changed" in text
    assert lock.read_text() == released


def test_lock_of_specs_with_errors_writes_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "specs" / "plain.frt").write_text(SCHEME.replace("otherwise", "otherwize"))
    assert run(capsys, "lock")[0] == FINDINGS
    assert not (project / "specs" / "spec.lock").exists()


def test_what_can_not_be_written_is_told(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkstemp", full)
    spec = project / "specs" / "plain.frt"
    spec.write_text(SCHEME.replace("  otherwise", " otherwise"))
    for command in ("fmt", "lock"):
        code, text = run(capsys, command)
        assert code == FINDINGS
        assert "error[FRT0863]: the system refused this file: no space left" in text
    assert spec.read_text() == SCHEME.replace("  otherwise", " otherwise")


def test_lock_needs_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, text = run(capsys, "lock")
    assert code == USAGE and "error[FRT0859]" in text


def test_the_catalogs_lock_is_current(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(resources.specs_dir().parent)
    code, text = run(capsys, "lock", "--check")
    assert code == OK, text

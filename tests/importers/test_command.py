"""`frtspec import` and `frtspec export` as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from frtspec.cli.common import FINDINGS, OK, USAGE
from frtspec.cli.main import main
from frtspec.importers.flashrt import catalog as source
from importers import kit


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one's own, with a copy of two of flash-rt's bindings."""
    kit.small(tmp_path, "qwen3_8b", "pi05_tick")
    (tmp_path / "specs").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.frtspec]\npackage = "mine"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    code = main(argv)
    printed = capsys.readouterr()
    assert printed.err == ""
    return code, printed.out


IMPORT = ("import", "flash-rt", "--from", "flash_rt", "--out", "specs/there")


def test_what_was_imported_checks_and_comes_back(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The project's own specs take the names that the catalog's imports have.
    for path in (project / "flash_rt" / "catalog" / "bindings").glob("*.yaml"):
        text = path.read_text("utf-8").replace(f"binding: {path.stem}", f"binding: my_{path.stem}")
        path.rename(path.with_name(f"my_{path.stem}.yaml")).write_text(text, "utf-8")
    code, text = run(capsys, *IMPORT)
    assert code == OK and "2 bindings: 0 verified, 2 imported unverified" in text
    assert text.endswith("specs/there: 2 written, 0 unchanged\n")
    assert run(capsys, *IMPORT)[1].endswith("specs/there: 0 written, 2 unchanged\n")
    assert run(capsys, "fmt", "--check")[0] == OK
    code, text = run(capsys, "check")
    assert (code, text) == (OK, "2 files: no findings\n")
    code, text = run(capsys, "export", "flash-rt", "--out", "back")
    assert (code, text) == (OK, "back: 2 written, 0 unchanged\n")
    for path in (project / "back").iterdir():
        original = project / "flash_rt" / "catalog" / "bindings" / path.name
        assert yaml.safe_load(path.read_text()) == yaml.safe_load(original.read_text())
    assert run(capsys, "export", "flash-rt", "--out", "back", "--check")[0] == OK
    (project / "back" / "my_qwen3_8b.yaml").unlink()
    code, text = run(capsys, "export", "flash-rt", "--out", "back", "--check")
    assert code == FINDINGS and "+binding: my_qwen3_8b" in text


def test_the_report_has_other_forms(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(capsys, *IMPORT, "--format", "json")
    found = json.loads(text)["diagnostics"]
    assert code == OK and found[0]["path"] == "flash_rt/catalog/bindings/pi05_tick.yaml"
    assert {d["severity"] for d in found} == {"warning", "note"}
    (warning,) = [d for d in found if d["code"] == "FRT0889"]
    assert warning["line"] == 22 and "narrowed to `>=5.13,<6`" in warning["help"]
    code, text = run(capsys, *IMPORT, "--format", "github")
    assert "::warning file=flash_rt/catalog/bindings/qwen3_8b.yaml,title=FRT0889,line=22" in text
    code, text = run(capsys, *IMPORT, "--format", "sarif")
    assert json.loads(text)["version"] == "2.1.0"


def test_nothing_is_written_when_one_place_cannot_be(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "specs" / "there" / "flashrt_qwen3_8b.frt").mkdir(parents=True)
    code, text = run(capsys, *IMPORT)
    assert code == FINDINGS and "FRT0863" in text
    assert [p.name for p in (project / "specs" / "there").iterdir()] == ["flashrt_qwen3_8b.frt"]


@pytest.mark.parametrize("where", ["flash_rt/catalog", "./flash_rt/"])
def test_the_folder_may_be_the_packages_or_the_catalogs(
    project: Path, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    assert run(capsys, "import", "flash-rt", "--from", where, "--out", "out")[0] == OK
    assert len(list((project / "out").iterdir())) == 2


def test_without_the_package_it_says_what_to_install(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(source, "PACKAGE", "flash_rt_is_not_here")
    code, text = run(capsys, "import", "flash-rt", "--out", "out")
    assert code == USAGE and "FRT0880" in text and "pip install flash-rt" in text


def test_an_empty_catalog_is_a_finding(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "empty" / "bindings").mkdir(parents=True)
    (project / "empty" / "structures").mkdir()
    code, text = run(capsys, "import", "flash-rt", "--from", "empty", "--out", "out")
    assert code == USAGE and "this folder holds no binding" in text


@pytest.mark.parametrize(
    "argv", [("import",), ("import", "flash-rt"), ("import", "flashrt", "--out", "o"), ("export",)]
)
def test_usage(project: Path, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]) -> None:
    assert main(argv) == USAGE
    assert "error:" in capsys.readouterr().err


def test_a_binding_that_reads_its_sizes_from_the_config_cannot_be_exported(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each reason, at its place; a binding with no counterpart is one when it is asked for."""
    code, text = run(capsys, "export", "flash-rt", "bindings/llama.frt", "--out", "out")
    assert code == FINDINGS and "FRT0895" in text and not (project / "out").exists()


def test_flash_rt_is_found_and_read_without_being_imported(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from frtspec.cli.main import main\n"
        f"code = main(['import', 'flash-rt', '--out', {str(tmp_path / 'o')!r}, '--format', 'json'])\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "sys.exit(code or bool({'flash_rt', 'torch'} & loaded))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == OK, done.stderr
    assert len(list((tmp_path / "o").iterdir())) == 27

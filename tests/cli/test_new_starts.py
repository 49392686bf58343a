"""``frtspec new``: every start checks as it is written, and nothing is overwritten."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from frtspec.cli import named, start
from frtspec.cli.main import main


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> object:
    """An empty project beside the catalog, read once."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "specs").mkdir()
    (folder / "pyproject.toml").write_text('[tool.frtspec]\npackage = "my_kernels"\n')
    before = Path.cwd()
    os.chdir(folder)
    try:
        return named.read()
    finally:
        os.chdir(before)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, catalog: object, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert not isinstance(catalog, int)
    loaded, config = catalog  # type: ignore[misc]
    from dataclasses import replace

    own = replace(config, root=tmp_path, specs=(tmp_path / "specs",))
    monkeypatch.setattr(start, "read", lambda: (loaded, own))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.frtspec]\npackage = "my_kernels"\n')
    return tmp_path


def test_every_start_checks_and_is_laid_out(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind, more, path in (
        ("structure", (), "structures/mine/v1.frt"),
        ("impl", (), "impls/linear_proj_mine.frt"),
        ("scheme", ("--for", "decoder_ffn.mlp@1"), "schemes/mine.frt"),
        ("binding", ("--for", "decoder_ffn.mlp"), "bindings/mine.frt"),
    ):
        assert main(["new", kind, "mine", *more]) == 0
        assert path in capsys.readouterr().out
        assert "#" in (here / "specs" / path).read_text("utf-8")
    assert main(["check"]) == 0
    assert "4 files: no findings" in capsys.readouterr().out
    assert main(["fmt", "--check"]) == 0


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (("structure", "decoder_ffn"), 1, "--bump"),
        (("structure", "match"), 1, "FRT0951"),
        (("structure", "2x"), 1, "FRT0951"),
        (("impl", "fp8_static"), 1, "already"),
        (("impl", "mine", "--for", "linear_prj"), 1, "`linear_proj`"),
        (("impl", "mine", "--for", "decoder_ffn.mpl"), 1, "mlp"),
        (("scheme", "mine", "--for", "cadence_static"), 1, "no impl"),
        (("binding", "mine", "--bump"), 2, ""),
    ],
)
def test_what_is_not_begun(
    here: Path, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], code: int, said: str
) -> None:
    assert main(["new", *argv]) == code
    assert said in capsys.readouterr().out
    assert not list((here / "specs").rglob("*.frt"))


def test_nothing_is_overwritten(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = here / "specs/structures/mine/v1.frt"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    assert main(["new", "structure", "mine"]) == 1
    assert "FRT0951" in capsys.readouterr().out
    assert path.read_text() == "mine"

"""How the paths of a command line become files."""

from __future__ import annotations

from pathlib import Path

import pytest

from frtspec import resources
from frtspec.config import load_config
from frtspec.project import Selection, select, shown, walk

QWEN = resources.specs_dir() / "bindings" / "qwen3.frt"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("frt 1\n")


def chosen(here: Path, *paths: str) -> Selection:
    return select(paths, load_config(here).config, here)


def test_nothing_given_means_the_catalog(here: Path) -> None:
    found = chosen(here)
    assert len(found.asked) == len(found.files) > 10
    assert all(file.in_catalog for file in found.files)


def test_nothing_given_means_the_projects_roots(here: Path) -> None:
    put(here, "specs/a.frt", "specs/b/c.frt", "other/d.frt")
    found = chosen(here)
    assert found.asked == {"specs/a.frt", "specs/b/c.frt"}
    assert QWEN in {file.real for file in found.files}


def test_current_folder_first_then_roots_then_catalog(here: Path) -> None:
    assert chosen(here, "bindings/qwen3.frt").asked == {shown(QWEN, here)}
    put(here, "specs/bindings/qwen3.frt")
    assert chosen(here, "bindings/qwen3.frt").asked == {"specs/bindings/qwen3.frt"}
    put(here, "bindings/qwen3.frt")
    assert chosen(here, "bindings/qwen3.frt").asked == {"bindings/qwen3.frt"}


def test_a_file_at_the_same_place_stands_in_for_the_catalogs(here: Path) -> None:
    put(here, "specs/bindings/qwen3.frt", "specs/mine/llama.frt")
    found = chosen(here)
    assert QWEN not in {file.real for file in found.files}
    assert QWEN.with_name("llama.frt") in {file.real for file in found.files}
    names = [file.name for file in found.files]
    assert len(set(names)) == len(names)
    assert names[-2:] == ["bindings/qwen3.frt", "mine/llama.frt"]  # the user's come last


def test_names_do_not_depend_on_the_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(here, "specs/a.frt", "sub/x.txt", "pyproject.toml")
    (here / "pyproject.toml").write_text("[tool.frtspec]\n")
    inside = chosen(here)
    monkeypatch.chdir(here / "sub")
    below = chosen(here / "sub")
    assert [f.name for f in inside.files] == [f.name for f in below.files]
    assert below.asked == {"../specs/a.frt"}


def test_one_file_by_two_names_is_one_file(here: Path) -> None:
    put(here, "specs/a.frt")
    (here / "link.frt").symlink_to(here / "specs/a.frt")
    found = chosen(here, "specs/a.frt", "./specs/../specs/a.frt", "link.frt", "specs")
    assert found.asked == {"specs/a.frt"}


@pytest.mark.parametrize(
    "path", ["bindings/qwen4.frt", "qwen4.frt", "x\0y", "a" * 5000, "a/" * 900]
)
def test_a_path_that_means_nothing(here: Path, path: str) -> None:
    found = chosen(here, path)
    (problem,) = found.diagnostics
    assert problem.code == "FRT0856" and not found.asked
    assert path in problem.message


def test_a_near_name_is_offered(here: Path) -> None:
    (problem,) = chosen(here, "bindings/qwen33.frt").diagnostics
    assert problem.help == "did you mean `bindings/qwen3.frt`?"
    (problem,) = chosen(here, "gema3.frt").diagnostics
    assert problem.help == "did you mean `bindings/gemma3.frt`?"


def test_a_folder_without_specs(here: Path) -> None:
    (here / "empty").mkdir()
    (problem,) = chosen(here, "empty").diagnostics
    assert problem.code == "FRT0857"


def test_walking_leaves_out_what_is_not_the_projects(here: Path) -> None:
    put(here, "a.frt", "deep/b.frt", ".git/c.frt", "env/lib/d.frt", "x/site-packages/e.frt")
    put(here, "env/pyvenv.cfg", "notes.txt")
    (here / "deep" / "loop").symlink_to(here)
    assert [p.relative_to(here).as_posix() for p in walk(here)] == ["a.frt", "deep/b.frt"]


@pytest.mark.parametrize("path", ["qwen3.frt", "qwem3.frt", "bindings/qwem3.frt"])
def test_a_file_in_another_folder_is_suggested_by_its_whole_name(here: Path, path: str) -> None:
    (found,) = chosen(here, path).diagnostics
    assert found.help == "did you mean `bindings/qwen3.frt`?"

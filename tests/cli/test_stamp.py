"""A second run of gen looks at nothing again, unless anything at all has changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from frtspec import resources
from frtspec.cli import gen as command
from frtspec.cli import stamp
from frtspec.cli.common import FINDINGS, OK
from frtspec.cli.main import main

SCHEME = 'frt 1\n\nscheme plain {\n  otherwise keep "this scheme changes nothing"\n}\n'
PROJECT = '[tool.frtspec]\nout = "src"\npackage = "my_kernels"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A generated package of one scheme, found up to date once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "plain.frt").write_text(SCHEME)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    assert main(["gen"]) == OK
    return tmp_path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each run that reads its specs."""
    seen: list[int] = []
    real = command.load

    def counted(*args: object, **options: object) -> object:
        seen.append(1)
        return real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(command, "load", counted)
    return seen


@pytest.mark.parametrize("argv", [("gen",), ("gen", "--check")])
def test_nothing_changed_nothing_read(
    project: Path, reads: list[int], argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == OK
    quick = capsys.readouterr().out
    assert reads == []
    for file in (project / "cache/frtspec/gen").iterdir():
        file.unlink()
    assert main(argv) == OK
    assert capsys.readouterr().out.splitlines()[-1] == quick.splitlines()[-1]
    assert reads == [1]


def _append(path: str) -> Callable[[Path], None]:
    return lambda root: (root / path).write_text((root / path).read_text() + "\n# more\n")


CHANGES: dict[str, Callable[[Path], None]] = {
    "a spec": _append("specs/plain.frt"),
    "a generated file": _append("src/my_kernels/schemes/plain.py"),
    "the manifest": _append("src/my_kernels/MANIFEST.json"),
    "a generated file gone": lambda root: (root / "src/my_kernels/schemes/plain.py").unlink(),
    "a new spec": lambda root: (
        (root / "specs/more.frt").write_text(SCHEME.replace("plain", "more")) and None
    ),
    "a spec gone": lambda root: (root / "specs/plain.frt").unlink(),
    "the settings": lambda root: (
        (root / "pyproject.toml").write_text(PROJECT.replace("my_kernels", "others")) and None
    ),
    "a link for a generated file": lambda root: _linked(root / "src/my_kernels/__init__.py"),
}


def _linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere.py"))
    path.symlink_to("elsewhere.py")


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_changed_is_seen(project: Path, reads: list[int], what: str) -> None:
    CHANGES[what](project)
    main(["gen", "--check"])
    assert reads == [1]


def test_another_compiler_looks_again(
    project: Path, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = project / "template.jinja"
    extra.write_text("x")
    real = stamp._compiler
    monkeypatch.setattr(stamp, "_compiler", lambda: [*real(), extra])
    assert main(["gen"]) == OK
    assert main(["gen"]) == OK
    extra.write_text("y")
    assert main(["gen"]) == OK
    assert reads == [1, 1]


def test_the_digest_covers_compiler_templates_and_grammar() -> None:
    files = set(stamp._compiler())
    package = resources.templates_dir().parent / "frtspec"
    assert {package / "sema/analyse.py", package / "codegen/plan.py"} <= files
    assert set(resources.templates_dir().iterdir()) <= files
    assert resources.grammar_dir() / "tables.json" in files
    assert not any("runtime" in path.relative_to(package.parent).parts for path in files)


def test_a_run_with_findings_leaves_no_stamp(project: Path, reads: list[int]) -> None:
    (project / "specs/plain.frt").write_text("frt 1\n\nscheme plain { }\n")
    assert main(["gen"]) == FINDINGS
    assert main(["gen"]) == FINDINGS
    assert reads == [1, 1]


def test_a_cache_that_cannot_be_written_costs_time_only(
    project: Path, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "file"))
    assert main(["gen"]) == OK
    assert main(["gen"]) == OK
    assert reads == [1, 1]


def test_old_stamps_make_room(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamp, "KEPT", 3)
    for number in range(6):
        stamp.remember(f"{number:064x}", 1)
    assert len(list((project / "cache/frtspec/gen").iterdir())) == 3

"""Writing a package: only our own files, all of them or none, nothing that did not change."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from codegen_kit import COPY, program_of, tree, written

from frtspec.codegen import generate, manifest
from frtspec.codegen.manifest import ManifestError
from frtspec.ir.decl import Program

MODULE = "structures/copy_v1.py"


@pytest.fixture
def program() -> Program:
    return program_of(COPY)


def codes(report: object) -> list[str]:
    return [d.code for d in report.diagnostics]  # type: ignore[attr-defined]


def times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def age(folder: Path) -> None:
    """Make every file old, so that a fresh write shows in its time."""
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))


# ---------------------------------------------------------------- what is written


def test_a_first_run_writes_everything(program: Program, tmp_path: Path) -> None:
    report = written(program, tmp_path, package="pkg")
    assert set(tree(tmp_path)) == {*report.written, "pkg/MANIFEST.json"}
    assert f"pkg/{MODULE}" in report.written
    assert report.unchanged == report.removed == ()


def test_a_second_run_touches_nothing(program: Program, tmp_path: Path) -> None:
    first = written(program, tmp_path, package="pkg")
    age(tmp_path)
    before = times(tmp_path)
    second = written(program, tmp_path, package="pkg")
    assert second.written == () and second.unchanged == first.written
    assert times(tmp_path) == before


def test_a_change_rewrites_what_it_concerns(tmp_path: Path) -> None:
    other = COPY.replace("copy", "other")
    written(program_of(COPY, other), tmp_path, package="pkg")
    age(tmp_path)
    before = times(tmp_path)
    changed = other.replace("yield y = x_in", "yield y = x_in * 2")
    report = written(program_of(COPY, changed), tmp_path, package="pkg")
    assert report.written == ("pkg/structures/other_v1.py",)
    after = times(tmp_path)
    rewritten = {Path(path).name for path in after if after[path] != before[path]}
    assert rewritten == {"other_v1.py", "MANIFEST.json"}


def test_the_manifest_says_what_came_from_what(program: Program, tmp_path: Path) -> None:
    written(program, tmp_path, package="pkg")
    found = manifest.read(tmp_path / "pkg" / manifest.NAME)
    assert found is not None
    (structure,) = program.structures.values()
    row = found.specs["structure copy v1"]
    assert row.source_digest == structure.origin.source_digest
    assert row.contract_digest == structure.origin.contract_digest
    assert row.module == "structures.copy_v1"
    assert found.files[MODULE].specs == ("structure copy v1",)
    written_bytes = (tmp_path / "pkg" / MODULE).read_bytes()
    assert found.files[MODULE].sha256 == manifest.sha256(written_bytes)


def test_a_package_in_a_folder_that_is_not_there_yet(program: Program, tmp_path: Path) -> None:
    report = written(program, tmp_path / "a" / "b", package="pkg")
    assert (tmp_path / "a" / "b" / "pkg" / MODULE).is_file() and report.written


# ---------------------------------------------------------------- what is left alone


def test_a_file_of_the_users_stays(program: Program, tmp_path: Path) -> None:
    written(program, tmp_path, package="pkg")
    (tmp_path / "pkg" / "keep.py").write_text("mine = 1\n")
    (tmp_path / "pkg" / "structures" / "keep.py").write_text("mine = 1\n")
    report = written(program_of(COPY.replace("copy", "other")), tmp_path, package="pkg")
    assert f"pkg/{MODULE}" in report.removed
    assert (tmp_path / "pkg" / "keep.py").read_text() == "mine = 1\n"
    assert (tmp_path / "pkg" / "structures" / "keep.py").read_text() == "mine = 1\n"
    assert not (tmp_path / "pkg" / MODULE).exists()


def test_a_package_nested_in_another_stays(program: Program, tmp_path: Path) -> None:
    written(program, tmp_path, package="outer")
    written(program, tmp_path / "outer", package="inner")
    nested = tree(tmp_path / "outer" / "inner")
    other = program_of(COPY.replace("copy", "other"))
    written(other, tmp_path, package="outer")
    assert tree(tmp_path / "outer" / "inner") == nested


def test_an_edited_file_is_refused(program: Program, tmp_path: Path) -> None:
    written(program, tmp_path, package="pkg")
    edited = tmp_path / "pkg" / MODULE
    edited.write_text(edited.read_text() + "# mine\n")
    before = tree(tmp_path)
    changed = program_of(COPY.replace("yield y = x_in", "yield y = x_in * 2"))
    report = generate(changed, tmp_path, package="pkg")
    assert codes(report) == ["FRT0830"]
    assert report.diagnostics[0].span.path == (tmp_path / "pkg" / MODULE).as_posix()
    assert tree(tmp_path) == before
    assert report.written == report.removed == ()


def test_an_edited_file_is_refused_when_nothing_else_changed(
    program: Program, tmp_path: Path
) -> None:
    written(program, tmp_path, package="pkg")
    edited = tmp_path / "pkg" / MODULE
    edited.write_text("# mine\n")
    assert codes(generate(program, tmp_path, package="pkg")) == ["FRT0830"]
    assert edited.read_text() == "# mine\n"


def test_an_edit_to_what_would_be_generated_is_fine(program: Program, tmp_path: Path) -> None:
    changed = program_of(COPY.replace("yield y = x_in", "yield y = x_in * 2"))
    written(changed, tmp_path / "there", package="pkg")
    wanted = (tmp_path / "there" / "pkg" / MODULE).read_text()
    written(program, tmp_path / "here", package="pkg")
    (tmp_path / "here" / "pkg" / MODULE).write_text(wanted)
    report = written(changed, tmp_path / "here", package="pkg")
    assert f"pkg/{MODULE}" in report.unchanged
    assert tree(tmp_path / "here") == tree(tmp_path / "there")


def test_an_edited_file_is_not_removed(program: Program, tmp_path: Path) -> None:
    written(program, tmp_path, package="pkg")
    edited = tmp_path / "pkg" / MODULE
    edited.write_text("# mine\n")
    report = generate(program_of(COPY.replace("copy", "other")), tmp_path, package="pkg")
    assert codes(report) == ["FRT0830"]
    assert edited.read_text() == "# mine\n"


def test_a_deleted_file_comes_back(program: Program, tmp_path: Path) -> None:
    written(program, tmp_path, package="pkg")
    before = tree(tmp_path)
    (tmp_path / "pkg" / MODULE).unlink()
    assert written(program, tmp_path, package="pkg").written == (f"pkg/{MODULE}",)
    assert tree(tmp_path) == before


def test_a_foreign_file_in_the_way(program: Program, tmp_path: Path) -> None:
    foreign = tmp_path / "pkg" / MODULE
    foreign.parent.mkdir(parents=True)
    foreign.write_text("mine = 1\n")
    assert codes(generate(program, tmp_path, package="pkg")) == ["FRT0831"]
    assert tree(tmp_path) == {f"pkg/{MODULE}": b"mine = 1\n"}


def test_a_folder_in_the_way(program: Program, tmp_path: Path) -> None:
    (tmp_path / "pkg" / MODULE).mkdir(parents=True)
    report = generate(program, tmp_path, package="pkg")
    assert codes(report) == ["FRT0831"] and "a folder" in report.diagnostics[0].message


def test_a_link_is_not_followed(program: Program, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "copy_v1.py").write_text("theirs = 1\n")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "structures").symlink_to(outside, target_is_directory=True)
    report = generate(program, tmp_path, package="pkg")
    assert set(codes(report)) == {"FRT0831"}
    assert "a symbolic link" in report.diagnostics[0].message
    assert tree(outside) == {"copy_v1.py": b"theirs = 1\n"}


def test_a_linked_output_folder_is_the_users_choice(program: Program, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    written(program, tmp_path / "link", package="pkg")
    assert (tmp_path / "real" / "pkg" / MODULE).is_file()
    assert written(program, tmp_path / "real", package="pkg").written == ()


def test_a_path_with_dots_is_the_same_folder(program: Program, tmp_path: Path) -> None:
    written(program, tmp_path / "out", package="pkg")
    report = written(program, tmp_path / "out" / ".." / "out", package="pkg")
    assert report.written == ()


# ---------------------------------------------------------------- all or nothing


class DiskFull(OSError):
    """What the file system says in these tests."""


@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5, 6, 7])
def test_a_failure_midway_leaves_the_old_tree(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    """Replacements fail at the nth step; new files, changed ones and removals are undone."""
    written(program, tmp_path, package="pkg")
    age(tmp_path)
    before, before_times = tree(tmp_path), times(tmp_path)
    real, calls = os.replace, []

    def failing(source: object, target: object) -> None:
        calls.append(target)
        if len(calls) == nth:
            raise DiskFull(28, "No space left on device", str(target))
        real(source, target)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "replace", failing)
    two = COPY.replace("copy", "other"), COPY.replace("copy", "third")
    report = generate(program_of(*two), tmp_path, package="pkg")
    assert len(calls) >= nth, "the run has fewer steps than this test believes"
    assert codes(report) == ["FRT0834"] and "No space left" in report.diagnostics[0].message
    assert tree(tmp_path) == before and times(tmp_path) == before_times
    monkeypatch.undo()
    written(program_of(*two), tmp_path, package="pkg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pkg"]


def test_an_interrupt_midway_leaves_the_old_tree(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(program, tmp_path, package="pkg")
    before = tree(tmp_path)
    real, calls = os.replace, []

    def interrupted(source: object, target: object) -> None:
        calls.append(target)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(source, target)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        generate(program_of(COPY.replace("copy", "other")), tmp_path, package="pkg")
    assert tree(tmp_path) == before


def test_a_failed_first_run_leaves_no_folder(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(source: object, target: object) -> None:
        raise DiskFull(28, "No space left on device", str(target))

    monkeypatch.setattr(os, "replace", failing)
    assert codes(generate(program, tmp_path / "new", package="pkg")) == ["FRT0834"]
    assert list(tmp_path.iterdir()) == []


def test_an_output_folder_that_is_a_file(program: Program, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    report = generate(program, tmp_path / "taken", package="pkg")
    assert codes(report) == ["FRT0834"] and (tmp_path / "taken").read_text() == "a file"


# ---------------------------------------------------------------- --check


def test_check_writes_nothing(program: Program, tmp_path: Path) -> None:
    report = generate(program, tmp_path, package="pkg", check=True)
    assert set(codes(report)) == {"FRT0832"} and not report.ok
    assert list(tmp_path.iterdir()) == []
    shown = {diff.path: diff.text for diff in report.diffs}
    assert shown[MODULE].startswith("--- /dev/null\n+++ ")
    assert "+def reference(\n" in shown[MODULE]


def test_check_of_what_is_up_to_date(program: Program, tmp_path: Path) -> None:
    written(program, tmp_path, package="pkg")
    report = generate(program, tmp_path, package="pkg", check=True)
    assert report.ok and report.diffs == ()


def test_check_shows_a_unified_diff(program: Program, tmp_path: Path) -> None:
    written(program, tmp_path, package="pkg")
    before = tree(tmp_path)
    changed = program_of(COPY.replace("yield y = x_in", "yield y = x_in * 2"))
    report = generate(changed, tmp_path, package="pkg", check=True)
    diff = next(diff for diff in report.diffs if diff.path == MODULE)
    assert "-    return x_in\n+    return x_in * 2\n" in diff.text
    assert tree(tmp_path) == before


def test_check_shows_what_would_go(program: Program, tmp_path: Path) -> None:
    written(program, tmp_path, package="pkg")
    other = program_of(COPY.replace("copy", "other"))
    report = generate(other, tmp_path, package="pkg", check=True)
    gone = next(diff for diff in report.diffs if diff.path == MODULE)
    assert "+++ /dev/null\n" in gone.text and report.removed == ()


def test_check_finds_an_edit(program: Program, tmp_path: Path) -> None:
    written(program, tmp_path, package="pkg")
    edited = tmp_path / "pkg" / MODULE
    edited.write_text(edited.read_text().replace("return x_in", "return -x_in"))
    report = generate(program, tmp_path, package="pkg", check=True)
    assert codes(report) == ["FRT0830"]
    assert "-    return -x_in\n+    return x_in\n" in report.diffs[0].text


def test_full_trusts_no_digest(program: Program, tmp_path: Path) -> None:
    """A file and its digest changed together are found when nothing is taken on trust."""
    written(program, tmp_path, package="pkg")
    edited = tmp_path / "pkg" / MODULE
    edited.write_text(edited.read_text().replace("return x_in", "return -x_in"))
    listed = tmp_path / "pkg" / manifest.NAME
    body = json.loads(listed.read_text())
    body["files"][MODULE]["sha256"] = manifest.sha256(edited.read_bytes())
    listed.write_text(json.dumps(body, indent=2, sort_keys=True) + "\n")
    assert generate(program, tmp_path, package="pkg", check=True).ok
    report = generate(program, tmp_path, package="pkg", check=True, full=True)
    assert not report.ok and any(diff.path == MODULE for diff in report.diffs)


# ---------------------------------------------------------------- the manifest as input


def manifest_with(path: str, row: object = None) -> str:
    """A manifest that lists one file."""
    entry = {"sha256": "", "raw": "", "inputs": "", "specs": []} if row is None else row
    heads = {"format": 1, "package": "p", "generator": "1", "runtime_abi": 1, "black": "1"}
    return json.dumps({**heads, "specs": {}, "files": {path: entry}})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"format": 99}',
        '{"format": 1}',
        manifest_with("../../x.py"),
        manifest_with("/etc/x"),
        manifest_with("a\\b.py"),
        manifest_with("x.py", row=[]),
        "[" * 100_000,
        "\ufeff{}",
    ],
)
def test_a_damaged_manifest_is_refused(program: Program, tmp_path: Path, text: str) -> None:
    written(program, tmp_path, package="pkg")
    (tmp_path / "pkg" / manifest.NAME).write_text(text)
    before = tree(tmp_path)
    report = generate(program, tmp_path, package="pkg")
    assert codes(report) == ["FRT0833"]
    assert tree(tmp_path) == before


def test_a_manifest_of_bytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / manifest.NAME
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ManifestError):
        manifest.read(path)


def test_without_its_manifest_a_tree_that_is_right_is_adopted(
    program: Program, tmp_path: Path
) -> None:
    written(program, tmp_path, package="pkg")
    before = tree(tmp_path)
    (tmp_path / "pkg" / manifest.NAME).unlink()
    assert written(program, tmp_path, package="pkg").written == ()
    assert tree(tmp_path) == before


# ---------------------------------------------------------------- parts of a program


def test_only_some_files_leaves_the_others(tmp_path: Path) -> None:
    both = program_of(a=COPY, b=COPY.replace("copy", "other"))
    written(both, tmp_path, package="pkg")
    before = tree(tmp_path)
    report = written(both, tmp_path, package="pkg", only={"a.frt"})
    assert report.removed == () and report.written == ()
    assert tree(tmp_path) == before
    pruned = written(both, tmp_path, package="pkg", only={"a.frt"}, prune=True)
    assert pruned.removed == ("pkg/gates/other_v1.py", "pkg/structures/other_v1.py")
    listed = manifest.read(tmp_path / "pkg" / manifest.NAME)
    assert listed is not None and set(listed.specs) == {"structure copy v1"}

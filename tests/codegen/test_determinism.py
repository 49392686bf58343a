"""The same specs give the same bytes: any hash seed, folder, locale, clock, file order."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from codegen_kit import ROOT, SPECS, catalog, tree, written

GENERATE = """
import sys
from pathlib import Path
from format_once import formatted_once
from frtspec.codegen import generate
from frtspec.diag.source import SourceFile
from frtspec.sema import analyse
from frtspec.syntax.parse import parse

specs, out, order = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
paths = sorted(specs.rglob("*.frt"), reverse=order == "reverse")
files = [SourceFile.from_text(p.relative_to(specs).as_posix(), p.read_text("utf-8")) for p in paths]
with formatted_once(Path(sys.argv[4])):
    report = generate(analyse([(f, parse(f).file) for f in files]).program, out)
assert report.ok, report.diagnostics
"""


def generated(cwd: Path, specs: str, out: str, order: str, formatted: Path, **env: str) -> None:
    """Run the generator in a process of its own."""
    paths = os.pathsep.join((str(ROOT), str(Path(__file__).parent)))
    clean = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    command = [sys.executable, "-c", GENERATE, specs, out, order, str(formatted)]
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**clean, "PYTHONPATH": paths, **env},
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.fixture(scope="module")
def two_trees(tmp_path_factory: pytest.TempPathFactory, formatted: Path) -> tuple[Path, Path]:
    """The catalog generated twice, everything different that must not matter."""
    one = tmp_path_factory.mktemp("one")
    other = tmp_path_factory.mktemp("other place") / "deeper" / "still"
    other.mkdir(parents=True)
    shutil.copytree(SPECS, other / "specs")
    fixed = {"PYTHONHASHSEED": "0", "LC_ALL": "C", "TZ": "UTC"}
    generated(one, str(SPECS), str(one / "out"), "sorted", formatted, **fixed)
    generated(
        other,
        "specs",
        "out",
        "reverse",
        formatted,
        PYTHONHASHSEED="4242",
        LC_ALL="tr_TR.UTF-8",
        LANG="tr_TR.UTF-8",
        TZ="Pacific/Auckland",
        USER="someone",
        SOURCE_DATE_EPOCH="0",
    )
    return one / "out", other / "out"


def test_identical_bytes(two_trees: tuple[Path, Path]) -> None:
    one, other = two_trees
    assert tree(one) == tree(other) and tree(one)


def test_no_path_and_no_time(two_trees: tuple[Path, Path]) -> None:
    one, _ = two_trees
    for name, data in tree(one).items():
        text = data.decode()
        assert str(one.parent) not in text and str(ROOT) not in text, name
        assert not re.search(r"\b20\d\d-\d\d-\d\d\b|\d\d:\d\d:\d\d", text), name
        assert os.uname().nodename not in text or len(os.uname().nodename) < 4, name


def test_line_ends_are_newlines(two_trees: tuple[Path, Path]) -> None:
    for name, data in tree(two_trees[0]).items():
        assert b"\r" not in data, name
        assert not data or data.endswith(b"\n"), name


def test_the_committed_package_is_what_its_specs_give(two_trees: tuple[Path, Path]) -> None:
    committed = tree(ROOT / "generated" / "flashrt_gen")
    fresh = tree(two_trees[0] / "flashrt_gen")
    assert sorted(committed) == sorted(fresh)
    stale = [name for name in fresh if committed[name] != fresh[name]]
    assert stale == [], "run `frtspec gen` and commit what it writes"


def test_in_this_process_too(two_trees: tuple[Path, Path], tmp_path: Path) -> None:
    written(catalog(), tmp_path)
    assert tree(tmp_path) == tree(two_trees[0])

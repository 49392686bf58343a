"""Small specs and the packages they become, as files to read and to diff.

``FRTSPEC_UPDATE_GOLDEN=1 pytest tests/codegen/test_golden.py`` writes them anew.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from codegen_kit import program_of, tree, written

FOLDER = Path(__file__).parent / "golden"
CASES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
DIGEST = re.compile(rb'"[0-9a-f]{64}"')
"""Digests move with every revision of an op; what they are is tested elsewhere."""

SAID_ELSEWHERE = ("MANIFEST.json", "py.typed", "__init__.py", "impls/__init__.py")
SAID_ELSEWHERE += ("structures/__init__.py", "gates/__init__.py")


@pytest.mark.parametrize("case", CASES)
def test_the_package_is_as_recorded(case: str, tmp_path: Path) -> None:
    text = (FOLDER / case / "spec.frt").read_text("utf-8")
    written(program_of(**{case: text}), tmp_path, package="golden")
    every = tree(tmp_path / "golden").items()
    made = {n: DIGEST.sub(b'"..."', data) for n, data in every if n not in SAID_ELSEWHERE}
    expected = FOLDER / case / "expected"
    if os.environ.get("FRTSPEC_UPDATE_GOLDEN"):
        shutil.rmtree(expected, ignore_errors=True)
        for name, data in made.items():
            (expected / name).parent.mkdir(parents=True, exist_ok=True)
            (expected / name).write_bytes(data)
    recorded = tree(expected)
    assert sorted(made) == sorted(recorded)
    for name, data in made.items():
        assert data.decode() == recorded[name].decode(), name


@pytest.mark.parametrize("case", CASES)
def test_what_is_recorded_is_linted(case: str) -> None:
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--ignore", "I001"]
    command.append(str(FOLDER / case))
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout

"""Runs ``interpreted.py`` under Triton's interpreter, on the CPU, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(**environment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
         "tests/packages/interpreted.py"],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_interpreter_gives_what_the_emulation_gives() -> None:
    pytest.importorskip(
        "triton", minversion="3.7", reason="the interpreter of 3.6 fails on NumPy 2.4"
    )
    run()


@pytest.mark.slow
def test_many_shapes() -> None:
    pytest.importorskip(
        "triton", minversion="3.7", reason="the interpreter of 3.6 fails on NumPy 2.4"
    )
    run(FRT_INTERPRETED_EXAMPLES="60")

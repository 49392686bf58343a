"""Progress: after a second, on a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
import time
import rich.console, rich.status  # imported before the clock starts, however long it takes
from frtspec.cli import common
common.PATIENCE = 0.05
with common.progress() as say:
    say("reading 1 of 2 files")
    time.sleep({seconds})
    say("checking 2 files")
    time.sleep({seconds})
"""


def stderr_of(seconds: float, *, terminal: bool) -> bytes:
    command = [sys.executable, "-c", SCRIPT.format(seconds=seconds)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    if not terminal:
        return subprocess.run(command, env=env, capture_output=True, check=True).stderr
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(command, env=env, stderr=theirs)
        os.close(theirs)
        seen = b""
        while chunk := _read(ours):
            seen += chunk
        assert process.wait() == 0
        return seen
    finally:
        os.close(ours)


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 4096)
    except OSError:  # Linux's way to say that the other end has closed
        return b""


def test_a_long_run_says_what_it_does() -> None:
    seen = stderr_of(0.6, terminal=True)
    assert b"reading 1 of 2 files" in seen and b"checking 2 files" in seen


@pytest.mark.parametrize("seconds, terminal", [(0.0, True), (0.6, False)])
def test_a_short_run_and_a_pipe_see_nothing(seconds: float, terminal: bool) -> None:
    assert stderr_of(seconds, terminal=terminal) == b""

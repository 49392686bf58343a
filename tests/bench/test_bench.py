"""The benchmark scripts run, and print what they promise to print. No figure is asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def test_the_compiler_benchmark_runs(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, "bench/compiler.py", "--small", "--json", str(figures)],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for promised in ("python", "lark", "cores", "load", "median", "timed:", "MB/s", "exponent"):
        assert promised in done.stdout
    kept = json.loads(figures.read_text())
    assert {"python", "revision", "cpu"} <= set(kept["environment"])
    assert all(row["seconds"] and row["timed"] for row in kept["samples"])


def test_arms_take_turns(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    from _measure import Arm, measure

    order: list[str] = []
    arms = [Arm(name, "a call", lambda name=name: order.append(name)) for name in "AB"]
    samples = measure(arms, rounds=3, warmup=1)
    assert "".join(order) == "AB" + "AB" + "BA" + "AB"
    assert [len(sample.seconds) for sample in samples] == [3, 3]


def test_a_failed_command_is_no_figure() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from _measure import run_fresh; run_fresh('-c', 'raise ValueError')",
        ],
        cwd=ROOT / "bench",
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "ended with code 1" in done.stderr and "ValueError" in done.stderr


def test_the_exponent_of_a_line_is_one(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    from compiler import exponent

    assert exponent({1: 0.5, 10: 0.1, 100: 1.0, 1000: 10.0}) == "1.00"
    assert exponent({10: 0.1, 100: 10.0}) == "2.00"
    assert exponent({1: 0.1, 2: 0.2}).startswith("not fitted")


def test_the_benchmark_of_a_seat_runs(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, "bench/seat_cost.py", "--small", "--device", "cpu", "--json", str(figures)],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    cases = json.loads(figures.read_text())["cases"]
    assert len(cases) == 4
    assert all(min(case.values()) > 0 for case in cases.values())

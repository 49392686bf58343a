"""Timing that can be compared: interleaved arms, medians, spread, and what ran.

An *arm* is one thing to time. Arms of one measurement take turns, first in one
order, then in the reverse (A B, B A, …), so that a machine that slows down does so
for all of them alike. Nothing is discarded except the warm-up rounds.
"""

from __future__ import annotations

import gc
import importlib.metadata
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import frtspec

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Sample:
    """Times of one arm in seconds, in the order they were taken: wall, and CPU of this
    process and its children, which says more where other work shares the machine.

    ``timed`` says what lies inside the timed region, ``target`` the median wall time
    that the arm should stay under, or None.
    """

    name: str
    timed: str
    seconds: tuple[float, ...]
    cpu: tuple[float, ...]
    target: float | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def cpu_median(self) -> float:
        return statistics.median(self.cpu)

    @property
    def spread(self) -> tuple[float, float]:
        """The fastest and the slowest run."""
        return min(self.seconds), max(self.seconds)

    @property
    def verdict(self) -> str:
        """``met`` or ``missed`` against the target, or ``-`` without one."""
        if self.target is None:
            return "-"
        return "met" if self.median < self.target else "missed"


@dataclass(frozen=True)
class Arm:
    """One thing to time. ``run`` holds the whole timed region and nothing else."""

    name: str
    timed: str
    run: Callable[[], object]
    target: float | None = None


def measure(arms: Sequence[Arm], *, rounds: int, warmup: int = 1) -> list[Sample]:
    """Time every arm ``rounds`` times, interleaved, after ``warmup`` untimed rounds."""
    wall: dict[str, list[float]] = {arm.name: [] for arm in arms}
    cpu: dict[str, list[float]] = {arm.name: [] for arm in arms}
    for arm in list(arms) * warmup:
        arm.run()
    for number in range(rounds):
        for arm in arms if number % 2 == 0 else reversed(arms):
            gc.collect()  # so that no arm pays for what another left behind
            busy, start = _cpu_seconds(), time.perf_counter()
            arm.run()
            wall[arm.name].append(time.perf_counter() - start)
            cpu[arm.name].append(_cpu_seconds() - busy)
    return [
        Sample(arm.name, arm.timed, tuple(wall[arm.name]), tuple(cpu[arm.name]), arm.target)
        for arm in arms
    ]


def _cpu_seconds() -> float:
    """User and system time of this process and of the children it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(row.ru_utime + row.ru_stime for row in used)


def run_fresh(*argv: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> None:
    """Run ``python *argv`` in a fresh process; ``env`` adds to this one's environment.

    Raises ``SystemExit`` with the process's whole output when it fails: a time
    taken from a failed run would mean nothing.
    """
    done = subprocess.run(
        [sys.executable, *argv],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(
            f"`{' '.join(argv)}` ended with code {done.returncode}:\n{done.stdout}{done.stderr}"
        )


def environment(packages: Sequence[str]) -> dict[str, str]:
    """Versions and the machine: what a figure needs beside it to mean anything."""
    found = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "frtspec": frtspec.__version__,
    }
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    found["revision"] = _revision()
    found["cpu"] = _cpu()
    found["cores"] = str(len(os.sched_getaffinity(0)))
    found["load"] = " ".join(f"{value:.2f}" for value in os.getloadavg())
    return found


def _revision() -> str:
    """The commit that was measured, with ``+`` after it when files differ from it."""
    try:
        commit = _git("rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*argv: str) -> str:
    done = subprocess.run(["git", *argv], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def table(samples: Sequence[Sample]) -> str:
    """One row an arm: median, fastest and slowest wall time, median CPU time, number of
    runs, target, verdict."""
    width = max(len(sample.name) for sample in samples)
    heads = f"{'median':>9} {'fastest':>9} {'slowest':>9} {'cpu':>9} {'runs':>5} {'target':>9}"
    lines = [f"{'':{width}}  {heads}"]
    for sample in samples:
        low, high = sample.spread
        target = "-" if sample.target is None else f"< {sample.target:.2f} s"
        lines.append(
            f"{sample.name:{width}}  {_time(sample.median):>9} {_time(low):>9} {_time(high):>9} "
            f"{_time(sample.cpu_median):>9} {len(sample.seconds):>5} {target:>9}  "
            f"{sample.verdict}".rstrip(" -")
        )
    lines += ["", "timed:"]
    lines += [f"  {sample.name:{width}}  {sample.timed}" for sample in samples]
    return "\n".join(lines)


def _time(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"


def write_json(path: Path, found: Mapping[str, str], samples: Sequence[Sample]) -> None:
    """Every single time, with the environment, for a later comparison."""
    rows = [asdict(sample) | {"median": sample.median} for sample in samples]
    path.write_text(json.dumps({"environment": dict(found), "samples": rows}, indent=2) + "\n")

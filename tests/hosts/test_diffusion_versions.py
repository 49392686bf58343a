"""The oldest and the newest diffusers of the range that each binding declares."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from typing import Any

import pytest

from frtspec import resources
from tests.hosts.overlay import NotAvailable, ends, environment, overlay

pytestmark = pytest.mark.slow

DECLARED = {
    "wan": ">=0.35,<0.43",
    "cosmos": ">=0.37,<0.43",
    "flux": ">=0.35,<0.43",
    "cosmos3": ">=0.40,<0.43",
}
"""Cosmos' attention can be routed from 0.37 on; from 0.40 on Cosmos 3 says its activation."""

ROOT = resources.specs_dir().parent


@functools.cache
def report(end: int, name: str) -> dict[str, Any]:
    """What verify says with the oldest (0) or the newest (1) version of the range."""
    try:
        version = ends("diffusers", DECLARED[name])[end]
        found = environment(overlay("diffusers", version), ROOT, ROOT / "generated")
    except NotAvailable as reason:
        pytest.skip(f"the package index can't be reached: {reason}")
    done = subprocess.run(
        [sys.executable, "-m", "tests.hosts.diffusion", name],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=found,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    assert told["diffusers"] == str(version)
    return told


@pytest.mark.parametrize("name", DECLARED)
def test_the_range_is_the_one_declared(name: str) -> None:
    assert report(1, name)["declared"] == DECLARED[name]


@pytest.mark.parametrize("end", [0, 1], ids=["oldest", "newest"])
@pytest.mark.parametrize("name", DECLARED)
def test_everything_a_binding_says_is_so(name: str, end: int) -> None:
    found = report(end, name)
    assert [p for seat in found["seats"] for p in seat["problems"]] + found["problems"] == []
    assert all(seat["calls"] for seat in found["seats"])

"""Bindings of lerobot's policies on lerobot's own classes, in an overlay of their versions.

The overlay holds transformers 5.5.4, diffusers 0.39 and lerobot 0.6.1's wheel, no second
torch. It is made once in a cache folder.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from frtspec import resources

pytestmark = pytest.mark.slow

LEROBOT = "lerobot==0.6.1"
OVERLAY = (
    "transformers==5.5.4",
    "diffusers==0.39.0",
    "huggingface_hub>=1.5,<2",
    "tokenizers==0.22.2",
    "httpx==0.28.1",
    "httpcore==1.0.9",
    "h11==0.16.0",
    "anyio==4.16.0",
    "idna",
    "certifi",
    "sniffio",
)
"""Installed without their dependencies: those are in the environment, torch among them."""

ROOT = resources.specs_dir().parent


def pip(*arguments: str) -> None:
    """Runs pip; skips with what it said where no index can be reached."""
    done = subprocess.run(  # noqa: PLW1510 - its outcome is read below
        [sys.executable, "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()
        if any("No matching distribution" in line or "Connection" in line for line in said):
            pytest.skip(f"the package index can't be reached: {said[-1]}")
        raise AssertionError(done.stderr)


@functools.cache
def overlay() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "frtspec-tests" / "lerobot-0.6.1"
    if (folder / "complete").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    pip("install", "--no-deps", "--upgrade", "--target", str(folder), *OVERLAY)
    wheels = folder / "wheels"
    # Its metadata asks for a newer Python than this one; the modules used here do not.
    pip("download", "--no-deps", "--python-version", "3.12", "--only-binary", ":all:", LEROBOT,
        "--dest", str(wheels))  # fmt: skip
    (wheel,) = wheels.glob("lerobot-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    (folder / "complete").touch()
    return folder


@functools.cache
def report(name: str, *what: str) -> dict[str, Any]:
    """What `lerobot_models` says of one policy, from a process that has the overlay."""
    paths = [str(overlay()), str(ROOT), str(ROOT / "generated")]
    done = subprocess.run(  # noqa: PLW1510 - its outcome is read below
        [sys.executable, "-m", "tests.hosts.lerobot_models", str(overlay()), name, *what],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


SEATS = {
    "pi05": Counter(
        dict.fromkeys(
            ["vision_norm1", "vision_qkv", "vision_o", "vision_norm2", "vision_ffn"]
            + ["prefix_qkv", "prefix_attention", "prefix_o", "prefix_ffn"]
            + ["expert_norm1", "expert_qkv", "expert_attention", "expert_o"]
            + ["expert_norm2", "expert_ffn"],
            2,
        )
        | dict.fromkeys(
            ["features", "expert_norm", "action_in", "time_in", "time_out", "action_out"], 1
        )
    ),
    "smolvla": Counter(
        dict.fromkeys(
            ["vision_norm1", "vision_qkv", "vision_o", "vision_norm2", "vision_ffn"]
            + ["expert_qkv", "cross_q", "cross_k", "cross_v"],
            2,
        )
        | dict.fromkeys(["prefix_qkv", "prefix_o", "prefix_ffn", "expert_o", "expert_ffn"], 4)
        | dict.fromkeys(["features", "state", "action_in", "time_in", "time_out", "action_out"], 1)
    ),
    "groot_n17": Counter(
        dict.fromkeys(
            ["vision_norm1", "vision_qkv", "vision_o", "vision_norm2", "vision_ffn"]
            + ["llm_qkv", "llm_o", "llm_ffn", "self_qkv", "cross_q", "cross_k", "cross_v"],
            2,
        )
        | dict.fromkeys(["norm1", "o", "ff"], 4)
    ),
}
"""Seats of each name on the small models: layers that take turns share their names."""

ONCE = {"pi05": ("vision", "prefix", "features"), "smolvla": ("vision", "prefix", "features"),
        "groot_n17": ("vision", "llm")}  # fmt: skip
"""Seats that run once an observation; the others run at each of its two steps."""


@pytest.mark.parametrize("name", SEATS)
def test_everything_a_binding_says_is_so(name: str) -> None:
    found = report(name)
    told = [p for seat in found["seats"] for p in seat["problems"]] + found["problems"]
    assert told == []
    assert Counter(seat["name"].partition("[")[0] for seat in found["seats"]) == SEATS[name]
    for seat in found["seats"]:
        if not any("parts of the host" in note for note in seat["notes"]):
            assert seat["reference"] is not None, seat["name"]


@pytest.mark.parametrize("name", SEATS)
def test_what_runs_once_an_observation_and_what_at_each_step(name: str) -> None:
    for seat in report(name)["seats"]:
        once = seat["name"].startswith(ONCE[name]) or seat["name"] == "state"
        assert seat["calls"] == ([1, 1] if once else [2, 2]), seat["name"]


@pytest.mark.parametrize("name", SEATS)
def test_a_scan_finds_what_the_binding_names(name: str) -> None:
    found = report(name, "scan")
    assert found["missed"] == [] and found["unexplained"] == []
    told = [p for seat in found["verified"]["seats"] for p in seat["problems"]]
    assert told == [] and found["verified"]["ok"], found["draft"]

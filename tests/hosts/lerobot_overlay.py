"""lerobot's model modules from its wheel, with the releases of transformers and diffusers that
it takes, laid over the installed environment: no second torch. Made once in a cache folder.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from frtspec import resources

COMMON = (
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

RELEASES = {
    "0.6.1": ("transformers==5.5.4", "diffusers==0.39.0"),
    "0.5.1": ("transformers==5.3.0", "diffusers==0.35.2"),
}
"""Release of lerobot -> what it is laid over with."""

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
def overlay(release: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "frtspec-tests" / f"lerobot-{release}"
    if (folder / "complete").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    held = (*RELEASES[release], *COMMON)
    pip("install", "--no-deps", "--upgrade", "--target", str(folder), *held)
    wheels = folder / "wheels"
    # Its metadata asks for a newer Python than this one; the modules used here do not.
    pip("download", "--no-deps", "--python-version", "3.12", "--only-binary", ":all:",
        f"lerobot=={release}", "--dest", str(wheels))  # fmt: skip
    (wheel,) = wheels.glob("lerobot-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    (folder / "complete").touch()
    return folder


@functools.cache
def report(release: str, name: str, *what: str) -> dict[str, Any]:
    """What `lerobot_models` says of one policy, from a process that has the overlay."""
    folder = str(overlay(release))
    done = subprocess.run(  # noqa: PLW1510 - its outcome is read below
        [sys.executable, "-m", "tests.hosts.lerobot_models", folder, name, *what],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([folder, str(ROOT), f"{ROOT}/generated"])},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found

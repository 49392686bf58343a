"""Other versions of a host package, laid over the installed ones.

An overlay is a folder that goes first on ``PYTHONPATH``: the package at one version, and
those of its requirements that the installed versions don't meet. Nothing else is installed
twice; torch is the installed one.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from frtspec.live.data import cache_dir

_PYTHON = f"py{sys.version_info.major}{sys.version_info.minor}"
_NEVER = frozenset({"torch", "torchvision", "torchaudio"})


class NotAvailable(Exception):
    """pip can't get it here; the text is pip's own."""


@cache
def versions(package: str) -> tuple[Version, ...]:
    """Every final release that pip can install here, ascending."""
    printed = _pip("index", "versions", package)
    line = re.search(r"Available versions: (.*)", printed)
    if line is None:
        raise NotAvailable(printed)
    found = (Version(text) for text in line[1].split(", "))
    return tuple(sorted(version for version in found if not version.is_prerelease))


def ends(package: str, declared: str) -> tuple[Version, Version]:
    """The oldest and the newest release inside a declared range."""
    inside = [v for v in versions(package) if SpecifierSet(declared).contains(v)]
    if not inside:
        raise NotAvailable(f"no release of {package} is in {declared}")
    return inside[0], inside[-1]


def overlay(package: str, version: Version) -> Path:
    """The folder that holds this version; made on first use, then kept in the cache."""
    folder = cache_dir() / "overlays" / f"{package}-{version}-{_PYTHON}"
    done = folder / ".complete"
    if not done.is_file():
        _install(folder, f"{package}=={version}")
        waiting = [package]
        while waiting:
            for requirement in _unmet(folder, waiting.pop()):
                _install(folder, str(requirement))
                waiting.append(requirement.name)
        assert not [name for name in _NEVER if (folder / name).exists()]
        done.touch()
    return folder


def environment(folder: Path | None, *paths: Path) -> dict[str, str]:
    """The environment of a process that sees the overlay first, then ``paths``."""
    held = os.environ.get("PYTHONPATH")
    first = [] if folder is None else [str(folder)]
    search = [*first, *map(str, paths), *([held] if held else [])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(search)}


def _install(folder: Path, requirement: str) -> None:
    _pip("install", "--quiet", "--no-deps", "--upgrade", "--target", str(folder), requirement)


def _unmet(folder: Path, package: str) -> list[Requirement]:
    """Requirements of a package in the overlay that nothing there or here meets."""
    (held,) = importlib.metadata.distributions(name=package, path=[str(folder)])
    unmet = []
    for text in held.requires or ():
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        found = _found(folder, requirement.name)
        if found is None or not requirement.specifier.contains(found, prereleases=True):
            assert requirement.name not in _NEVER, f"{package} wants {requirement}"
            unmet.append(requirement)
    return unmet


def _found(folder: Path, package: str) -> str | None:
    for path in ([str(folder)], sys.path):
        for held in importlib.metadata.distributions(name=package, path=path):
            return held.version
    return None


def _pip(*argv: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pip", *argv], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotAvailable(done.stderr or done.stdout)
    return done.stdout


def verified(folder: Path | None, spec: str, factory: str) -> dict[str, Any]:
    """What `frtspec verify` reports about a host of ``hosts.factories``, in a process of its own
    with the overlay in front."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "frtspec", "verify", spec, f"hosts.factories:{factory}"]
        + ["--format", "json"],
        env=environment(folder, root, root / "generated", root / "tests"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report

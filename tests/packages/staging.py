"""The shipped kernel packages, staged so that this machine can load them.

A ``torch-cuda`` build does not load under CPU torch. A copy under a CPU variant name and an
id of its own does, and under Triton's interpreter its kernels run.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import types
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

PACKAGES = Path(__file__).parents[2] / "frtspec" / "packages"
VARIANT = "build/torch-cuda"


def names() -> list[str]:
    return sorted(folder.name for folder in PACKAGES.iterdir() if (folder / VARIANT).is_dir())


def on_cpu(name: str, folder: Path) -> Path:
    """A copy of a package in ``folder`` that CPU torch loads; the path of the package."""
    variant = folder / name / "build" / "torch-cpu"
    shutil.copytree(
        PACKAGES / name / VARIANT, variant, ignore=shutil.ignore_patterns("__pycache__")
    )
    path = variant / "metadata.json"
    metadata = json.loads(path.read_text())
    metadata |= {"id": metadata["id"] + "_staged", "backend": {"type": "cpu"}}
    path.write_text(json.dumps(metadata))
    return folder / name


def submodules(name: str) -> Callable[[str], ModuleType]:
    """Imports modules of a package by name without running its ``__init__``, which registers
    its operators."""
    alias = "_frt_staged_" + name.replace("-", "_")
    if alias not in sys.modules:
        package = types.ModuleType(alias)
        package.__path__ = [str(PACKAGES / name / VARIANT)]
        sys.modules[alias] = package
    return lambda module: importlib.import_module(f"{alias}.{module}")

"""Contract packages as ``kernels`` loads them: staged once a process, each whole by itself.

A kernel package may import relatively only, and only within its folder. What the packages share
lies in ``_shared`` here and is copied into each when it is staged.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path
from types import ModuleType

from kernels import get_local_kernel

HERE = Path(__file__).resolve().parent
OWNER = "flashrt"
VARIANT = Path("build") / "torch-universal"


def names() -> tuple[str, ...]:
    """The packages that there are, without their owner."""
    return tuple(sorted(found.parents[2].name for found in HERE.glob(f"*/{VARIANT}/metadata.json")))


@functools.cache
def staged(name: str) -> Path:
    """The folder of a package that ``kernels`` can load; the same one for the whole process.

    ``kernels`` puts a package into ``sys.modules`` by its id, so a second copy of one would meet
    the parts of the first.
    """
    source = HERE / name
    if not (source / VARIANT / "metadata.json").is_file():
        raise FileNotFoundError(f"no contract package {name}: there are {', '.join(names())}")
    target = _root() / name
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, target, ignore=ignored)
    shutil.copytree(HERE / "_shared", target / VARIANT / "_shared", ignore=ignored)
    return target


@functools.cache
def _root() -> Path:
    root = Path(tempfile.mkdtemp(prefix="contracts-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return root


def load(name: str) -> ModuleType:
    """The package, loaded by ``kernels``."""
    return get_local_kernel(staged(name))


def local_kernels(*packages: str) -> str:
    """The value of LOCAL_KERNELS that names these packages (all of them without any)."""
    return ":".join(f"{OWNER}/{name}={staged(name)}" for name in packages or names())

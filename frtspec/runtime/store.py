"""Files that several processes read and write: a reader sees a whole file or none, there is
one writer at a time, and what can't be read is kept.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from frtspec.runtime.errors import Refusal

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows has none: there files are whole, and writers take no turns
    fcntl = None

PATIENCE = 60.0
"""Seconds to wait for another writer."""


def cache_dir() -> Path:
    """Where calibrations and decisions are kept between runs: ``$FRTSPEC_CACHE_DIR``, else
    ``frtspec`` in ``$XDG_CACHE_HOME``, else ``~/.cache/frtspec``."""
    own = os.environ.get("FRTSPEC_CACHE_DIR")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "frtspec"


@contextlib.contextmanager
def locked(path: Path, *, patience: float = PATIENCE) -> Iterator[None]:
    """Holds the file's lock, ``.<name>.lock`` beside it, for the length of the block.

    The system gives up the lock of a process that dies, so none is ever stale. Raises
    Refusal ``store.locked`` when another process holds it for longer than ``patience``
    seconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.lock")
    handle = os.open(beside, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _acquire(handle, path, beside, patience)
        yield
    finally:
        os.close(handle)


def _acquire(handle: int, path: Path, beside: Path, patience: float) -> None:
    if fcntl is None:
        return
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise Refusal(
                    "store.locked",
                    f"another process has held {beside} for more than {patience:g} s",
                    fix=f"end the process that writes {path.name}, or wait for it",
                ) from None
            time.sleep(0.02)
        else:
            return


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside ``path`` to write into; it takes the place when the block ends well.

    A file that is a link stays one: what it points at is replaced.
    """
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".new")
    os.close(handle)
    try:
        yield Path(name)
        with open(name, "rb") as file:
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def sweep(path: Path) -> None:
    """Removes what killed writers left beside the file. For a caller that holds its lock."""
    target = path.resolve()
    for left in target.parent.glob(f".{target.name}.*.new"):
        with contextlib.suppress(FileNotFoundError):
            left.unlink()


def set_aside(path: Path) -> Path:
    """Renames a file that can't be read to ``<name>.corrupt``, numbered where there is one
    already; returns where it lies now."""
    number = 0
    while True:
        kept = path.with_name(f"{path.name}.corrupt{f'-{number}' if number else ''}")
        if not kept.exists():
            os.rename(path, kept)
            return kept
        number += 1


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

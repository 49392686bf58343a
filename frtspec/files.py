"""Writing a file so that a reader sees the old bytes or the new ones, never a part."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> bool:
    """Replaces the file's contents, keeping its mode; a link's target is replaced, not the
    link. Returns False, and leaves the file and its mtime alone, when it holds just that.

    Raises ``OSError`` when the folder can't be written.
    """
    target = path.resolve()
    with contextlib.suppress(FileNotFoundError):
        if target.read_bytes() == data:
            return False
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.stat().st_mode if target.exists() else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    return True


def write_together(folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """Writes several files of one folder, or none: all stand beside their places before the
    first takes its own. Returns the names of those that changed; the others keep their mtime.

    Raises ``OSError`` when one of them can't be written.
    """
    staged: list[tuple[str, Path]] = []
    try:
        for name, data in files.items():
            target = folder / name
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
            if target.is_file() and target.read_bytes() == data:
                continue
            folder.mkdir(parents=True, exist_ok=True)
            beside = folder / f".{name}.new"
            staged.append((name, beside))
            beside.write_bytes(data)
        for name, beside in staged:
            os.replace(beside, folder / name)
    finally:
        for _, beside in staged:
            with contextlib.suppress(OSError):
                beside.unlink()
    return [name for name, _ in staged]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

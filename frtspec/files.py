"""Writing a file so that a reader sees the old bytes or the new ones, never a part."""

from __future__ import annotations

import contextlib
import os
import tempfile
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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

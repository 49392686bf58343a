"""Replacing files on disk: the whole set, or nothing.

Every new file is complete on the disk, beside the package, before the first old one is
replaced. Whatever goes wrong then, an interrupt too, each step already done is undone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path


def replace_files(root: Path, write: Mapping[str, str], remove: Iterable[str]) -> None:
    """Write and remove files below ``root`` (paths relative to it, with ``/``).

    Raises what the file system raises, with the tree as it was before.
    """
    gone = list(remove)
    if not write and not gone:
        return
    with ExitStack() as undo:
        _make_folder(root, undo)
        with tempfile.TemporaryDirectory(prefix=".frtspec-", dir=root.parent) as folder:
            staging = Path(folder)
            for number, text in enumerate(write.values()):
                _write_new(staging / f"{number}.new", text)
            with ExitStack() as steps:
                for number, path in enumerate(write):
                    _replace(root / path, staging / f"{number}.new", steps)
                for number, path in enumerate(gone, start=len(write)):
                    _remove(root / path, staging / f"{number}.old", steps)
                steps.pop_all()
        undo.pop_all()
    _drop_empty_folders(root, gone)


def _make_folder(folder: Path, undo: ExitStack) -> None:
    """Create a folder and what is missing above it."""
    missing = []
    at = folder
    while not at.exists():
        missing.append(at)
        at = at.parent
    for path in reversed(missing):
        path.mkdir()
        undo.callback(path.rmdir)


def _write_new(path: Path, text: str) -> None:
    with path.open("wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def _replace(target: Path, new: Path, undo: ExitStack) -> None:
    _make_folder(target.parent, undo)
    if target.exists():
        backup = new.with_suffix(".old")
        _keep(target, backup)
        undo.callback(os.replace, backup, target)
    else:
        undo.callback(target.unlink, missing_ok=True)
    os.replace(new, target)


def _keep(file: Path, backup: Path) -> None:
    """A second name for a file, or a copy where the file system has no hard links."""
    try:
        os.link(file, backup)
    except OSError:
        shutil.copy2(file, backup)


def _remove(file: Path, backup: Path, undo: ExitStack) -> None:
    os.replace(file, backup)
    undo.callback(os.replace, backup, file)


def _drop_empty_folders(root: Path, removed: Iterable[str]) -> None:
    for path in removed:
        folder = (root / path).parent
        while folder != root and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent

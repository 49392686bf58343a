"""What an earlier run of ``gen`` found up to date, so that the next one need not look again.

A stamp is a small file in the user's cache folder, named by a digest of everything that
decides what ``gen`` would do: the compiler itself, every spec, the options, and every byte
of the generated package. Where it is there, there is nothing to do. Only a run without any
finding leaves one, and losing them costs a second.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from frtspec import __version__, resources
from frtspec.codegen import manifest as mf
from frtspec.files import write_atomically
from frtspec.project import Selection

KEPT = 256
"""Stamps that stay; the oldest make room."""

_APART = ("runtime", "live", "packages")
"""Folders of frtspec that no part of ``gen`` reads."""


def key(selection: Selection, package_dir: Path, options: object, others: Iterable[Path]) -> str:
    """The digest of one state of the world, in hexadecimal.

    options  anything with a faithful ``repr``
    others   further files that decide what is generated
    """
    digest = hashlib.sha256()
    parts = [__version__, repr(options), package_dir.as_posix()]
    for part in (*parts, *sorted(selection.asked)):
        _add(digest, part.encode())
    for file in selection.files:
        _add(digest, f"{file.path}\0{file.name}".encode())
        _add_file(digest, file.real)
    for path in (*_compiler(), *others, *_generated(package_dir)):
        _add(digest, path.as_posix().encode())
        _add_file(digest, path)
    return digest.hexdigest()


def known(key: str) -> int | None:
    """How many files a run found up to date in this state; None where none has looked."""
    try:
        return int((_folder() / key).read_text("ascii"))
    except (OSError, ValueError):
        return None


def remember(key: str, files: int) -> None:
    """Leaves a stamp; does nothing where the cache folder can't be written."""
    folder = _folder()
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(folder / key, str(files).encode("ascii"))
        stamps = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)
        for old in stamps[:-KEPT]:
            old.unlink(missing_ok=True)


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "frtspec" / "gen"


def _compiler() -> list[Path]:
    package = Path(__file__).resolve().parents[1]
    code = [
        path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in _APART
    ]
    data = [*resources.templates_dir().iterdir(), *resources.grammar_dir().iterdir()]
    return sorted(code) + sorted(path for path in data if path.is_file())


def _generated(package_dir: Path) -> list[Path]:
    """The manifest and the files that it names; a file that is gone changes the digest too."""
    manifest = package_dir / mf.NAME
    try:
        files = json.loads(manifest.read_bytes())["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return [manifest]
    inside = sorted(path for path in files if isinstance(path, str) and mf.is_inside(path))
    return [manifest, *(package_dir / path for path in inside)]


def _add(digest: hashlib._Hash, data: bytes) -> None:
    digest.update(len(data).to_bytes(8, "big"))
    digest.update(data)


def _add_file(digest: hashlib._Hash, path: Path) -> None:
    """The bytes of a file and whether it is one (a link is not what was written). A pipe
    would be waited for, so nothing but a file is opened."""
    if not path.is_file():
        _add(digest, b"none")
        return
    try:
        data = path.read_bytes()
        _add(digest, b"link" if path.is_symlink() else b"file")
        _add(digest, data)
    except OSError as error:
        _add(digest, f"none {error.errno}".encode())

"""MANIFEST.json: which files are ours, what each was made from, and how it looked.

The manifest is what makes a second run cheap (a file whose inputs are unchanged is
neither rendered nor formatted) and safe (a file that differs from what was written
was edited by a person, and is left alone).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

NAME = "MANIFEST.json"
FORMAT = 1


class ManifestError(ValueError):
    """The manifest is there but is not one of ours, or was damaged."""


@dataclass(frozen=True)
class FileEntry:
    """One generated file.

    sha256  of the file as written
    raw     of its text before formatting
    inputs  of all it was made from: the facts, the template, generator and formatter
    specs   the declarations it came from, as keys of ``Manifest.specs``
    """

    sha256: str
    raw: str
    inputs: str
    specs: tuple[str, ...] = ()


@dataclass(frozen=True)
class SpecEntry:
    """One declaration: its file (relative to its spec root), digests, generated module."""

    path: str
    source_digest: str
    contract_digest: str
    module: str | None = None


@dataclass(frozen=True)
class Manifest:
    """``files`` by path relative to the package folder, ``specs`` by ``structure x v1``…"""

    package: str
    generator: str
    runtime_abi: int
    black: str
    specs: Mapping[str, SpecEntry] = field(default_factory=dict)
    files: Mapping[str, FileEntry] = field(default_factory=dict)

    def text(self) -> str:
        """Canonical JSON: sorted keys, one fact a line."""
        body: dict[str, Any] = {"format": FORMAT, **asdict(self)}
        return json.dumps(body, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def sha256(data: str | bytes) -> str:
    """Hex digest of text (as UTF-8) or bytes."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def read(path: Path) -> Manifest | None:
    """The manifest at ``path``, or None when there is no such file.

    Raises ``ManifestError`` when it cannot be understood.
    """
    try:
        text = path.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"it cannot be read: {error}") from error
    try:
        body = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ManifestError(f"it is no JSON: {error}") from error
    return _from_json(body)


def _from_json(body: Any) -> Manifest:
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        found = body.get("format") if isinstance(body, dict) else None
        raise ManifestError(f"expected format {FORMAT}, found {found!r}")
    try:
        files = {path: _file_entry(path, row) for path, row in body["files"].items()}
        specs = {key: SpecEntry(**row) for key, row in body["specs"].items()}
        heads = {key: body[key] for key in ("package", "generator", "runtime_abi", "black")}
    except (KeyError, TypeError, AttributeError) as error:
        raise ManifestError(f"a field is missing or has the wrong form: {error}") from error
    return Manifest(**heads, specs=specs, files=files)


def _file_entry(path: str, row: Mapping[str, Any]) -> FileEntry:
    if not is_inside(path):
        raise ManifestError(f"it names a file outside its folder: {path!r}")
    return FileEntry(str(row["sha256"]), str(row["raw"]), str(row["inputs"]), tuple(row["specs"]))


def is_inside(path: str) -> bool:
    """Whether a manifest path stays below the package folder on every system."""
    pure = PurePosixPath(path)
    plain = not any(ch in path for ch in "\\:\0")
    return plain and not pure.is_absolute() and bool(pure.parts) and ".." not in pure.parts

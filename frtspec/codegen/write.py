"""What a run would do to the tree, decided before anything is touched.

A file that a person edited, or that is not ours, is never written or removed; a file
whose text is unchanged is not written, so it keeps its modification time.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from frtspec.codegen import manifest as mf
from frtspec.codegen.manifest import FileEntry, Manifest, sha256
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import Span


@dataclass(frozen=True)
class Unit:
    """One file to be.

    path    relative to the package folder, with ``/``
    inputs  digest of everything the text depends on
    specs   the declarations it comes from
    raw     renders the text before formatting
    format  brings that text into its final form (``str -> str``)
    """

    path: str
    inputs: str
    specs: tuple[str, ...]
    raw: Callable[[], str]
    format: Callable[[str], str]


@dataclass(frozen=True)
class Diff:
    """What ``--check`` found out of date: a unified diff, whole."""

    path: str
    text: str


@dataclass
class Changes:
    """What a run would do to the tree. Paths are relative to the package folder."""

    write: dict[str, str] = field(default_factory=dict)
    unchanged: list[str] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    entries: dict[str, FileEntry] = field(default_factory=dict)
    diffs: list[Diff] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def manifest(self, shown: str, on_disk: bytes | None, text: str) -> bool:
        """Note whether the manifest itself changes."""
        if on_disk == text.encode():
            return False
        self.diffs.append(_diff(shown, mf.NAME, on_disk, text))
        return True


def compare(
    root: Path, shown: str, units: Sequence[Unit], old: Manifest | None, *, prune: bool, full: bool
) -> Changes:
    """Compare what should be with what is; changes nothing.

    shown  the package folder as messages name it
    prune  whether files of the old manifest that no unit makes are to be removed
    full   render and format every file, trusting no digest of the manifest
    """
    changes = Changes()
    known = old.files if old else {}
    for unit in units:
        _compare_one(root, shown, unit, known.get(unit.path), changes, full)
    planned = {unit.path for unit in units}
    for path, entry in known.items():
        if path in planned:
            continue
        if prune:
            _plan_removal(root, shown, path, entry, changes)
        else:
            changes.entries[path] = entry
    return changes


def _compare_one(
    root: Path, shown: str, unit: Unit, entry: FileEntry | None, changes: Changes, full: bool
) -> None:
    path = root / unit.path
    if obstacle := _obstacle(root, unit.path):
        changes.diagnostics.append(_in_the_way(shown, unit.path, obstacle))
        return
    on_disk = path.read_bytes() if path.exists() else None
    as_written = entry is not None and on_disk is not None and sha256(on_disk) == entry.sha256
    if entry and as_written and entry.inputs == unit.inputs and not full:
        changes.unchanged.append(unit.path)
        changes.entries[unit.path] = entry
        return
    raw = unit.raw()
    raw_digest = sha256(raw)
    same_raw = entry is not None and as_written and entry.raw == raw_digest and not full
    text = on_disk.decode() if same_raw and on_disk is not None else unit.format(raw)
    changes.entries[unit.path] = FileEntry(sha256(text), raw_digest, unit.inputs, unit.specs)
    if on_disk == text.encode():
        changes.unchanged.append(unit.path)
        return
    changes.diffs.append(_diff(shown, unit.path, on_disk, text))
    if on_disk is None or as_written:
        changes.write[unit.path] = text
    elif entry is None:
        changes.diagnostics.append(_in_the_way(shown, unit.path, "a file that gen did not write"))
    else:
        changes.diagnostics.append(_edited(shown, unit.path))


def _plan_removal(root: Path, shown: str, path: str, entry: FileEntry, changes: Changes) -> None:
    if _obstacle(root, path):
        return  # no longer a file of ours: not ours to remove
    file = root / path
    if not file.exists():
        return
    on_disk = file.read_bytes()
    if sha256(on_disk) != entry.sha256:
        changes.diagnostics.append(_edited(shown, path))
        changes.entries[path] = entry
        return
    changes.diffs.append(_diff(shown, path, on_disk, None))
    changes.remove.append(path)


def _obstacle(root: Path, path: str) -> str | None:
    """What stands where a generated file goes and is none, or None."""
    at = root
    parts = PurePosixPath(path).parts
    for position, part in enumerate(parts, start=1):
        at = at / part
        if at.is_symlink():
            return "a symbolic link"
        if at.exists() and at.is_dir() != (position < len(parts)):
            return "a folder" if at.is_dir() else "a file"
    return None


def _in_the_way(shown: str, path: str, what: str) -> Diagnostic:
    return Diagnostic(
        "FRT0831",
        f"{what} is in the way of a generated file; it was left alone",
        Span(f"{shown}/{path}", 0, 0),
        help="move it, or let gen write to another folder with --out",
    )


def _edited(shown: str, path: str) -> Diagnostic:
    return Diagnostic(
        "FRT0830",
        "this generated file was edited by hand; it was left alone",
        Span(f"{shown}/{path}", 0, 0),
        help="make the change in the spec; then delete this file and run `frtspec gen` again",
    )


def _diff(shown: str, path: str, old: bytes | None, new: str | None) -> Diff:
    before = "" if old is None else old.decode("utf-8", errors="backslashreplace")
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        (new or "").splitlines(keepends=True),
        fromfile="/dev/null" if old is None else f"{shown}/{path}",
        tofile="/dev/null" if new is None else f"{shown}/{path} (generated)",
    )
    ended = (
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    return Diff(path, "".join(ended))


def merged_specs(
    old: Manifest | None, new: Mapping[str, mf.SpecEntry], files: Mapping[str, FileEntry]
) -> dict[str, mf.SpecEntry]:
    """The spec rows that some file still cites, new ones first."""
    cited = {key for entry in files.values() for key in entry.specs}
    rows = {**(old.specs if old else {}), **new}
    return {key: row for key, row in sorted(rows.items()) if key in cited}

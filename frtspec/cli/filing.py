"""Several text files of one folder: written together, or compared with what is there."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from frtspec.cli.common import FINDINGS, OK, refused, report
from frtspec.diag.render import Format
from frtspec.files import write_together
from frtspec.project import shown


def write(out: Path, files: Mapping[str, str], here: Path, format: Format) -> int:
    """Writes all of them or none, and says in the text format how many changed."""
    try:
        written = write_together(out, {name: text.encode() for name, text in files.items()})
    except OSError as error:
        report([refused(shown(Path(error.filename or out), here), error)], {}, format)
        return FINDINGS
    if format == "text":
        unchanged = len(files) - len(written)
        print(f"{shown(out, here)}: {len(written)} written, {unchanged} unchanged")
    return OK


def compare(out: Path, files: Mapping[str, str], here: Path, format: Format) -> int:
    """Prints how the folder's files differ; ``FINDINGS`` where any does."""
    folder = shown(out, here)
    stale = 0
    for name, text in files.items():
        there = _text(out / name)
        if there == text:
            continue
        stale += 1
        if format == "text":
            print("".join(_diff(f"{folder}/{name}", there, text)), end="")
    if format == "text" and not stale:
        print(f"{folder}: {len(files)} up to date")
    return FINDINGS if stale else OK


def _diff(name: str, there: str | None, wanted: str) -> list[str]:
    return list(
        difflib.unified_diff(
            (there or "").splitlines(keepends=True),
            wanted.splitlines(keepends=True),
            fromfile="/dev/null" if there is None else name,
            tofile=name,
        )
    )


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode() if path.is_file() else None
    except (OSError, UnicodeDecodeError):
        return None

"""Bytes to source text. Whatever a path turns out to be, the answer is a diagnostic."""

from __future__ import annotations

import hashlib
import os
import stat

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile, Span

LARGEST = 4 * 1024 * 1024
"""Bytes; a spec is a few thousand."""

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def read_source(path: str) -> tuple[SourceFile | None, list[Diagnostic]]:
    """Read one file: ``(source, [])``, or ``(None, findings)`` where it is no spec text.

    The digest is that of the bytes. A leading UTF-8 mark is skipped; line ends stay as
    they are. Never raises, and never waits (a pipe is not opened).
    """
    try:
        found = os.stat(path)
        for is_kind, name in _KINDS:
            if is_kind(found.st_mode):
                return None, [_unreadable(path, f"it is {name}", "give a file")]
        if found.st_size > LARGEST:
            return None, [_too_large(path, found.st_size)]
        with open(path, "rb") as file:
            raw = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        reason = getattr(error, "strerror", None) or str(error)
        return None, [_unreadable(path, reason[:1].lower() + reason[1:], None)]
    if len(raw) > LARGEST:
        return None, [_too_large(path, len(raw))]
    return decode(path, raw)


def decode(path: str, raw: bytes) -> tuple[SourceFile | None, list[Diagnostic]]:
    """``read_source`` of bytes that are there already."""
    digest = hashlib.sha256(raw).hexdigest()
    if raw.startswith(_UTF16_MARKS):
        return None, [_not_utf8(path, "it starts with the byte order mark of UTF-16")]
    try:
        text = raw.removeprefix(_UTF8_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = error.object[error.start]
        return None, [_not_utf8(path, f"line {line} holds the byte 0x{byte:02x}")]
    source = SourceFile(path, text, digest)
    at = text.find("\0")
    if at >= 0:
        looks_wide = text.count("\0") > len(text) // 4
        problem = Diagnostic(
            "FRT0003",
            "the file holds a zero byte",
            Span(path, at, at + 1),
            help="save it as UTF-8; it looks like UTF-16" if looks_wide else "remove it",
        )
        return None, [problem]
    return source, []


def _unreadable(path: str, reason: str, help: str | None) -> Diagnostic:
    return Diagnostic("FRT0001", f"can't be read: {reason}", Span(path, 0, 0), help=help)


def _too_large(path: str, size: int) -> Diagnostic:
    return _unreadable(
        path,
        f"it has {size} bytes, more than {LARGEST}",
        "split it; a spec file holds a few declarations",
    )


def _not_utf8(path: str, reason: str) -> Diagnostic:
    return Diagnostic(
        "FRT0002",
        f"the file is not UTF-8: {reason}",
        Span(path, 0, 0),
        help="save it as UTF-8",
    )

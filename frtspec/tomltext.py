"""TOML with positions: what is wrong with a file, and where."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from frtspec.diag.source import SourceFile, Span


class TomlFault(Exception):
    """``reason`` in lower case, without a full stop; ``span`` where it is."""

    def __init__(self, reason: str, span: Span) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


def decode(path: str, raw: bytes) -> SourceFile:
    """The bytes as a source; what is not UTF-8 becomes U+FFFD, which ``parse`` refuses."""
    return SourceFile.from_text(path, raw.decode("utf-8", errors="replace"))


def parse(source: SourceFile) -> dict[str, Any]:
    """The file's table. Raises ``TomlFault`` for anything that is no TOML."""
    bad = source.text.find("\ufffd")
    if bad >= 0:
        raise TomlFault("it is not UTF-8", Span(source.path, bad, bad + 1))
    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise TomlFault(_reason(str(error)), _span(source, str(error))) from None
    except (RecursionError, ValueError) as error:  # ValueError: an integer of too many digits
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise TomlFault(reason, Span(source.path, 0, 0)) from None


def quote(value: str | int) -> str:
    """The value as TOML writes it, on one line."""
    if isinstance(value, int):
        return str(value)
    return '"' + "".join(_ESCAPES.get(ch) or _escaped(ch) for ch in value) + '"'


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escaped(ch: str) -> str:
    return ch if ord(ch) >= 0x20 and ch != "\x7f" else f"\\u{ord(ch):04x}"


def _reason(message: str) -> str:
    text = re.sub(r" \(at (line \d+, column \d+|end of document)\)$", "", message)
    return text[:1].lower() + text[1:]


def _span(source: SourceFile, message: str) -> Span:
    at = re.search(r"at line (\d+), column (\d+)\)$", message)
    if at is None:  # at the end of the document
        end = len(source.text.rstrip())
        return Span(source.path, end, end)
    line = min(int(at[1]), len(source.line_starts))
    start = source.line_starts[line - 1] + int(at[2]) - 1
    return Span(source.path, start, start + 1)

"""One list of diagnostics, four renderings: text, JSON, GitHub annotations, SARIF."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.place import place
from frtspec.diag.source import SourceFile, Span
from frtspec.diag.text import render_text

Format = Literal["text", "json", "github", "sarif"]
FORMATS: tuple[Format, ...] = get_args(Format)

JSON_VERSION = 1
"""Raised when a field of the JSON rendering changes its meaning or goes away."""


def render(
    diagnostics: Iterable[Diagnostic],
    sources: Mapping[str, SourceFile],
    format: Format = "text",
    *,
    color: bool = False,
) -> str:
    """The diagnostics, in the order given, as one text that ends in a newline (or "").

    sources  the files the spans point into, by path; a span into another file is shown
             as its path alone
    color    ANSI colours, in the text format only
    """
    if format == "text":
        return render_text(diagnostics, sources, color=color)
    if format == "json":
        return _render_json(diagnostics, sources)
    if format == "github":
        return "".join(_annotation(d, sources) for d in diagnostics)
    from frtspec.diag.sarif import render_sarif  # loads the code catalog

    return render_sarif(diagnostics, sources)


# ---------------------------------------------------------------- JSON


def _render_json(diagnostics: Iterable[Diagnostic], sources: Mapping[str, SourceFile]) -> str:
    found = list(diagnostics)
    report = {
        "version": JSON_VERSION,
        "errors": sum(d.severity == "error" for d in found),
        "warnings": sum(d.severity == "warning" for d in found),
        "diagnostics": [_record(d, sources) for d in found],
    }
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"


def _record(diagnostic: Diagnostic, sources: Mapping[str, SourceFile]) -> dict[str, Any]:
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        **_position(diagnostic.span, sources),
        "notes": [
            {"message": text, **(_position(span, sources) if span else {})}
            for span, text in diagnostic.notes
        ],
        "help": diagnostic.help,
    }


def _position(span: Span, sources: Mapping[str, SourceFile]) -> dict[str, Any]:
    """1-based lines and columns (code points, end exclusive); None where there is none."""
    found = place(span, sources)
    return {
        "path": span.path or None,
        "line": found.line if found else None,
        "column": found.column if found else None,
        "end_line": found.end_line if found else None,
        "end_column": found.end_column if found else None,
    }


# ---------------------------------------------------------------- GitHub


def _annotation(diagnostic: Diagnostic, sources: Mapping[str, SourceFile]) -> str:
    level = "notice" if diagnostic.severity == "note" else diagnostic.severity
    properties = [("title", diagnostic.code)]
    if diagnostic.span.path:
        properties.insert(0, ("file", diagnostic.span.path))
    found = place(diagnostic.span, sources)
    if found:
        properties += [("line", str(found.line)), ("endLine", str(found.end_line))]
        if found.line == found.end_line:  # GitHub takes columns within one line only
            properties += [
                ("col", str(found.column)),
                ("endColumn", str(max(found.column, found.end_column - 1))),
            ]
    text = diagnostic.message
    for span, note in diagnostic.notes:
        where = place(span, sources) if span else None
        text += f"\nnote: {where}: {note}" if where else f"\nnote: {note}"
    if diagnostic.help:
        text += f"\nhelp: {diagnostic.help}"
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties)
    return f"::{level} {listed}::{_data(text)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

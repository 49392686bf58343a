"""Diagnostics as SARIF 2.1.0, for code-scanning services."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from frtspec import __version__
from frtspec.diag.codes import codes
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.place import place
from frtspec.diag.source import SourceFile, Span

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render_sarif(
    diagnostics: Iterable[Diagnostic],
    sources: Mapping[str, SourceFile],
    rules: Mapping[str, dict[str, Any]] | None = None,
) -> str:
    """One run of one tool; rules are the codes that occur, columns count code points.

    rules  descriptors of codes that the catalog does not have
    """
    found = list(diagnostics)
    used = sorted({d.code for d in found})
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "frtspec",
                        "version": __version__,
                        "rules": [(rules or {}).get(code) or _rule(code) for code in used],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(d, used.index(d.code), sources) for d in found],
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _rule(code: str) -> dict[str, Any]:
    page = codes().get(code)
    if page is None:
        return {"id": code}
    return {
        "id": code,
        "shortDescription": {"text": page.title},
        "fullDescription": {"text": page.summary},
        "help": {"text": page.fix},
    }


def _result(diagnostic: Diagnostic, rule: int, sources: Mapping[str, SourceFile]) -> dict[str, Any]:
    text = diagnostic.message
    if diagnostic.help:
        text += f"\nhelp: {diagnostic.help}"
    text += "".join(f"\nnote: {note}" for span, note in diagnostic.notes if not _has_place(span))
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": diagnostic.severity,
        "message": {"text": text},
    }
    if _has_place(diagnostic.span):
        result["locations"] = [{"physicalLocation": _location(diagnostic.span, sources)}]
    related = [
        {
            "id": number,
            "message": {"text": note},
            "physicalLocation": _location(span, sources),
        }
        for number, (span, note) in enumerate(diagnostic.notes, start=1)
        if span is not None and _has_place(span)
    ]
    if related:
        result["relatedLocations"] = related
    return result


def _has_place(span: Span | None) -> bool:
    return span is not None and bool(span.path)


def _location(span: Span, sources: Mapping[str, SourceFile]) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": _uri(span.path)}}
    found = place(span, sources)
    if found:
        location["region"] = {
            "startLine": found.line,
            "startColumn": found.column,
            "endLine": found.end_line,
            "endColumn": found.end_column,
        }
    return location


def _uri(path: str) -> str:
    pure = PurePath(path)
    return pure.as_uri() if pure.is_absolute() else quote(os.fsencode(pure.as_posix()))

"""Specs as text, checked in memory."""

from __future__ import annotations

from frtspec.diag.diagnostic import Diagnostic, in_order
from frtspec.diag.source import SourceFile
from frtspec.sema import Analysis, analyse
from frtspec.syntax.parse import parse


def analysed(*texts: str) -> tuple[Analysis, tuple[Diagnostic, ...]]:
    """The analysis of some files, and the findings of their syntax."""
    files, syntax = [], []
    for number, text in enumerate(texts):
        source = SourceFile.from_text(f"file{number}.frt", text)
        result = parse(source)
        syntax += result.diagnostics
        files.append((source, result.file))
    return analyse(files), tuple(syntax)


def check(*texts: str) -> tuple[Diagnostic, ...]:
    """Every finding about some files, in order."""
    analysis, syntax = analysed(*texts)
    return in_order((*syntax, *analysis.diagnostics))

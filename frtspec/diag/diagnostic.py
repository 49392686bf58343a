"""A finding: what was found, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from frtspec.diag.source import Span

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Diagnostic:
    """One finding about one place.

    code      a code of the catalog, ``FRT0123``
    message   one sentence without a full stop: what was found, with both sides where
              two things disagree
    span      the place; ``NOWHERE`` when there is none (a usage error), ``Span(path, 0, 0)``
              when the whole file is meant
    severity  ``error`` fails the run, ``warning`` and ``note`` do not
    notes     further places or remarks: ``(span or None, text)``
    help      what to do, or a did-you-mean
    """

    code: str
    message: str
    span: Span
    severity: Severity = "error"
    notes: tuple[tuple[Span | None, str], ...] = ()
    help: str | None = None

    def __str__(self) -> str:
        where = f"{self.span.path}: " if self.span.path else ""
        return f"{where}{self.severity}[{self.code}]: {self.message}"


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """By place, then code, then message; the same finding once."""
    unique = dict.fromkeys(diagnostics)
    return tuple(
        sorted(unique, key=lambda d: (d.span.path, d.span.start, d.span.end, d.code, d.message))
    )


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Whether the run must fail."""
    return any(d.severity == "error" for d in diagnostics)

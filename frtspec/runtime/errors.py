"""Refusals: the only exception that is an outcome.

A ``Refusal`` says that one thing will stay the host's, and why. Everything else
that is raised is a fault and is reported with its traceback, never as a refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TrailRow:
    """One step of a search (a rung, a candidate) and what came of it.

    ``verdict``: fell_through, not_tried or bound. ``fix``: what to do about one that fell
    through."""

    what: str
    code: str
    reason: str
    verdict: str = "fell_through"
    fix: str = ""


class Refusal(Exception):
    """Why a seat, a host or an option was refused.

    code    stable, dotted: ``host.path``, ``calibration.saturated``, ``rung.arch`` …
    what    one sentence: what was found, with both sides of a comparison
    fix     what to do about it
    seat    the seat's name, or None when the whole host is refused
    form    the form that was asked for (impl and rung), or None
    shape   dims or rows the refusal holds for
    trail   what was tried before, whole
    """

    def __init__(
        self,
        code: str,
        what: str,
        *,
        fix: str,
        seat: str | None = None,
        form: str | None = None,
        shape: Mapping[str, Any] | None = None,
        trail: tuple[TrailRow, ...] = (),
    ) -> None:
        self.code = code
        self.what = what
        self.fix = fix
        self.seat = seat
        self.form = form
        self.shape = dict(shape or {})
        self.trail = trail
        super().__init__(str(self))

    def __str__(self) -> str:
        head = f"{self.seat}: " if self.seat else ""
        form = f" ({self.form})" if self.form else ""
        shape = ""
        if self.shape:
            shape = " at " + ", ".join(f"{k}={v}" for k, v in self.shape.items())
        lines = [f"{head}{self.what}{form}{shape} [{self.code}]", f"  what to do: {self.fix}"]
        for row in self.trail:
            lines.append(f"  tried {row.what}: {row.reason} [{row.code}]")
            if row.fix:
                lines.append(f"    what to do: {row.fix}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready mapping with every field, nothing shortened."""
        return {
            "code": self.code,
            "what": self.what,
            "fix": self.fix,
            "seat": self.seat,
            "form": self.form,
            "shape": self.shape,
            "trail": [vars(row) for row in self.trail],
        }


@dataclass(frozen=True)
class Failure:
    """A fault that ended one unit: the exception and its traceback, kept whole."""

    what: str
    exception: str
    traceback: str
    seats: tuple[str, ...] = field(default=())

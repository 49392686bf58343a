"""``accept.toml``: what a reviewer lets pass, bound to the pair of digests it was judged for.

::

    [[accept]]
    rule = "gate.loosened"
    subject = "structure decoder_ffn v2"
    from = "…"                    # contract digest of the older side
    to = "…"                      # contract digest of the newer side
    reason = "0.999 was never met by static FP8 on short sequences"
    by = "m.keller"
    expires = 2027-03-01

The next edit has another digest, so an acceptance never leaks to it. A row that nothing
matches is an error.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from frtspec import tomltext
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile, Span
from frtspec.diag.suggest import did_you_mean
from frtspec.diff.compare import Event, accepted
from frtspec.diff.rules import RULES

FILE = "accept.toml"
_TEXTS = ("rule", "subject", "from", "to", "reason", "by")
UNREADABLE, STALE, EXPIRED, NEVER = "FRT0921", "FRT0922", "FRT0923", "FRT0924"


@dataclass(frozen=True)
class Acceptance:
    """One row. ``old`` and ``new``: contract digests, whole or their first 12 digits."""

    rule: str
    subject: str
    old: str
    new: str
    reason: str
    by: str
    expires: datetime.date
    span: Span

    def covers(self, event: Event) -> bool:
        """Whether it is about this event, digests and all."""
        old, new = event.pair.digests
        return (
            event.fact.rule == self.rule
            and str(event.fact.subject) == self.subject
            and _same(self.old, old)
            and _same(self.new, new)
        )


def _same(written: str, digest: str) -> bool:
    return written == digest or (len(written) >= 12 and digest.startswith(written))


def read_accept(source: SourceFile) -> tuple[tuple[Acceptance, ...], tuple[Diagnostic, ...]]:
    """The rows, and what is wrong with the file; never raises on its contents."""
    try:
        table = tomltext.parse(source)
    except tomltext.TomlFault as fault:
        return (), (_broken(f"not valid TOML: {fault.reason}", fault.span),)
    items = table.get("accept", [])
    unknown = sorted(table.keys() - {"accept"})
    if unknown or not isinstance(items, list):
        told = f"unknown key `{unknown[0]}`" if unknown else "`accept` is no list of rows"
        return (), (_broken(told, Span(source.path, 0, 0)),)
    rows: list[Acceptance] = []
    found: list[Diagnostic] = []
    spans = [m.span() for m in re.finditer(r"^\[\[accept\]\]", source.text, re.MULTILINE)]
    for number, item in enumerate(items):
        start, end = spans[number] if number < len(spans) else (0, 0)
        span = Span(source.path, start, end)
        problem = _problem(item)
        if problem is not None:
            found.append(_broken(f"row {number + 1}: {problem}", span))
            continue
        row = Acceptance(
            item["rule"],
            item["subject"],
            item["from"],
            item["to"],
            item["reason"],
            item["by"],
            item["expires"],
            span,
        )
        found += _forbidden(row)
        rows.append(row)
    return tuple(rows), tuple(found)


def _problem(item: Any) -> str | None:
    if not isinstance(item, Mapping):
        return "it is no table"
    for name in item:
        if name not in (*_TEXTS, "expires"):
            return f"unknown key `{name}`"
    for name in _TEXTS:
        if not isinstance(item.get(name), str) or not item[name].strip():
            return f"`{name}` must be a text that is not empty"
    if type(item.get("expires")) is not datetime.date:
        return "`expires` must be a date: 2027-03-01"
    return None


def _forbidden(row: Acceptance) -> Iterable[Diagnostic]:
    rule = RULES.get(row.rule)
    if rule is None:
        yield Diagnostic(
            NEVER,
            f"there is no rule `{row.rule}`",
            row.span,
            help=did_you_mean(row.rule, RULES),
        )
    elif not rule.acceptable:
        told = f"`{row.rule}` can't be accepted: {rule.what}"
        yield Diagnostic(NEVER, told, row.span, help=rule.fix)


def _broken(message: str, span: Span) -> Diagnostic:
    help = f"a row has {', '.join(_TEXTS)} and expires"
    return Diagnostic(UNREADABLE, message, span, help=help)


def apply(
    events: Iterable[Event], rows: Iterable[Acceptance], today: datetime.date
) -> tuple[tuple[Event, ...], tuple[Diagnostic, ...]]:
    """The events with what is accepted let pass, and what is wrong with the rows: expired,
    or about nothing that this comparison finds."""
    rows, used, found = tuple(rows), set(), []
    out: list[Event] = []
    for event in events:
        row = next((r for r in rows if r.covers(event) and event.rule.acceptable), None)
        if row is not None:
            used.add(row)
        if row is None or event.verdict != "error" or row.expires < today:
            out.append(event)
        else:
            out.append(accepted(event, f"{row.reason} ({row.by}, until {row.expires})"))
    for row in rows:
        if row not in used:
            told = f"nothing here is a `{row.rule}` of {row.subject} between these two digests"
            help = "take the row out: the edit that it was for is another one, or is done"
            found.append(Diagnostic(STALE, told, row.span, help=help))
        elif row.expires < today:
            told = f"this acceptance ended on {row.expires}"
            found.append(Diagnostic(EXPIRED, told, row.span, help="mend the specs, or decide anew"))
    return tuple(out), tuple(found)

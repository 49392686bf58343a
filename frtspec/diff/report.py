"""A comparison as text with both places, JSON, annotations, SARIF, and a comment for a review."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.place import place
from frtspec.diag.render import render
from frtspec.diag.source import NOWHERE, SourceFile, Span
from frtspec.diff.compare import Comparison, Event
from frtspec.diff.consequences import Consequences, ReceiptFate
from frtspec.diff.facts import Subject
from frtspec.diff.rules import RULE_SET, RULES, Level, Rule

FORMATS = ("text", "json", "github", "sarif", "markdown")
JSON_VERSION = 1
"""Raised when a field of the JSON form changes its meaning or goes away."""


@dataclass(frozen=True)
class Report:
    """All there is to tell. ``problems``: what is wrong with acceptances and receipts."""

    found: Comparison
    follows: Consequences = field(default_factory=Consequences)
    problems: tuple[Diagnostic, ...] = ()
    sources: Mapping[str, SourceFile] = field(default_factory=dict)

    @property
    def fails(self) -> bool:
        return self.found.breaking or any(d.severity == "error" for d in self.problems)

    def every_source(self) -> dict[str, SourceFile]:
        return {**self.found.old.sources, **self.found.new.sources, **self.sources}


def rendered(report: Report, format: str, *, color: bool = False) -> str:
    """The report in one of ``FORMATS``, ending in a newline."""
    if format == "json":
        return json.dumps(as_json(report), indent=2, ensure_ascii=False) + "\n"
    if format == "sarif":
        return _sarif(report)
    if format == "markdown":
        return _markdown(report)
    shown = [diagnostic(event) for event in report.found.events]
    text = render(
        [*shown, *report.problems],
        report.every_source(),
        "github" if format == "github" else "text",
        color=color,
    )
    if format == "github":
        return text
    told = "\n".join(_consequences(report.follows))
    parts = [text, f"{told}\n" if told else "", f"{summary(report)}\n"]
    return "\n".join(part for part in parts if part)


def diagnostic(event: Event) -> Diagnostic:
    """The event as a finding; its code is the id of the rule."""
    fact, rule = event.fact, event.rule
    message = f"{fact.subject}{f', {fact.item}' if fact.item else ''}: {fact.detail}"
    notes: list[tuple[Span | None, str]] = []
    if fact.old is not None and fact.new is not None:
        notes.append((fact.old, "it was here"))
    levels = f"providers {_word(rule.providers)}, consumers {_word(rule.consumers)}"
    notes.append((None, f"{event.says} ({levels}): {rule.why}"))
    if event.verdict == "error" and rule.reviewed:
        old, new = (digest[:12] for digest in event.pair.digests)
        notes.append((None, f'accept.toml knows it by from = "{old}", to = "{new}"'))
    if event.accepted:
        notes.append((None, f"accepted: {event.accepted}"))
    help = fact.help or (rule.fix if event.verdict == "error" else None)
    span = fact.new or fact.old or NOWHERE
    severity = event.verdict if event.verdict in ("error", "warning") else "note"
    return Diagnostic(fact.rule, message, span, severity, tuple(notes), help)  # type: ignore[arg-type]


def _word(level: Level) -> str:
    return level.name.lower()


def summary(report: Report) -> str:
    """One line: what differs, and what it comes to."""
    events = report.found.events
    if not events:
        line = "no difference"
    else:
        subjects = len({event.fact.subject for event in events})
        errors = sum(event.verdict == "error" for event in events)
        passed = sum(event.accepted is not None for event in events)
        line = f"{_many(len(events), 'change')} of {_many(subjects, 'declaration')}: "
        line += f"{errors} breaking" if errors else "nothing breaking"
        line += f", {passed} accepted" if passed else ""
    labels = f"{report.found.old.texts.label} -> {report.found.new.texts.label}"
    return f"{labels}: {line} (rules {RULE_SET})"


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


# ---------------------------------------------------------------- consequences


def _consequences(follows: Consequences) -> Iterable[str]:
    for who, why in follows.requalify.items():
        yield f"re-qualify {who}: {'; '.join(why)}"
    for subject, those in follows.migrate.items():
        yield f"{subject} is there beside the version before, which is pinned by: {_list(those)}"
    for fate in follows.receipts:
        yield _fate(fate)


def _list(subjects: Iterable[Subject]) -> str:
    return ", ".join(map(str, subjects))


def _fate(fate: ReceiptFate) -> str:
    word = fate.fate
    if fate.fate == "judged":
        word = "judged anew without a device, " + ("passes" if fate.passed else "fails")
    return f"receipt {fate.file}: {word}" + (
        f" ({'; '.join(fate.reasons)})" if fate.reasons else ""
    )


# ---------------------------------------------------------------- for programs


def as_json(report: Report) -> dict[str, Any]:
    """Plain data: events with stable ids, consequences, problems."""
    found, sources = report.found, report.every_source()
    return {
        "version": JSON_VERSION,
        "rules": RULE_SET,
        "old": found.old.texts.label,
        "new": found.new.texts.label,
        "breaking": report.fails,
        "events": [_event(event, sources) for event in found.events],
        "requalify": {str(who): list(why) for who, why in report.follows.requalify.items()},
        "migrate": {str(s): list(map(str, who)) for s, who in report.follows.migrate.items()},
        "receipts": [
            {"file": f.file, "fate": f.fate, "passed": f.passed, "reasons": list(f.reasons)}
            for f in report.follows.receipts
        ],
        "problems": [
            {"code": d.code, "severity": d.severity, "message": d.message} for d in report.problems
        ],
    }


def _event(event: Event, sources: Mapping[str, SourceFile]) -> dict[str, Any]:
    fact, rule = event.fact, event.rule
    return {
        "id": fact.id,
        "rule": fact.rule,
        "subject": str(fact.subject),
        "item": fact.item,
        "detail": fact.detail,
        "level": _word(rule.level),
        "providers": _word(rule.providers),
        "consumers": _word(rule.consumers),
        "requalify": rule.requalify,
        "verdict": event.verdict,
        "says": event.says,
        "accepted": event.accepted,
        "from": event.pair.digests[0],
        "to": event.pair.digests[1],
        "old": _where(fact.old, sources),
        "new": _where(fact.new, sources),
        "help": fact.help,
    }


def _where(span: Span | None, sources: Mapping[str, SourceFile]) -> dict[str, Any] | None:
    found = place(span, sources) if span is not None else None
    if found is None or span is None:
        return None
    return {
        "path": span.path,
        "line": found.line,
        "column": found.column,
        "end_line": found.end_line,
        "end_column": found.end_column,
    }


def _sarif(report: Report) -> str:
    from frtspec.diag.sarif import render_sarif  # loads the code catalog

    shown = [*(diagnostic(event) for event in report.found.events), *report.problems]
    used = {event.fact.rule for event in report.found.events}
    extra = {id: _sarif_rule(RULES[id]) for id in sorted(used)}
    return render_sarif(shown, report.every_source(), extra)


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.what},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.fix},
    }


def _markdown(report: Report) -> str:
    """A comment: the verdict first, a row an event, then what follows."""
    sign = "fails" if report.fails else "passes"
    lines = [f"### frtspec diff {sign}", "", summary(report), ""]
    if report.found.events:
        lines += ["| | rule | what | change |", "| --- | --- | --- | --- |"]
    order = {"error": 0, "warning": 1, "note": 2}
    for event in sorted(report.found.events, key=lambda e: order[e.verdict]):
        fact = event.fact
        what = f"{fact.subject}{f', {fact.item}' if fact.item else ''}"
        state = "accepted" if event.accepted else event.verdict
        cells = (state, f"`{fact.rule}`", what, f"{fact.detail}; {event.says}")
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    told = [f"- {_cell(line)}" for line in _consequences(report.follows)]
    lines += ["", "**What follows**", "", *told] if told else []
    wrong = [f"- {d.code}: {_cell(d.message)}" for d in report.problems]
    lines += ["", "**Acceptances and receipts**", "", *wrong] if wrong else []
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")

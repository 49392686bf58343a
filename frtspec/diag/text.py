"""Diagnostics for people: place, message, source line with a caret, notes, help.

::

    specs/ffn.frt:12:14: error[FRT0201]: no dim `Q` in this structure
       12 |   in x [rows Q, D] : host
          |              ^
       note: specs/ffn.frt:3:7: the dims are declared here
       help: did you mean `D`?
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.place import Place, place, visible, width
from frtspec.diag.source import SourceFile, Span

LONGEST_EXCERPT = 160
"""Longer source lines are shown as the part around the caret, with ``…`` at a cut."""

_COLOURS = {"error": "1;31", "warning": "1;33", "note": "1;36", "place": "1", "caret": "1;31"}
_CUT = "…"


def render_text(
    diagnostics: Iterable[Diagnostic], sources: Mapping[str, SourceFile], *, color: bool = False
) -> str:
    """All diagnostics, one block each, an empty line between; "" for none."""
    return "\n".join(_block(d, sources, color) for d in diagnostics)


def _block(diagnostic: Diagnostic, sources: Mapping[str, SourceFile], color: bool) -> str:
    found = place(diagnostic.span, sources)
    where = visible(str(found) if found else diagnostic.span.path)
    head = f"{diagnostic.severity}[{diagnostic.code}]"
    prefix = f"{_paint(where, 'place', color)}: " if where else ""
    lines = [f"{prefix}{_paint(head, diagnostic.severity, color)}: {visible(diagnostic.message)}"]
    if found and diagnostic.span.end:  # an empty span at 0 means the whole file
        lines += _excerpt(found, sources[found.path], color)
    for span, text in diagnostic.notes:
        lines.append(_remark("note", _located(span, text, sources)))
    if diagnostic.help:
        lines.append(_remark("help", diagnostic.help))
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _located(span: Span | None, text: str, sources: Mapping[str, SourceFile]) -> str:
    if span is None or not span.path:
        return text
    return f"{place(span, sources) or span.path}: {text}"


def _remark(kind: str, text: str) -> str:
    first, *rest = text.splitlines() or [""]
    lines = [f"   {kind}: {visible(first)}"]
    lines += [f"         {visible(line)}" for line in rest]
    return "\n".join(lines)


def _excerpt(found: Place, source: SourceFile, color: bool) -> list[str]:
    line = source.line(found.line)
    start = min(found.column - 1, len(line))
    end = len(line) if found.end_line > found.line else min(found.end_column - 1, len(line))
    if not line.strip():
        return []
    before, marked, after = _cut(line[:start], line[start : max(end, start)], line[end:])
    gutter = f"{found.line:>5}"
    carets = "^" * max(1, width(marked))
    pointer = f"{' ' * width(before)}{_paint(carets, 'caret', color)}"
    if found.end_line > found.line:
        pointer += f" to line {found.end_line}"
    return [f"{gutter} | {before}{marked}{after}", f"{' ' * len(gutter)} | {pointer}"]


def _cut(before: str, marked: str, after: str) -> tuple[str, str, str]:
    """The three parts as printable text, cut to an excerpt when the line is long."""
    before, marked, after = visible(before), visible(marked), visible(after)
    room = LONGEST_EXCERPT
    if len(before) + len(marked) + len(after) <= room:
        return before, marked, after
    if len(marked) > room // 2:
        marked = marked[: room // 2] + _CUT
    side = (room - len(marked)) // 2
    if len(before) > side:
        before = _CUT + before[-side:]
    if len(after) > side:
        after = after[:side] + _CUT
    return before, marked, after


def _paint(text: str, role: str, color: bool) -> str:
    return f"\x1b[{_COLOURS[role]}m{text}\x1b[0m" if color else text

"""A plan in words: every seat in one state, with its whole reason and its figures.

The content is made once, as headings, rows and lines; it is printed as plain text,
or as a table with colours where standard output is a terminal.
"""

from __future__ import annotations

import html
import io
import json
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from frtspec.runtime.gating.gates import GateResult
from frtspec.runtime.records import STATES, SeatRecord, UnitRecord
from frtspec.runtime.reporting import costs
from frtspec.runtime.reporting.figures import figures
from frtspec.runtime.seats.forms import BandUse

if TYPE_CHECKING:
    from frtspec.runtime.plan import Plan

HEADINGS = ("state", "seat", "structure", "form", "boundary", "seam", "why")
FORMATS = ("auto", "text", "table", "html", "json")
COLOURS = {"bound": "green", "kept": "cyan", "refused": "yellow", "failed": "red"}

_NUMBERED = re.compile(r"(.*)\[(\d+)\]$")


@dataclass(frozen=True)
class Row:
    """One line of the table: cells as in ``HEADINGS``; ``more`` is told below it."""

    cells: tuple[str, ...]
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explanation:
    head: tuple[str, ...]
    rows: tuple[Row, ...]
    tail: tuple[str, ...]


def explain(plan: Plan, format: str = "auto") -> str:
    """The explanation: ``text``, ``table`` (drawn, with colours), ``html``, ``json``, or
    ``auto``: a table where standard output is a terminal, else text.

    Raises Refusal ``option.format`` for another one.
    """
    from frtspec.runtime.options import one_of  # options need the units of this module

    one_of("format", format, FORMATS)
    if format == "json":
        return json.dumps(as_json(plan), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    explanation = explanation_of(plan)
    if format == "auto":
        format = "table" if sys.stdout.isatty() else "text"
    return {"text": plain, "table": drawn, "html": as_html}[format](explanation)


def as_json(plan: Plan) -> dict[str, Any]:
    """The explanation as data: every seat once, in one state, with its whole reason."""
    receipt = plan.receipt
    states = receipt["verdict"]["seats"]
    return {
        "headline": headline(plan),
        "summary": receipt["verdict"]["summary"],
        "counts": receipt["verdict"]["counts"],
        "seats": [
            {
                "name": record.name,
                "target": record.seat.target,
                "path": record.seat.path,
                "form": record.form,
                "trail": next(
                    s["trail"] for s in receipt["plan"]["seats"] if s["name"] == record.name
                ),
                **states[record.name],
            }
            for record in plan.seats
        ],
        "units": receipt["verdict"]["units"],
        "unions": receipt["verdict"]["unions"],
        "coverage": receipt["metrics"]["coverage"],
        "costs": receipt["costs"],
        "notes": list(_head(plan))[1:] + list(_tail(plan)),
    }


def headline(plan: Plan) -> str:
    """The first line: what became of what was asked for, loud where nothing did."""
    total, counts = len(plan.seats), plan.counts
    rest = ", ".join(f"{counts[state]} {state}" for state in STATES[1:])
    where = f"{plan.binding.name} on {type(plan.model).__name__}"
    told = f"{counts['bound']} of {total} seats bound, {rest}"
    return f"{where}: {told}" if plan.bound else f"{where}: NOTHING IS BOUND: {told}"


def explanation_of(plan: Plan) -> Explanation:
    return Explanation(tuple(_head(plan)), tuple(_rows(plan)), tuple(_tail(plan)))


# ---------------------------------------------------------------- content


def _head(plan: Plan) -> Iterable[str]:
    yield headline(plan)
    asked = "" if plan.options.scheme == plan.scheme.name else f" ({plan.options.scheme})"
    judged = "" if plan.door == "attach" else "; bound without judging, no gate decided"
    yield f"scheme {plan.scheme.name}{asked}{judged}"
    if plan.calibration is not None:
        c = plan.calibration
        yield f"calibration: {c.samples} samples, {c.method}"
        yield from (f"  note: {line}" for line in c.diagnostics)
    if plan.noise is not None:
        yield plan.noise.note
    yield from _chains(plan)
    units = (*plan.units, *plan.unions)
    for unit in units:
        yield _unit(unit)
    untimed = [u.latency for u in units if u.latency is not None and not u.latency.timed]
    yield from dict.fromkeys(f"speed: {item.verdict}, {item.reason}" for item in untimed)


def _chains(plan: Plan) -> Iterable[str]:
    """Declared chains, those of one outcome in one line."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for chain in plan.chains:
        reason = "" if chain.state == "joined" and not chain.broken else chain.reason
        groups.setdefault((chain.state, chain.wire, chain.broken or reason), []).append(chain.name)
    for (state, wire, reason), names in groups.items():
        count = names[0] if len(names) == 1 else f"{len(names)} like {names[0]}"
        yield f"chain {count} in {wire}: {state}" + (f"; {reason}" if reason else "")


def _unit(unit: UnitRecord) -> str:
    alone = "together" if unit.kind == "union" else "alone"
    host = "not judged" if unit.host is None else _host(unit.host)
    seats = "1 seat" if len(unit.seats) == 1 else f"{len(unit.seats)} seats"
    text = f"{unit.name} {alone} ({seats}): {unit.verdict}; host gate {host}"
    if unit.latency is not None and unit.latency.timed:
        return f"{text}; speed {unit.latency.verdict}: {unit.latency.reason}"
    return text if unit.verdict == "accepted" else f"{text}; {unit.reason}"


def _host(result: GateResult) -> str:
    measured = figures(result)
    return f"{result.verdict} on {result.label}: {measured}" if measured else result.verdict


def _rows(plan: Plan) -> list[Row]:
    """Bound and kept seats in host order, then what was refused, the worst first."""
    rows: list[Row] = []
    for state in STATES:
        records = [record for record in plan.seats if record.state == state]
        if state == "refused":
            records.sort(key=_severity)
        rows += _merged(records)
    return rows


def _merged(records: Sequence[SeatRecord]) -> list[Row]:
    """One row for all seats of a family that differ in nothing but their number."""
    groups: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for record in records:
        family = _NUMBERED.sub(r"\1", record.name)
        key = (family, _cells(record), tuple(_more(record)))
        groups.setdefault(key, []).append(record.name)
    return [
        Row((cells[0], names(seats), *cells[1:]), more)
        for (_, cells, more), seats in groups.items()
    ]


def _cells(record: SeatRecord) -> tuple[str, ...]:
    """The row of a seat, without its name."""
    return (
        record.state,
        record.seat.target,
        record.form,
        _cosine(record.gate("boundary")),
        _seam_cosine(record),
        record.reason + (f" [{record.code}]" if record.code else ""),
    )


def _more(record: SeatRecord) -> Iterable[str]:
    """What was tried before the seat was refused, whole, and what to do about it."""
    for row in record.refusal.trail if record.refusal is not None else ():
        if row.verdict == "fell_through":
            yield f"tried {row.what}: {row.reason} [{row.code}]"
            if row.fix:
                yield f"  what to do: {row.fix}"
    if record.fix:
        yield f"what to do: {record.fix}"


def _severity(record: SeatRecord) -> float:
    """Saturated seats come first, the one furthest past its range on top."""
    result = record.gate("saturation")
    if result is None or record.code != "calibration.saturated":
        return 0.0
    return -max(result.metrics.values())


def names(seats: Iterable[str]) -> str:
    """Seat names with runs of numbers drawn together: ``ffn[0..3], ffn[7]``."""
    found: list[str] = []
    run: tuple[str, int, int] | None = None
    for name in (*seats, ""):
        match = _NUMBERED.match(name)
        if run and match and match[1] == run[0] and int(match[2]) == run[2] + 1:
            run = (run[0], run[1], run[2] + 1)
            continue
        if run:
            first, last = run[1], run[2]
            found.append(f"{run[0]}[{first}]" if first == last else f"{run[0]}[{first}..{last}]")
        run = (match[1], int(match[2]), int(match[2])) if match else None
        if name and not match:
            found.append(name)
    return ", ".join(found)


def _cosine(result: GateResult | None) -> str:
    if result is None or "cosine" not in result.metrics:
        return "" if result is None else result.verdict
    return f"{result.metrics['cosine']:.6f}"


def _seam_cosine(record: SeatRecord) -> str:
    seam = record.gate("seam")
    if seam is not None:
        return _cosine(seam)
    boundary = record.gate("boundary")
    bare = boundary.also.get("seam", {}) if boundary is not None else {}
    return f"{bare['cosine']:.6f}" if "cosine" in bare else ""


def _tail(plan: Plan) -> Iterable[str]:
    yield from _fell_through(plan)
    yield from _banded(plan)
    yield from plan.updates.told(plan.ledger())
    cover = plan.coverage
    if cover.total and not plan.bound:
        yield "no seat is bound: the host runs as it was; plan.require() makes that an error"
    elif cover.total:
        yield (
            f"bound seats hold {cover.share:.1%} of the host's {cover.total:,} parameters; "
            f"{1 - cover.share:.1%} of its weight traffic stays on the host however fast they are"
        )
        largest = ", ".join(f"{path} {size / cover.total:.1%}" for path, size in cover.rest[:5])
        more = f", and {len(cover.rest) - 5} smaller ones" if len(cover.rest) > 5 else ""
        if largest:
            yield f"  on the host: {largest}{more}"
    if plan.bound:
        timed = any(u.latency is not None and u.latency.timed for u in plan.units)
        yield from costs.told(plan.costs, timed=timed)
    if plan.memory.added:
        yield plan.memory.line()


def _fell_through(plan: Plan) -> Iterable[str]:
    """Rungs that bound seats could not run on, each reason once, whole."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for record in plan.seats:
        for row in record.built.trail if record.built is not None else ():
            if row.verdict == "fell_through":
                found.setdefault((row.what, row.code, row.reason), []).append(record.name)
    for (what, code, reason), seats in found.items():
        yield f"not on {what}: {reason} [{code}] ({names(seats)})"


def _banded(plan: Plan) -> Iterable[str]:
    """Which row counts bound seats run, and how many calls went to the host by design."""
    found: dict[tuple[BandUse, ...], list[str]] = {}
    for record in plan.seats:
        if record.state == "bound" and record.built is not None and record.built.bands:
            found.setdefault(record.built.bands, []).append(record.name)
    ledger = plan.ledger()
    for bands, seats in found.items():
        told = ", ".join(
            f"{use.rows}: {use.calls}"
            if use.rung is None
            else f"{use.rows} on {use.rung}: {use.calls}"
            for use in bands
        )
        yield f"calls of calibration by row count: {told} ({names(seats)})"
        rows = [ledger[seat] for seat in seats if seat in ledger]
        calls, host = sum(r.calls for r in rows), sum(r.otherwise_host for r in rows)
        if calls:
            yield f"  since then: {host} of {calls} calls on the host by row count"


# ---------------------------------------------------------------- drawing


def plain(explanation: Explanation) -> str:
    """Aligned text. The last column is as long as it is: nothing is cut."""
    table = [HEADINGS, *(row.cells for row in explanation.rows)]
    used = [c for c in range(len(HEADINGS)) if any(cells[c] for cells in table[1:])]
    widths = {c: max(len(cells[c]) for cells in table) for c in used}

    def line(cells: Sequence[str]) -> str:
        return "  ".join(cells[c].ljust(widths[c]) for c in used).rstrip()

    lines = [*explanation.head, ""]
    if explanation.rows:
        lines.append(line(HEADINGS))
    for row in explanation.rows:
        lines.append(line(row.cells))
        lines += [f"    {line}" for line in row.more]
    return "\n".join([*lines, "", *explanation.tail]).rstrip() + "\n"


def drawn(explanation: Explanation) -> str:
    """The same with a drawn table, for a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = max(80, shutil.get_terminal_size((120, 40)).columns)
    console = Console(file=io.StringIO(), force_terminal=True, width=width, highlight=False)
    for text in explanation.head:
        console.print(Text(text))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    used = [c for c in range(len(HEADINGS)) if any(row.cells[c] for row in explanation.rows)]
    for c in used:
        table.add_column(HEADINGS[c], overflow="fold")
    for row in explanation.rows:
        why = "\n".join([row.cells[-1], *row.more])
        cells = [Text(cell) for cell in (*row.cells[:-1], why)]
        cells[0].stylize(COLOURS[row.cells[0]])
        table.add_row(*(cells[c] for c in used))
    console.print(table)
    for text in explanation.tail:
        console.print(Text(text))
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def as_html(explanation: Explanation) -> str:
    """One HTML document, without scripts or anything from elsewhere."""

    def lines(texts: Iterable[str]) -> str:
        return "".join(f"<p>{html.escape(text)}</p>\n" for text in texts)

    rows = []
    for row in explanation.rows:
        why = "<br>".join(html.escape(text) for text in (row.cells[-1], *row.more))
        cells = [*(html.escape(cell) for cell in row.cells[:-1]), why]
        told = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr class="{html.escape(row.cells[0])}">{told}</tr>\n')
    style = "".join(f".{state} td:first-child {{ color: {c}; }} " for state, c in COLOURS.items())
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(explanation.head[0])}</title>\n<style>body {{ font-family: sans-serif; }}"
        " td, th { text-align: left; vertical-align: top; padding: 0 1em 0 0; } "
        f"{style}</style></head><body>\n{lines(explanation.head)}<table>\n<tr>"
        + "".join(f"<th>{name}</th>" for name in HEADINGS)
        + f"</tr>\n{''.join(rows)}</table>\n{lines(explanation.tail)}</body></html>\n"
    )

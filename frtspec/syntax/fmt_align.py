"""Tables: lines of one kind that follow each other get their cells below each other."""

from __future__ import annotations

from frtspec.syntax.fmt_lines import WIDTH, Line
from frtspec.syntax.fmt_tokens import Tok

FAMILIES = {
    "port_in": "port",
    "port_out": "port",
    "slot": "slot",
    "variant": "variant",
    "pack": "pack",
    "scale": "pack",
    "slot_map": "slot_map",
    "point_map": "point_map",
    "role": "role",
    "role_point": "point_map",
    "gate": "gate",
    "pipeline_gate": "gate",
    "window": "flow",
    "buffer": "flow",
    "conform": "conform",
    "at_keep": "route",
    "at_use": "route",
}
"""Rule of a member -> its family."""

_CELL_KINDS = {
    "port": ("NAME", "LSQB"),
    "slot": ("NAME", "LSQB"),
    "variant": ("NAME", "LBRACE"),
    "pack": ("NAME", "EQUAL"),
    "slot_map": ("NAME", "EQUAL"),
    "point_map": ("NAME", "EQUAL"),
    "role": ("NAME", "COLON"),
    "gate": ("NAME", "ON/PER/LBRACE"),
    "flow": ("NAME", "COLON"),
    "conform": ("NAME", "COLON"),
    "route": ("LBRACE/KEEP/USE",),
}


def cells(family: str, toks: list[Tok], places: list[int], index: frozenset[int]) -> list[int]:
    """Where the cells of a member begin in its text, after the first."""
    found: list[int] = []
    at = 0
    for kinds in _CELL_KINDS[family]:
        wanted = kinds.split("/")
        while at < len(toks) and (toks[at].kind not in wanted or toks[at].start in index):
            at += 1
        if at == len(toks):
            break
        found.append(places[at])
        at += 1
    return found


def align(lines: list[Line]) -> None:
    """Pad the cells of every table, then the closing ``when`` of every paragraph. Lines
    that were aligned, as those of an inner block, are left as they are."""
    for run in _runs(lines):
        _pad(run)
    for paragraph in _paragraphs(lines):
        _pad_when(paragraph)
    for line in lines:
        line.family, line.when = "", -1


def _runs(lines: list[Line]) -> list[list[Line]]:
    """Neighbouring lines of one family; comment lines between them do not part them."""
    found: list[list[Line]] = []
    current: list[Line] = []
    for line in lines:
        if line.kind == "comment":
            continue
        if not line.family or (current and line.family != current[0].family):
            found.append(current)
            current = []
        if line.family:
            current.append(line)
    return [run for run in [*found, current] if len(run) > 1]


def _pad(run: list[Line]) -> None:
    for column in range(max(len(line.cells) for line in run)):
        here = [line for line in run if len(line.cells) > column]
        wanted = max(line.cells[column] for line in here)
        widest = max(line.indent + len(line.text) - line.cells[column] for line in here)
        if wanted + widest > WIDTH:
            return
        for line in here:
            missing = wanted - line.cells[column]
            _insert(line, line.cells[column], missing)


def _insert(line: Line, at: int, missing: int) -> None:
    line.text = line.text[:at] + " " * missing + line.text[at:]
    line.cells = tuple(cell + missing if cell >= at else cell for cell in line.cells)
    if line.when >= at:
        line.when += missing


def _paragraphs(lines: list[Line]) -> list[list[Line]]:
    """Lines with a closing ``when``, parted by blank lines."""
    found: list[list[Line]] = [[]]
    for line in lines:
        if line.kind == "blank":
            found.append([])
        elif line.when >= 0:
            found[-1].append(line)
    return found


def _pad_when(paragraph: list[Line]) -> None:
    """Two blanks before the longest; none is padded past the width of a line."""
    if not paragraph:
        return
    wanted = max(line.when for line in paragraph) + 1
    fits = all(line.indent + wanted + len(line.text) - line.when <= WIDTH for line in paragraph)
    for line in paragraph:
        room = WIDTH - line.indent - len(line.text)
        _insert(line, line.when, wanted - line.when if fits else min(1, max(room, 0)))

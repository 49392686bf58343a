"""Where no repair explains an error: drop the member and go on behind it.

Reading goes on at the next keyword that is first on its line, or at the brace that closes
a block around. Braces are counted: those that the dropped part opened and closed, and
those that it leaves open.
"""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.syntax.engine import Cell, Engine
from frtspec.syntax.nodes import EMPTY
from frtspec.syntax.scanner import Lexeme, indent_at, lexeme_at, line_indent, skip_trivia
from frtspec.syntax.tables import ERROR

HEADS = ("structure", "impl", "binding", "scheme", "auto", "pipeline", "frt")


@dataclass(frozen=True)
class Dropped:
    """What panic did: ``at_once`` when reading goes on at the very lexeme of the error, in
    a block around; ``left_block`` when a block was left for that, ``undid_end`` when the
    closing brace before it was taken back."""

    at_once: bool = False
    left_block: bool = False
    undid_end: bool = False


@dataclass(frozen=True)
class Cut:
    """A position on the stack at which a member can be dropped.

    braces  offsets of braces that are open, inner ones first; the first ``opened`` of them
            are above it
    undone  closing braces above it whose block it lies in
    """

    cell: Cell
    braces: list[int]
    opened: int
    undone: int
    top: bool


def panic(engine: Engine) -> Dropped:
    """Drop text up to a place where reading can go on.

    The engine stands at that place with an ERROR in the tree; at the end of the text it
    has left everything that was open.
    """
    text, begin = engine.text, engine.at
    cuts = _cuts(engine)
    depth = closed = 0
    at = begin
    while at < len(text):
        found = lexeme_at(text, at)
        if found.text == "{":
            depth += 1
        elif found.text == "}" and depth:
            depth -= 1
        elif found.kind == "word" or found.text == "}":
            cut = _resumption(engine, cuts, found, depth, closed, begin)
            if cut is not None:
                _shift_error(engine, cut.cell, begin, at)
                at_once = at == begin
                return Dropped(at_once, cut.opened > closed, cut.undone > 0)
            closed += found.text == "}"
        at = skip_trivia(text, found.end)
    drop_rest(engine)
    return Dropped()


def _cuts(engine: Engine) -> list[Cut]:
    """Where a member can be dropped, innermost first."""
    found: list[Cut] = []
    opened: list[int] = []
    pending = 0
    cell: Cell | None = engine.cell
    while cell is not None:
        if ERROR in engine.tables.actions[cell[0]]:
            after = engine.after(cell, ERROR)
            if after is not None:
                top = engine.after(after, "STRUCTURE") is not None
                found.append(Cut(cell, opened, len(opened), pending, top))
        kind = getattr(cell[1], "kind", None)
        if kind == "RBRACE":
            pending += 1
        elif kind == "LBRACE" and pending:
            pending -= 1
        elif kind == "LBRACE":
            opened.append(cell[1].start)
        cell = cell[2]
    return found


def _resumption(
    engine: Engine, cuts: list[Cut], found: Lexeme, depth: int, closed: int, begin: int
) -> Cut | None:
    """The place from which reading can go on at ``found``, if there is one."""
    indent = indent_at(engine.text, found.start)
    is_word = found.kind == "word"
    if is_word and indent is None:
        return None
    at_head = is_word and found.text in HEADS and indent == 0
    for cut in cuts:
        if at_head:
            fits = cut.top
        elif cut.undone:
            fits = is_word and found.start == begin and cut.undone == 1 and not cut.opened
        elif cut.opened == closed:
            fits = depth == 0
        else:
            fits = is_word and depth == 0 and _is_back(engine, cut, closed, indent or 0)
        if fits and _goes_on(engine, cut, found):
            return cut
    return None


def _is_back(engine: Engine, cut: Cut, closed: int, indent: int) -> bool:
    """Whether the indentation says that the blocks above the cut are over, though their
    braces are missing."""
    if cut.opened < closed:
        return False
    return indent <= line_indent(engine.text, cut.braces[cut.opened - 1])


def _goes_on(engine: Engine, cut: Cut, found: Lexeme) -> bool:
    after = engine.after(cut.cell, ERROR)
    if after is None:
        return False
    hit = engine.tables.match(after[0], engine.text, found.start)
    return hit is not None and hit[0] == found.text and engine.after(after, hit[1]) is not None


def _shift_error(engine: Engine, cell: Cell, begin: int, end: int) -> None:
    """Put an ERROR on ``cell`` that covers what is dropped: the text up to ``end`` and what
    had been read of the member."""
    shifted = engine.shifted(cell, ERROR, engine.text[begin:end], begin)
    assert shifted is not None
    above: Cell = engine.cell
    while above is not cell:
        if above[1] is not None and above[1].start != EMPTY:
            shifted[1].start = min(shifted[1].start, above[1].start)
        above = above[2]
    engine.cell = shifted
    engine.at = end
    engine.recent.clear()


def drop_rest(engine: Engine) -> None:
    """Drop the rest of the text and leave every open block: the file's own list of
    declarations takes the ERROR."""
    top = next(cut for cut in _cuts(engine) if cut.top)
    _shift_error(engine, top.cell, engine.at, len(engine.text))

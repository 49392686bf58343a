"""What to do where the text does not go on as the grammar says.

First a *repair*: one small edit after which the text reads on for a few tokens (a word
spelt right, a mark added, dropped or exchanged), tried at the error and at the few tokens
before it. The cheapest that works is taken, and tells what the mistake was. Where none
works, *panic*: drop the member, go on at the next keyword that is first on its line or at
the brace that closes the block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from frtspec.diag.suggest import closest
from frtspec.syntax.engine import Cell, Engine
from frtspec.syntax.grammar import RESERVED
from frtspec.syntax.scanner import Lexeme, indent_at, lexeme_at, skip_trivia
from frtspec.syntax.tables import ERROR

MUST_READ = 4
"""Tokens that have to follow a repair before it is believed."""

LOOK = 10
BACK = 0.8
"""What each token further back costs."""

SHORT = 0.6
"""What a repair costs after which only the rest of the line can be read."""

KEYWORD = 2.5
HEADS = ("structure", "impl", "binding", "scheme", "auto", "pipeline", "frt")
_BRACKETS = frozenset("()[]{}")
_SEPARATORS = frozenset((",", ":", ";", ".", "=", "=>", "->", ":=", "==", ">=", "..", "..="))
_NEVER = frozenset("?.*-|") | {"...", "and", "or", "is", "not"}
_FILLERS = {"NAME": "_", "NUMBER": "1", "STRING": '""', "PATH": "_"}
_INSTEAD = {"open_string": "STRING", "quoted": "STRING"}


@dataclass(frozen=True)
class Repair:
    """One edit.

    kind      spell, name, insert, exchange, drop, close_text
    found     the lexeme at which the edit is made
    terminal  what stands there afterwards (None for drop)
    cell, at  where reading goes on
    cost      smaller is more likely what was meant
    doubtful  the member's content is a guess, so that it must not be checked further
    """

    kind: str
    found: Lexeme
    terminal: str | None
    word: str
    cell: Cell
    at: int
    cost: float
    doubtful: bool


def find_repair(engine: Engine) -> Repair | None:
    """The best repair for the error at the engine's position, or None."""
    best: Repair | None = None
    places: list[tuple[Cell, int]] = [(engine.cell, engine.at)]
    places.extend((step.cell, step.start) for step in reversed(engine.recent))
    for back, (cell, at) in enumerate(places):
        for repair in _candidates(engine, cell, at):
            cost = repair.cost + BACK * back + _line_start(engine, repair)
            if best is not None and cost >= best.cost:
                continue
            count, reach = engine.progress(repair.cell, repair.at, LOOK)
            if reach <= engine.at and (back or count == 0 and repair.kind != "drop"):
                continue
            if count < MUST_READ:
                if not _line_done(engine, reach):
                    continue
                cost += SHORT
            if best is None or cost < best.cost:
                best = replace(repair, cost=cost)
    return best


def _line_done(engine: Engine, reach: int) -> bool:
    """Whether the rest of the line of the error was read."""
    end = engine.text.find("\n", engine.at)
    return reach >= (len(engine.text) if end < 0 else end)


def _line_start(engine: Engine, repair: Repair) -> float:
    """What speaks for or against a repair in how it reads a member's keyword that is
    first on its line: as a name it is most likely read wrongly."""
    at = skip_trivia(engine.text, repair.at)
    if at >= len(engine.text) or indent_at(engine.text, at) is None:
        return 0
    word = lexeme_at(engine.text, at).text
    hit = engine.tables.match(repair.cell[0], engine.text, at)
    if word not in engine.tables.starters or hit is None:
        return 0
    as_keyword = hit[1] not in ("NAME", "PATH")
    before = next((s.terminal for s in engine.recent if s.start == at), None)
    if not as_keyword:
        return KEYWORD
    return -KEYWORD if before in ("NAME", "PATH") else 0


def _candidates(engine: Engine, cell: Cell, at: int) -> Iterator[Repair]:
    found = lexeme_at(engine.text, at) if at < len(engine.text) else Lexeme("end", "", at, at)
    accepted = engine.accepts(cell)
    marks = engine.tables.marks
    if found.kind == "word":
        yield from _respelt(engine, cell, found, accepted)
    elif found.kind in _INSTEAD and "STRING" in accepted:
        yield _put(engine, cell, found, "STRING", '""', "close_text", 0.5, found.end, True)
    for terminal in accepted:
        text = marks.get(terminal, _FILLERS.get(terminal))
        if text is None or text in engine.tables.starters or text in _NEVER:
            continue
        is_mark = terminal in marks and not text[0].isalpha()
        cost = 1.5 if is_mark else 2.6 if terminal in marks else 2.5
        cost += 0.2 if text in _BRACKETS else 0
        doubtful = terminal in _FILLERS
        yield _put(engine, cell, found, terminal, text, "insert", cost, found.start, doubtful)
        if is_mark and _alike(text, found.text):
            yield _put(engine, cell, found, terminal, text, "exchange", 1.8, found.end, False)
    if found.kind != "end":
        light = found.kind in ("mark", "other")
        cost = 2.0 if light else 2.6
        if found.text == "," and indent_at(engine.text, skip_trivia(engine.text, found.end)):
            cost = 1.2
        yield Repair("drop", found, None, "", cell, found.end, cost, not light)


def _alike(one: str, other: str) -> bool:
    """Whether two marks are easily taken for each other."""
    return any(one in group and other in group for group in (_BRACKETS, _SEPARATORS))


def _respelt(engine: Engine, cell: Cell, found: Lexeme, accepted: list[str]) -> Iterator[Repair]:
    """A misspelt keyword, or a keyword where a name is wanted."""
    marks = engine.tables.marks
    if found.text in RESERVED and "NAME" in accepted:
        yield _put(engine, cell, found, "NAME", found.text, "name", 0.5, found.end, False)
    words = {marks[t]: t for t in accepted if t in marks and marks[t][0].isalpha()}
    near = closest(found.text, words)
    if near is not None:
        yield _put(engine, cell, found, words[near], near, "spell", 1.0, found.end, False)


def _put(
    engine: Engine,
    cell: Cell,
    found: Lexeme,
    terminal: str,
    text: str,
    kind: str,
    cost: float,
    at: int,
    doubtful: bool,
) -> Repair:
    """The repair that puts ``terminal`` before or in place of ``found``."""
    after = engine.after(cell, terminal)
    assert after is not None
    return Repair(kind, found, terminal, text, after, at, cost, doubtful)


def apply_repair(engine: Engine, repair: Repair) -> None:
    """Make the repair: the engine then stands behind it."""
    cell = next(
        (step.cell for step in engine.recent if step.start == repair.found.start), engine.cell
    )
    if repair.terminal is not None:
        width = repair.found.end - repair.found.start if repair.kind != "insert" else 0
        start = repair.found.start if width else end_before(engine.text, repair.found.start)
        shifted = engine.shifted(cell, repair.terminal, repair.word, start, width)
        assert shifted is not None
        cell = shifted
    engine.cell = cell
    engine.at = repair.at
    engine.recent.clear()


def end_before(text: str, at: int) -> int:
    """Where the last thing before ``at`` ends, comments aside: approximately, by blanks."""
    while at > 0 and text[at - 1] in " \t\r\n\f":
        at -= 1
    return at


# ---------------------------------------------------------------- panic


@dataclass(frozen=True)
class Dropped:
    """What panic did: ``at_once`` when reading goes on at the very lexeme of the error, in
    a block around; ``left_block`` when a block was left for that, ``undid_end`` when the
    closing brace before it was taken back."""

    at_once: bool = False
    left_block: bool = False
    undid_end: bool = False


def panic(engine: Engine) -> Dropped:
    """Drop text up to a place where reading can go on.

    The engine stands at that place with an ERROR in the tree; at the end of the text it
    has closed everything that was open.
    """
    text, begin, cell = engine.text, engine.at, engine.cell
    depth = 0
    at = begin
    while at < len(text):
        found = lexeme_at(text, at)
        indent = indent_at(text, at)
        if found.kind == "word" and indent is not None:
            if found.text in HEADS and indent == 0 and _resume(engine, found, begin, top=True):
                return _dropped(engine, cell, begin)
            if depth == 0 and _resume(engine, found, begin):
                return _dropped(engine, cell, begin)
        elif found.text == "{":
            depth += 1
        elif found.text == "}":
            if depth == 0 and _resume(engine, found, begin):
                return _dropped(engine, cell, begin)
            depth = max(0, depth - 1)
        at = skip_trivia(text, found.end)
    drop_rest(engine)
    return Dropped()


def _dropped(engine: Engine, cell: Cell | None, begin: int) -> Dropped:
    resumed = engine.cell[2]  # below the ERROR
    kinds = []
    while cell is not None and cell is not resumed:
        kinds.append(getattr(cell[1], "kind", None))
        cell = cell[2]
    opened, closed = kinds.count("LBRACE"), kinds.count("RBRACE")
    return Dropped(engine.at == begin, opened > closed, closed > opened)


def _resume(engine: Engine, found: Lexeme, begin: int, top: bool = False) -> bool:
    """Whether reading can go on at ``found``: then the engine is put there."""
    tables = engine.tables
    cell: Cell | None = engine.cell
    while cell is not None:
        after = engine.after(cell, ERROR) if ERROR in tables.actions[cell[0]] else None
        if after is not None and not (top and cell[2] is not None and not _at_top(engine, cell)):
            hit = tables.match(after[0], engine.text, found.start)
            if hit and hit[0] == found.text and engine.after(after, hit[1]) is not None:
                _shift_error(engine, cell, begin, found.start)
                return True
        cell = cell[2]
    return False


def _at_top(engine: Engine, cell: Cell) -> bool:
    return engine.after(engine.after(cell, ERROR), "STRUCTURE") is not None


def _shift_error(engine: Engine, cell: Cell, begin: int, end: int) -> None:
    shifted = engine.shifted(cell, ERROR, engine.text[begin:end], begin)
    assert shifted is not None
    engine.cell = shifted
    engine.at = end
    engine.recent.clear()


def drop_rest(engine: Engine) -> None:
    """Drop the rest of the text and leave every open block: the file's own list of
    declarations takes the ERROR."""
    begin = engine.at
    cell: Cell | None = engine.cell
    while cell is not None:
        if ERROR in engine.tables.actions[cell[0]] and _at_top(engine, cell):
            _shift_error(engine, cell, begin, len(engine.text))
            return
        cell = cell[2]
    raise AssertionError("the file rule takes an error")

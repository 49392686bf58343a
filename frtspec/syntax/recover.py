"""What to do where the text does not go on as the grammar says.

A *repair* is one small edit after which the text reads on for a few tokens: a word spelt
right, a mark added, dropped or exchanged. It is tried at the error and at the few tokens
before it. The cheapest that works is taken, and tells what the mistake was. Where none
works, the member is dropped (``panic.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from frtspec.diag.suggest import closest
from frtspec.syntax.engine import Cell, Engine
from frtspec.syntax.grammar import RESERVED
from frtspec.syntax.scanner import Lexeme, indent_at, lexeme_at, lexemes, skip_trivia
from frtspec.syntax.wording import wording

MUST_READ = 4
"""Tokens that have to follow a repair before it is believed."""

LOOK = 10
BACK = 0.8
"""What each token further back costs."""

SHORT = 0.3
"""What each token costs that can't be read after a repair, out of ``LOOK``."""

KEYWORD = 2.5
_OPENERS = {"(": ")", "[": "]", "{": "}"}
_CLOSERS = frozenset(_OPENERS.values())
_ALIKE = (
    frozenset("(["),
    frozenset(")]"),
    frozenset((",", ":", ";", ".", "=", "=>", "->", ":=", "==", ">=", "<=", "..", "..=", "-")),
)
_NAMES = frozenset(("NAME", "PATH"))
_CLASSES = {"CMP": ">=", "RANGE": ".."}
_NEVER = frozenset("?.*-|") | {
    *("...", "and", "or", "is", "not", "when", "otherwise", "where"),
    *("default", "retired", "updates", "aliases", "scale", "with"),
}
"""What may follow almost anything, so that putting it in explains nothing."""

_FILLERS = {"NAME": "_", "NUMBER": "1", "STRING": '""', "PATH": "_"}
_INSTEAD = {"open_string": "STRING", "quoted": "STRING"}


@dataclass(frozen=True)
class Repair:
    """One edit.

    kind      spell, name, insert, exchange, drop, close_text, remark, line
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
    whole = _remark(engine) or _foreign_line(engine)
    if whole is not None:
        return whole
    best: Repair | None = None
    places: list[tuple[Cell, int]] = [(engine.cell, engine.at)]
    places.extend((step.cell, step.start) for step in reversed(engine.recent))
    for back, (cell, at) in enumerate(places):
        for repair in _candidates(engine, cell, at):
            if back and repair.kind == "drop" and repair.found.text in (")", "]"):
                continue  # it was right where it stood
            cost = repair.cost + BACK * back + _reading(engine, repair)
            if best is not None and cost >= best.cost:
                continue
            count, reach = engine.progress(repair.cell, repair.at, LOOK)
            if reach <= engine.at and (back or count == 0 and repair.kind != "drop"):
                continue
            if count < (1 if _is_clear(engine, repair) else MUST_READ):
                drops_end = repair.kind == "drop" and repair.found.text == "}"
                if drops_end or not _line_done(engine, reach):
                    continue
            cost += SHORT * (LOOK - count)
            if best is None or cost < best.cost:
                best = replace(repair, cost=cost)
    return best


def _remark(engine: Engine) -> Repair | None:
    """The rest of a line that was meant as a comment: at the error, or where ``//`` was
    read as the operator at the start of a line."""
    text = engine.text
    places = [(s.cell, s.start) for s in engine.recent if indent_at(text, s.start) is not None]
    for cell, at in [(engine.cell, engine.at), *reversed(places)]:
        if text.startswith(("//", "/*"), at):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            return Repair("remark", lexeme_at(text, at), None, "", cell, end, 0, False)
    return None


def _foreign_line(engine: Engine) -> Repair | None:
    """A whole line in another language, such as ``import torch``."""
    text, at = engine.text, engine.at
    found = lexeme_at(text, at) if at < len(text) else None
    if found is None or found.kind != "word" or found.text not in wording()["habits"]:
        return None
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    braces = sum(one.text in ("{", "}") for one in lexemes(text[:end], at))
    if indent_at(text, at) is None or braces or not engine.progress(engine.cell, end, 1)[0]:
        return None
    return Repair("line", found, None, "", engine.cell, end, 0, False)


def _is_clear(engine: Engine, repair: Repair) -> bool:
    """Whether a repair needs no more proof: a word that is none, close to one that fits."""
    return repair.kind in ("spell", "name") and repair.found.text not in engine.tables.starters


def _line_done(engine: Engine, reach: int) -> bool:
    """Whether the rest of the line of the error was read."""
    end = engine.text.find("\n", engine.at)
    return reach >= (len(engine.text) if end < 0 else end)


def _reading(engine: Engine, repair: Repair) -> float:
    """What speaks for or against a repair in how it reads the next word, when that is a
    member's keyword: as a name it is most likely read wrongly, above all at the start of a
    line."""
    at = skip_trivia(engine.text, repair.at)
    if at >= len(engine.text):
        return 0
    word = lexeme_at(engine.text, at).text
    hit = engine.tables.match(repair.cell[0], engine.text, at)
    if hit is None or word not in engine.tables.words:
        return 0
    before = next((s.terminal for s in engine.recent if s.start == at), None)
    as_name, was_name = hit[1] in _NAMES, before in _NAMES
    if as_name and word in RESERVED:
        return KEYWORD
    if word in engine.tables.starters and indent_at(engine.text, at) is not None:
        return KEYWORD if as_name else -KEYWORD if was_name else 0
    return KEYWORD / 2 if as_name and before is not None and not was_name else 0


def _candidates(engine: Engine, cell: Cell, at: int) -> Iterator[Repair]:
    text = engine.text
    found = lexeme_at(text, at) if at < len(text) else Lexeme("end", "", at, at)
    accepted = engine.accepts(cell)
    if found.kind == "word":
        yield from _respelt(engine, cell, found, accepted)
    elif found.kind in _INSTEAD and "STRING" in accepted:
        yield _put(engine, cell, found, "STRING", '""', "close_text", 0.5, found.end, True)
    for terminal in accepted:
        yield from _with(engine, cell, found, terminal)
    if found.kind != "end":
        light = found.kind in ("mark", "other")
        cost = 2.0 if light else 2.6
        if found.text == "," and indent_at(text, skip_trivia(text, found.end)) is not None:
            cost = 1.2
        yield Repair("drop", found, None, "", cell, found.end, cost, not light)


def _with(engine: Engine, cell: Cell, found: Lexeme, terminal: str) -> Iterator[Repair]:
    """``terminal`` before ``found``, or in its place."""
    marks = engine.tables.marks
    filler = _FILLERS.get(terminal)
    text = filler or marks.get(terminal) or _CLASSES.get(terminal)
    if text is None or text in engine.tables.starters or text in _NEVER:
        return
    is_word = text[0].isalpha() and not filler
    if filler:
        cost = 1.9 if found.text in ("=", ":") else 2.5
    else:
        cost = 2.6 if is_word else 1.5
    if not _unlikely(engine, found, text):
        cost += 0.2 if text in _OPENERS or text in _CLOSERS else 0
        guessed = bool(filler) or text == "]"  # where a `]` was meant is anyone's guess
        yield _put(engine, cell, found, terminal, text, "insert", cost, found.start, guessed)
    if filler and found.kind in ("word", "number", "string"):
        yield _put(engine, cell, found, terminal, text, "exchange", 2.3, found.end, True)
    elif not filler and _alike(text, found.text):
        yield _put(engine, cell, found, terminal, text, "exchange", 1.8, found.end, False)


def _unlikely(engine: Engine, found: Lexeme, mark: str) -> bool:
    """Whether a mark put before ``found`` would part a call, or a bracket would make no pair
    that anyone meant: an empty one, or one within a line whose end is not on the line."""
    if found.text == "(" and engine.text[found.start - 1 : found.start].isidentifier():
        return True  # that is a call
    if mark in _CLOSERS:
        return engine.text[: found.start].rstrip().endswith(tuple(_OPENERS))
    if mark not in _OPENERS:
        return False
    if found.text == _OPENERS[mark]:
        return True
    if indent_at(engine.text, found.start) is not None:
        return mark != "{"
    depth = 0
    for lexeme in lexemes(engine.text, found.start):
        if "\n" in engine.text[found.start : lexeme.start]:
            return True
        depth += (lexeme.text == mark) - (lexeme.text == _OPENERS[mark])
        if depth < 0:
            return False
    return True


_AHEAD = 80
"""Characters behind a word that may decide whether it is a keyword there."""


def _alike(one: str, other: str) -> bool:
    """Whether two marks are easily taken for each other."""
    return any(one in group and other in group for group in _ALIKE)


def _respelt(engine: Engine, cell: Cell, found: Lexeme, accepted: list[str]) -> Iterator[Repair]:
    """A misspelt keyword, or a keyword where a name is wanted."""
    marks = engine.tables.marks
    if found.text in RESERVED and "NAME" in accepted:
        yield _put(engine, cell, found, "NAME", found.text, "name", -0.5, found.end, False)
    rest = engine.text[found.end : found.end + _AHEAD]
    words = {
        marks[t]: t
        for t in accepted
        # Some words count only where what follows shows that they are meant.
        if t in marks
        and marks[t][0].isalpha()
        and re.match(engine.tables.patterns[t], marks[t] + rest)
    }
    near = None if found.text in wording()["habits"] else closest(found.text, words)
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
    """Where the last thing before ``at`` ends, blanks and comments aside."""
    while True:
        while at > 0 and text[at - 1] in " \t\r\n\f":
            at -= 1
        start = text.rfind("\n", 0, at) + 1
        comment = _comment(text, start, at)
        if comment < 0:
            return at
        at = comment


def _comment(text: str, start: int, end: int) -> int:
    """Where the comment of a line begins; -1: it has none."""
    quoted = False
    for at in range(start, end):
        if text[at] == '"':
            quoted = not quoted
        elif text[at] == "#" and not quoted:
            return at
    return -1

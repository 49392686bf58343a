"""One syntax error after the other: find a repair or drop a member, and say what was wrong."""

from __future__ import annotations

from dataclasses import replace

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile, Span
from frtspec.syntax import messages
from frtspec.syntax.braces import MOST, Patch, suggestions
from frtspec.syntax.engine import Cell, Engine
from frtspec.syntax.messages import Place, lexeme_here
from frtspec.syntax.nodes import Node
from frtspec.syntax.panic import HEADS, drop_rest, panic
from frtspec.syntax.recover import Repair, apply_repair, end_before, find_repair
from frtspec.syntax.scanner import indent_at
from frtspec.syntax.tables import END

DEEPEST = 64
"""Blocks that a missing end may leave open."""


Mended = tuple[Node, list[Diagnostic], list[int]]
"""(the tree, the findings, offsets in members that were mended by a guess)"""


def mended(engine: Engine, source: SourceFile, limit: int) -> Mended:
    """Read a text to its end whose first error ``engine`` stands at.

    It is read twice where braces do not fit the indentation: as it is, and with the braces
    that would fit. The second reading is taken where the first
    blames a brace, too, and finds no less.
    """
    plain = _read_on(engine, source.path, limit)
    made = suggestions(source.text)
    if not 0 < len(made) <= MOST:
        return plain
    patch = Patch(source.text, made)
    other = Engine(engine.tables, patch.text, origin=patch.origin)
    tree, found, doubtful = _read_on(other, source.path, limit)
    found = [_moved(d, patch) for d in found]
    found += [messages.for_brace(source.path, source.text, one) for one in made]
    blames_braces = any(d.code == "FRT0103" or "`}`" in d.message for d in plain[1])
    if len(found) > len(plain[1]) or not blames_braces:
        return plain
    return tree, found, [patch.origin(at) for at in doubtful]


def _read_on(engine: Engine, path: str, limit: int) -> Mended:
    mender = Mender(engine, path, limit)
    tree = engine.read()
    while tree is None:
        mender.mend()
        tree = engine.read()
    return tree, mender.diagnostics, mender.doubtful


def _moved(diagnostic: Diagnostic, patch: Patch) -> Diagnostic:
    """A finding about a patched text, as one about the text."""

    def back(span: Span) -> Span:
        return Span(span.path, patch.origin(span.start), patch.origin(span.end))

    notes = tuple((span and back(span), text) for span, text in diagnostic.notes)
    return replace(diagnostic, span=back(diagnostic.span), notes=notes)


class Mender:
    """``mend()`` takes the engine past one error; findings gather in ``diagnostics``.

    ``doubtful`` holds offsets of members that were mended by a guess.
    """

    def __init__(self, engine: Engine, path: str, limit: int) -> None:
        self.engine = engine
        self.path = path
        self.limit = limit
        self.diagnostics: list[Diagnostic] = []
        self.doubtful: list[int] = []

    def mend(self) -> None:
        engine = self.engine
        if len(self.diagnostics) >= self.limit:
            self.diagnostics.append(messages.too_many(self.path, engine.at, self.limit))
            drop_rest(engine)
            return
        place = Place(
            self.path,
            engine.text,
            engine.cell,
            lexeme_here(engine),
            tuple(engine.accepts(engine.cell)),
        )
        if self._close_blocks(place):
            return
        repeated = bool(self.diagnostics) and not engine.recent
        repair = find_repair(engine)
        if repair is not None:
            found = messages.for_repair(place, repair)
            apply_repair(engine, repair)
            if repair.doubtful:
                self._doubt(repair)
        else:
            found = messages.for_panic(place, panic(engine), engine.tables)
        if not repeated:  # nothing was read since the last one: it is the same mistake
            self.diagnostics.append(found)

    def _doubt(self, repair: Repair) -> None:
        """Note the member that was mended by a guess: the one that ends before what was
        dropped or put, unless that opened a line of its own."""
        text, at = self.engine.text, repair.found.start
        if repair.kind == "drop" and indent_at(text, at) is not None:
            return
        self.doubtful.append(at if repair.kind == "exchange" else end_before(text, at))

    def _close_blocks(self, place: Place) -> bool:
        """At the end of the text or at a declaration's head in the first column: close
        what is open, when that alone makes it right."""
        found = place.found
        at_head = found.text in HEADS and indent_at(place.text, found.start) == 0
        if found.kind != "end" and not at_head:
            return False
        engine = self.engine
        terminal = END if found.kind == "end" else found.text.upper()
        cell: Cell = engine.cell
        for _ in range(DEEPEST):
            if engine.after(cell, terminal) is not None:
                break
            closed = engine.shifted(cell, "RBRACE", "}", place.found.start, width=0)
            if closed is None:
                return False
            cell = closed
        else:
            return False
        if cell is engine.cell:
            return False
        engine.cell = cell
        engine.recent.clear()
        self.diagnostics.append(messages.unclosed_block(self.path, place.text, found.start))
        return True

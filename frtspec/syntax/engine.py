"""The LALR loop, on a stack of linked cells.

A cell is ``(state, value, cell below)``. Cells are never changed, so any earlier position
is a snapshot for free and a look-ahead costs nothing to undo.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from frtspec.syntax.nodes import Node, Token
from frtspec.syntax.scanner import skip_trivia
from frtspec.syntax.tables import END, Tables

Cell = tuple[int, Any, Any]
MEMORY = 4
"""Tokens before an error that recovery may reconsider."""


class Step(NamedTuple):
    """A token about to be read: where the parser stood, and where the token lies."""

    cell: Cell
    terminal: str
    text: str
    start: int


class Engine:
    """Parses one text. ``cell`` and ``at`` are the position; ``recent`` the last tokens,
    or all of them where ``keep_all``. ``origin`` maps an offset to the one that tokens
    get, where ``text`` is a patched text."""

    def __init__(
        self,
        tables: Tables,
        text: str,
        *,
        keep_all: bool = False,
        origin: Callable[[int], int] | None = None,
    ) -> None:
        self.tables = tables
        self.text = text
        self.cell: Cell = (tables.start, None, None)
        self.at = 0
        self.origin = origin
        self.recent: deque[Step] = deque(maxlen=None if keep_all else MEMORY)

    # ------------------------------------------------------------ reading

    def read(self) -> Node | None:
        """Read on until the end or the first error.

        Returns the tree at the end; None where the text does not go on as the grammar
        says: then ``cell`` and ``at`` stand before the offending lexeme.
        """
        text, size, match = self.text, len(self.text), self.tables.match
        while True:
            self.at = skip_trivia(text, self.at)
            if self.at >= size:
                return self.finish()
            found = match(self.cell[0], text, self.at)
            if found is None:
                return None
            value, terminal = found
            cell = self.shifted(self.cell, terminal, value, self.at)
            if cell is None:
                return None
            self.recent.append(Step(self.cell, terminal, value, self.at))
            self.cell = cell
            self.at += len(value)

    def finish(self) -> Node | None:
        """The tree, when the text may end here."""
        cell = self._reduced(self.cell, END)
        return None if cell is None else cell[1]

    def shifted(
        self, cell: Cell, terminal: str, value: str, start: int, width: int | None = None
    ) -> Cell | None:
        """``cell`` after a token, or None where the token can't stand.

        ``width``: how much of the text it covers, when that is not all of ``value``.
        """
        before = self._reduced(cell, terminal)
        if before is None:
            return None
        target = self.tables.actions[before[0]][terminal][0]
        assert target is not None
        end = start + (len(value) if width is None else width)
        if self.origin is not None:
            start, end = self.origin(start), self.origin(end)
        return (target, Token(terminal, value, start, end), before)

    def _reduced(self, cell: Cell, terminal: str) -> Cell | None:
        """``cell`` after the reductions that ``terminal`` asks for; None if it can't follow."""
        tables = self.tables
        while True:
            action = tables.actions[cell[0]].get(terminal)
            if action is None:
                return cell if terminal == END and cell[0] == tables.end else None
            reduction = action[1]
            if reduction is None:
                return cell
            values = []
            for _ in range(reduction.size):
                values.append(cell[1])
                cell = cell[2]
            values.reverse()
            value = reduction.make(values)
            cell = (tables.gotos[cell[0]][reduction.origin], value, cell)

    # ------------------------------------------------------------ looking ahead

    def after(self, cell: Cell | None, terminal: str) -> Cell | None:
        """Like ``shifted`` without values: only states are right in the result."""
        tables = self.tables
        while cell is not None:
            action = tables.actions[cell[0]].get(terminal)
            if action is None:
                return cell if terminal == END and cell[0] == tables.end else None
            target, reduction = action
            if target is not None:
                return (target, None, cell)
            assert reduction is not None
            for _ in range(reduction.size):
                cell = cell[2]
            cell = (tables.gotos[cell[0]][reduction.origin], None, cell)
        return None

    def accepts(self, cell: Cell) -> list[str]:
        """The terminals that can follow, in the order of their names."""
        return sorted(t for t in self.tables.actions[cell[0]] if self.after(cell, t) is not None)

    def progress(self, cell: Cell | None, at: int, limit: int) -> tuple[int, int]:
        """(tokens that can be read from ``at`` on, up to ``limit``; where that ends).

        Reaching the end of the text counts as the limit.
        """
        count = 0
        while cell is not None and count < limit:
            at = skip_trivia(self.text, at)
            if at >= len(self.text):
                done = self.after(cell, END) is not None
                return (limit if done else count), at
            found = self.tables.match(cell[0], self.text, at)
            cell = None if found is None else self.after(cell, found[1])
            if cell is not None and found is not None:
                count += 1
                at += len(found[0])
        return count, at

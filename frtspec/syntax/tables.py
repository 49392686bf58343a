"""The compiled grammar as tables for the engine.

The loop that drives them (``engine.py``) and the tree it builds (``nodes.py``) are ours,
because recovery has to look ahead from a state, and to go back, without changing anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from frtspec.syntax.compile import END, load_tables
from frtspec.syntax.nodes import Shape, reducer

__all__ = ["END", "ERROR", "Reduction", "Tables", "tables"]

ERROR = "ERROR"


class Reduction(NamedTuple):
    """Take ``size`` values, make one of them, go on as ``origin``."""

    size: int
    origin: str
    make: Callable[[list[Any]], Any]


Action = tuple[int | None, Reduction | None]


@dataclass(frozen=True)
class Tables:
    """``actions[state][terminal]`` is (goto, None) for a shift, (None, reduction) otherwise.

    ``gotos[state][rule name]``; ``marks``: terminal -> its text where it has one (keywords
    and punctuation); ``members``: the rules that recovery may drop whole; ``starters``: their
    keywords; ``words``: all keywords; ``patterns``: terminal -> pattern, in the order in which they are tried.
    """

    start: int
    end: int
    actions: Sequence[Mapping[str, Action]]
    gotos: Sequence[Mapping[str, int]]
    marks: Mapping[str, str]
    members: frozenset[str]
    starters: frozenset[str]
    patterns: Mapping[str, str]
    words: frozenset[str]
    _lexers: dict[int | frozenset[str], re.Pattern[str]] = field(default_factory=dict)

    def match(self, state: int, text: str, at: int) -> tuple[str, str] | None:
        """(text, terminal) of the token at ``at``, among those that the state knows."""
        lexer = self._lexers.get(state)
        found = (lexer or self._lexer(state)).match(text, at)
        if found is None or found.lastgroup is None:
            return None
        return found[0], found.lastgroup

    def _lexer(self, state: int) -> re.Pattern[str]:
        """The lexer of a state, made on first use; states that know the same terminals
        share one."""
        known = frozenset(t for t in self.actions[state] if t in self.patterns)
        lexer = self._lexers.get(known)
        if lexer is None:
            parts = [f"(?P<{name}>{p})" for name, p in self.patterns.items() if name in known]
            lexer = re.compile("|".join(parts) or r"(?!)")
            self._lexers[known] = lexer
        self._lexers[state] = lexer
        return lexer


@cache
def tables() -> Tables:
    """The tables of this process."""
    data = load_tables()
    names = [row[0] for row in data["terminals"]] + [END, ERROR]
    shapes = [Shape(*row) for row in data["rules"]]
    reductions = [(None, Reduction(s.size, s.origin, reducer(s))) for s in shapes]
    actions: list[Mapping[str, Action]] = []
    gotos: list[Mapping[str, int]] = []
    for row, targets in data["states"]:
        actions.append(
            {names[t]: (code, None) if code >= 0 else reductions[-1 - code] for t, code in row}
        )
        gotos.append(dict(targets))
    return Tables(
        start=0,
        end=data["end"],
        actions=actions,
        gotos=gotos,
        marks={name: mark for name, _, mark in data["terminals"] if mark},
        members=frozenset(data["members"]),
        starters=frozenset(data["starters"]),
        words=frozenset(mark for _, _, mark in data["terminals"] if mark[:1].isalpha()),
        patterns={name: pattern for name, pattern, _ in data["terminals"]},
    )

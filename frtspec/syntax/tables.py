"""The compiled grammar as tables for the engine.

Lark compiles the grammar and lexes by parser state. The loop that drives it
(``engine.py``) and the tree it builds (``nodes.py``) are ours, because recovery has to look
ahead from a state, and to go back, without changing anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from frtspec.syntax.grammar import parser
from frtspec.syntax.nodes import reducer

if TYPE_CHECKING:
    from lark import Lark

END = "$END"
ERROR = "ERROR"


class Reduction(NamedTuple):
    """Take ``size`` values, make one of them, go on as ``origin``."""

    size: int
    origin: str
    make: Callable[[list[Any]], Any]


@dataclass(frozen=True)
class Tables:
    """``actions[state][terminal]`` is (goto, None) for a shift, (None, reduction) otherwise.

    ``gotos[state][rule name]``; ``lexers[state]`` matches the terminals of a state;
    ``marks``: terminal -> its text where it has one (keywords and punctuation);
    ``members``: the rules that recovery may drop whole; ``starters``: their keywords.
    """

    start: int
    end: int
    actions: Mapping[int, Mapping[str, tuple[int | None, Reduction | None]]]
    gotos: Mapping[int, Mapping[str, int]]
    lexers: Mapping[int, Callable[[str, int], tuple[str, str] | None]]
    marks: Mapping[str, str]
    members: frozenset[str]
    starters: frozenset[str]


@cache
def tables() -> Tables:
    """The tables of this process."""
    from lark.parsers.lalr_analysis import Shift
    from lark.utils import TextSlice

    lark = parser()
    conf = lark.parse_interactive("").parser_state.parse_conf
    actions: dict[int, dict[str, tuple[int | None, Reduction | None]]] = {}
    reductions: dict[int, Reduction] = {}
    gotos: dict[int, dict[str, int]] = {}
    for state, row in conf.states.items():
        actions[state], gotos[state] = {}, {}
        for symbol, (action, target) in row.items():
            if symbol.isupper() or symbol == END:
                if action is Shift:
                    actions[state][symbol] = (target, None)
                    continue
                known = reductions.get(id(target))
                if known is None:
                    known = Reduction(len(target.expansion), target.origin.name, reducer(target))
                    reductions[id(target)] = known
                actions[state][symbol] = (None, known)
            else:
                gotos[state][symbol] = target

    def matcher(lexer: Any) -> Callable[[str, int], tuple[str, str] | None]:
        def match(text: str, at: int) -> tuple[str, str] | None:
            found: tuple[str, str] | None = lexer.match(TextSlice(text, 0, len(text)), at)
            return found

        return match

    by_lexer: dict[int, Any] = {}
    lexers = {}
    for state, lexer in lark.parser.lexer.lexers.items():
        lexers[state] = by_lexer.setdefault(id(lexer), matcher(lexer))
    members, marks = _members(lark), _marks(lark)
    return Tables(
        start=conf.start_state,
        end=conf.end_state,
        actions=actions,
        gotos=gotos,
        lexers=lexers,
        marks=marks,
        members=members,
        starters=_starters(lark, members, marks),
    )


def _marks(lark: Lark) -> dict[str, str]:
    """Terminals that are one fixed text: ``SLOT`` -> ``slot``, ``LBRACE`` -> ``{``."""
    found = {}
    for terminal in lark.terminals:
        text = terminal.pattern.value
        word = text.split("(?", 1)[0]
        if terminal.pattern.type == "str":
            found[terminal.name] = text
        elif word.isidentifier():
            found[terminal.name] = word
    return found


def _members(lark: Lark) -> frozenset[str]:
    """Every rule that stands beside ``error`` in some list of alternatives."""
    by_origin: dict[str, set[str]] = {}
    for rule in lark.rules:
        if len(rule.expansion) == 1:
            by_origin.setdefault(rule.origin.name, set()).add(rule.expansion[0].name)
    found: set[str] = set()
    waiting = [origin for origin, ones in by_origin.items() if "error" in ones]
    while waiting:
        for name in by_origin[waiting.pop()]:
            if name.startswith("_"):
                waiting.append(name)
            elif name.islower():
                found.add(name)
    return frozenset(found)


def _starters(lark: Lark, members: frozenset[str], marks: Mapping[str, str]) -> frozenset[str]:
    """The words that a member can begin with."""
    wanted = set(members)
    found: set[str] = set()
    for _ in range(2):  # a member may begin with a rule, such as an item's word
        for rule in lark.rules:
            if rule.origin.name in wanted and rule.expansion:
                first = rule.expansion[0]
                if first.is_term:
                    found.add(marks.get(first.name, ""))
                elif first.name.endswith("_word"):
                    wanted.add(first.name)
    return frozenset(found - {""})

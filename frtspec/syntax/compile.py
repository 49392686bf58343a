"""The grammar compiled to plain data, and the file that keeps the result.

Lark needs about 0.3 s for the grammar, more than everything else that a small `check` does.
So its result is committed as ``grammar/tables.json``, keyed by the digest of the grammar;
``python -m frtspec.syntax.compile`` writes it, a test holds it current, and a grammar that
was edited meanwhile is compiled on the spot.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from frtspec.resources import grammar_dir
from frtspec.syntax.grammar import NO_PART_OF, compile_grammar, grammar_text
from frtspec.syntax.nodes import rule_shape

if TYPE_CHECKING:
    from lark import Lark

FILE = "tables.json"
END = "$END"


def grammar_digest() -> str:
    """sha256 of ``frt.lark``."""
    return hashlib.sha256(grammar_text().encode()).hexdigest()


def load_tables() -> dict[str, Any]:
    """The committed tables; compiled anew where they are missing or of another grammar."""
    path = grammar_dir() / FILE
    if path.is_file():
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if data["grammar"] == grammar_digest():
            return data
    return compile_tables()


def compile_tables() -> dict[str, Any]:
    """The tables of the grammar as it is: lists, texts and numbers only, always in the same
    order.

    ``terminals``: (name, pattern) in the order in which a lexer tries them. ``states``: for
    each state (terminal, action)* with action >= 0 a state to shift to and < 0 the rule
    ``-1 - action``; and (rule name, state)*.
    """
    lark = compile_grammar()
    table = lark.parse_interactive("").parser_state.parse_conf
    rules = sorted(
        lark.rules, key=lambda r: (r.origin.name, [s.name for s in r.expansion], r.order)
    )
    # Rules that are equal for Lark are one rule of its tables.
    rule_number = {rule: number for number, rule in enumerate(rules)}
    shapes = [rule_shape(rule) for rule in rules]
    terminals = sorted(
        lark.terminals,
        key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name),
    )
    names = [t.name for t in terminals] + [END, "ERROR"]
    order = _state_order(table)
    number = {state: at for at, state in enumerate(order)}
    states = []
    for state in order:
        actions: list[list[int]] = []
        gotos: list[list[Any]] = []
        for symbol, (action, target) in sorted(table.states[state].items()):
            shift = action.name == "Shift"
            if symbol not in names:
                gotos.append([symbol, number[target]])
            else:
                code = number[target] if shift else -1 - rule_number[target]
                actions.append([names.index(symbol), code])
        states.append([actions, gotos])
    return {
        "grammar": grammar_digest(),
        "end": number[table.end_state],
        "terminals": [[t.name, t.pattern.to_regexp(), _mark(t)] for t in terminals],
        "rules": [list(shape) for shape in shapes],
        "states": states,
        "members": sorted(_members(lark)),
        "starters": sorted(_starters(lark)),
    }


def _state_order(table: Any) -> list[int]:
    """States in the order in which they are reached; Lark's numbers differ between runs."""
    order = [table.start_state]
    seen = set(order)
    for state in order:  # grows while it is read
        for _, (action, target) in sorted(table.states[state].items(), key=lambda row: row[0]):
            if action.name == "Shift" and target not in seen:
                seen.add(target)
                order.append(target)
    return order


def _mark(terminal: Any) -> str:
    """The text of a keyword or of punctuation; "" for a terminal with many texts."""
    text: str = terminal.pattern.value
    if terminal.pattern.type == "str":
        return text
    word = text.split("(?", 1)[0].replace("\\", "")
    return word if word.isidentifier() or word in NO_PART_OF else ""


def _members(lark: Lark) -> set[str]:
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
    return found


def _starters(lark: Lark) -> set[str]:
    """The words that a member can begin with."""
    marks = {terminal.name: _mark(terminal) for terminal in lark.terminals}
    wanted = _members(lark)
    found: set[str] = set()
    for _ in range(2):  # a member may begin with a rule, such as an item's word
        for rule in lark.rules:
            if rule.origin.name in wanted and rule.expansion:
                first = rule.expansion[0]
                if first.is_term:
                    found.add(marks.get(first.name, ""))
                elif first.name.endswith("_word"):
                    wanted.add(first.name)
    return found - {""}


def tables_text() -> str:
    """The text of ``tables.json``."""
    data = compile_tables()
    parts = []
    for key, value in data.items():
        if key in ("states", "rules", "terminals"):
            rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in value)
            parts.append(f'"{key}": [\n{rows}\n]')
        else:
            parts.append(f'"{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    (grammar_dir() / FILE).write_text(tables_text(), encoding="utf-8")

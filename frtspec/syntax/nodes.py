"""The concrete tree: what the parser builds and the tree builder reads.

Nodes never change once they are made, and share nothing that does: recovery may take the
parser back and reduce the same cells again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Token:
    """A terminal with its text and its range."""

    __slots__ = ("end", "kind", "start", "text")

    def __init__(self, kind: str, text: str, start: int, end: int) -> None:
        self.kind = kind
        self.text = text
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"Token({self.kind}, {self.text!r}, {self.start})"


class Node:
    """A rule with what it kept: nodes, tokens, and None for an optional part left out.

    A tree is changed only after it is whole (``prune``)."""

    __slots__ = ("children", "end", "rule", "start")

    def __init__(self, rule: str, children: Sequence[Any], start: int, end: int) -> None:
        self.rule = rule
        self.children = children
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"Node({self.rule}, {self.start}..{self.end})"


class Inline:
    """What a rule with a leading ``_`` hands to the rule around it.

    ``left`` is a shorter run of the same kind, so that a list of n members is n cells and
    not n copies.
    """

    __slots__ = ("end", "items", "left", "start")

    def __init__(self, left: Inline | None, items: list[Any], start: int, end: int) -> None:
        self.left = left
        self.items = items
        self.start = start
        self.end = end


EMPTY = -1
"""The start of a value that covers no text."""


class Shape(NamedTuple):
    """What a rule makes of its values.

    wanted    (absent optional parts before it, position) of each value that is kept
    trailing  absent optional parts behind the last
    inline    the values go into the node around it
    unwrap    one kept value stands for the node
    """

    size: int
    origin: str
    name: str
    wanted: Sequence[Sequence[int]]
    trailing: int
    inline: bool
    unwrap: bool


def rule_shape(rule: Any) -> Shape:
    """The shape of one rule of Lark's grammar."""
    options = rule.options
    blanks = _blanks(options.empty_indices, len(rule.expansion))
    wanted: list[list[int]] = []
    pending = 0
    for at, symbol in enumerate(rule.expansion):
        pending += blanks[at]
        if options.keep_all_tokens or not (symbol.is_term and symbol.filter_out):
            wanted.append([pending, at])
            pending = 0
    trailing = pending + blanks[len(rule.expansion)]
    name = str(rule.alias or rule.origin.name)
    inline = name.startswith("_")
    unwrap = bool(options.expand1 and not rule.alias)
    return Shape(len(rule.expansion), rule.origin.name, name, wanted, trailing, inline, unwrap)


def reducer(shape: Shape) -> Callable[[list[Any]], Any]:
    """The function that makes the value of a rule."""
    name, wanted, trailing = shape.name, [(n, at) for n, at in shape.wanted], shape.trailing
    inline, unwrap = shape.inline, shape.unwrap

    def reduce(values: list[Any]) -> Any:
        start, end = _range(values)
        kept: list[Any] = []
        left: Inline | None = None
        for nones, at in wanted:
            if nones:
                kept.extend([None] * nones)
            value = values[at]
            if type(value) is not Inline:
                kept.append(value)
            elif inline and not kept and left is None:
                left = value
            else:
                kept.extend(_flat(value))
        if trailing:
            kept.extend([None] * trailing)
        if inline:
            return Inline(left, kept, start, end)
        if unwrap and len(kept) == 1:
            return kept[0]
        return Node(name, kept, start, end)

    return reduce


def _blanks(empty: Sequence[bool], size: int) -> list[int]:
    """How many absent optional parts stand before each symbol, and after the last."""
    counts = [0] * (size + 1)
    at = 0
    for is_empty in empty:
        if is_empty:
            counts[at] += 1
        else:
            at += 1
    return counts


def _range(values: list[Any]) -> tuple[int, int]:
    start = end = EMPTY
    for value in values:
        if value is not None and value.start != EMPTY:
            start = value.start
            break
    for value in reversed(values):
        if value is not None and value.start != EMPTY:
            end = value.end
            break
    return start, end


def _flat(value: Inline) -> list[Any]:
    runs = []
    run: Inline | None = value
    while run is not None:
        runs.append(run.items)
        run = run.left
    return [item for items in reversed(runs) for item in items]

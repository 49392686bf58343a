"""Cuts from the concrete tree what must not be built: members mended by a guess, and
nesting deeper than a recursive reader can follow. Works without recursion."""

from __future__ import annotations

from collections.abc import Sequence

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import Span
from frtspec.syntax.nodes import EMPTY, Node, Token
from frtspec.syntax.tables import ERROR, tables

DEEPEST = 100
"""Levels of the tree: about 90 nested parentheses, 45 nested calls."""

LONGEST = 200
"""Operands and operators in one expression."""

_EXPRESSIONS = frozenset(
    ("expr", "paren", "tuple_", "call", "match", "field", "subscript", "present", "each_arg")
)
"""With the members, the rules in whose place an ``error`` can stand."""


def prune(tree: Node, path: str, doubtful: Sequence[int]) -> list[Diagnostic]:
    """Replace such members by ``error`` nodes, in place; what was too deep is reported."""
    members = tables().members
    for offset in doubtful:
        _cut_member(tree, offset)
    found = []
    waiting: list[tuple[Node, int]] = [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        for at, child in enumerate(node.children):
            if not isinstance(child, Node):
                continue
            long = child.rule == "expr" and len(child.children) > LONGEST
            whole = child.rule in _EXPRESSIONS or child.rule in members
            if not whole or depth < DEEPEST and not long:
                waiting.append((child, depth + 1))
                continue
            found.append(_too_much(path, child, long))
            _replace(node, at)
    return found


def _too_much(path: str, node: Node, long: bool) -> Diagnostic:
    return Diagnostic(
        "FRT0110",
        "this expression is too long" if long else "this is nested too deeply",
        Span(path, node.start, min(node.end, node.start + 1)),
        help="give its parts names with `let`",
    )


def _replace(parent: Node, at: int) -> None:
    child = parent.children[at]
    error = Node("error", [Token(ERROR, "", child.start, child.end)], child.start, child.end)
    parent.children = [*parent.children[:at], error, *parent.children[at + 1 :]]


def _cut_member(tree: Node, offset: int) -> None:
    """Replace the innermost member that holds ``offset``."""
    members = tables().members
    node: Node | None = tree
    hit: tuple[Node, int] | None = None
    while node is not None:
        inner = None
        for at, child in enumerate(node.children):
            if not isinstance(child, Node) or child.start == EMPTY:
                continue
            if child.start <= offset <= child.end:
                inner = child
                if child.rule in members:
                    hit = (node, at)
        node = inner
    if hit is not None:
        _replace(*hit)

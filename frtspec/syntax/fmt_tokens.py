"""Every token of a file, with the rule it stands in and the comments before it."""

from __future__ import annotations

from dataclasses import dataclass, field

from frtspec.diag.source import SourceFile
from frtspec.syntax.engine import Engine
from frtspec.syntax.nodes import EMPTY, Node, Token
from frtspec.syntax.scanner import comments
from frtspec.syntax.tables import tables
from frtspec.syntax.trivia import Comment

_OPERANDS = frozenset(("NAME", "NUMBER", "STRING", "RPAR", "RSQB", "RBRACE"))


@dataclass
class Tok:
    """``rule``: the innermost rule around the token. ``line``: where it starts;
    ``end_line``: where it ends. ``gap``: the comments before it."""

    kind: str
    text: str
    start: int
    rule: str
    line: int
    end_line: int
    unary: bool = False
    gap: list[Comment] = field(default_factory=list)


@dataclass
class Lexed:
    """A parsed file as tokens. ``at`` maps an offset to the position of its token;
    ``rest`` holds the comments after the last one."""

    tree: Node
    toks: list[Tok]
    at: dict[int, int]
    rest: list[Comment]
    source: SourceFile

    def line_of(self, comment: Comment) -> int:
        return self.source.position(comment.span.start)[0]


def lex(source: SourceFile) -> Lexed:
    """The tokens of a file without syntax errors."""
    engine = Engine(tables(), source.text, keep_all=True)
    tree = engine.read()
    assert tree is not None
    rules = _rules(tree, [step.start for step in engine.recent])
    toks: list[Tok] = []
    for step, rule in zip(engine.recent, rules, strict=True):
        before = toks[-1].kind if toks else ""
        toks.append(
            Tok(
                kind=step.terminal,
                text=step.text,
                start=step.start,
                rule=rule,
                line=source.position(step.start)[0],
                end_line=source.position(step.start + len(step.text) - 1)[0],
                unary=step.terminal == "MINUS" and before not in _OPERANDS,
            )
        )
    found = Lexed(tree, toks, {tok.start: i for i, tok in enumerate(toks)}, [], source)
    _place_comments(found, comments(source))
    return found


def _place_comments(lexed: Lexed, found: tuple[Comment, ...]) -> None:
    at = 0
    for comment in found:
        while at < len(lexed.toks) and lexed.toks[at].start < comment.span.start:
            at += 1
        gap = lexed.toks[at].gap if at < len(lexed.toks) else lexed.rest
        gap.append(comment)


def _rules(tree: Node, starts: list[int]) -> list[str]:
    """The innermost rule around each token; ``starts`` ascends."""
    found = [tree.rule] * len(starts)
    waiting = [(tree, 0, len(starts))]
    while waiting:
        node, low, high = waiting.pop()
        at = low
        for child in node.children:
            if not isinstance(child, Node) or child.start == EMPTY:
                continue
            while at < high and starts[at] < child.start:
                at += 1
            first = at
            while at < high and starts[at] < child.end:
                found[at] = child.rule
                at += 1
            waiting.append((child, first, at))
    return found


def nodes_in(tree: Node) -> list[Node]:
    """Every node that covers text, outer ones first."""
    found = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting.extend(
            child for child in node.children if isinstance(child, Node) and child.start != EMPTY
        )
    return found


def child_starts(node: Node) -> list[int]:
    """Where the children of a block begin: its docstring and its members."""
    return [
        child.start
        for child in node.children
        if isinstance(child, (Node, Token)) and child.start != EMPTY
    ]

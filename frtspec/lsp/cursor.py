"""Where the cursor stands: which blocks are open around it and what its member says so far.

Told from the text before the cursor alone, so that it holds in a half-written file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from frtspec.lsp.occurrences import Symbol
from frtspec.syntax.engine import Engine
from frtspec.syntax.scanner import Lexeme, indent_at, lexemes
from frtspec.syntax.tables import tables

_WORD = re.compile(r"[A-Za-z_]\w*\Z")
_PATH = re.compile(r"[A-Za-z_{][\w.{}]*\Z")
_HEADS = {
    "structure": "structure a version 1",
    "impl": "impl a version 1 for b",
    "scheme": "scheme a",
    "binding": "binding a",
    "pipeline": "pipeline a version 1",
    "seat": "seat a : b version 1 at c",
    "each": "each i in 0..1",
    "discover": "discover a",
    "boundary": "boundary at a",
    "rung": "rung torch",
    "band": "band M in 1..2",
    "stage": "stage a",
    "coverage": "coverage a",
    "segment": "segment a : b in c",
}
"""Heads that read, for where the one in the text does not."""


@dataclass
class Block:
    """An open brace: the words of its head, of its present member, and of the item since the
    last comma; ``rounds``: how many parentheses are open."""

    head: list[str]
    member: list[str] = field(default_factory=list)
    item: list[str] = field(default_factory=list)
    rounds: int = 0

    @property
    def kind(self) -> str:
        """The keyword of its head; ``match`` for the arms of one; "" for the file."""
        if "match" in self.head:
            return "match"
        return self.head[0] if self.head else ""


@dataclass(frozen=True)
class Cursor:
    """``blocks``: the open ones, the file itself first; ``word`` what is typed of the present
    word, ``path`` of a path."""

    blocks: tuple[Block, ...]
    word: str
    path: str

    @property
    def here(self) -> Block:
        return self.blocks[-1]

    def around(self, *kinds: str) -> Block | None:
        """The innermost open block of one of these kinds."""
        return next((b for b in reversed(self.blocks) if b.kind in kinds), None)

    def target(self) -> Symbol | None:
        """The structure that the names here are of: that of a seat, an impl, a route of a
        scheme, or the structure that the cursor is in."""
        for block in reversed(self.blocks):
            words = block.head
            if block.kind == "structure" and len(words) > 1:
                return ("structure", words[1], _version(words, 2) or 1)
            after = {"seat": ":", "impl": "for", "at": "at"}.get(words[0] if words else "")
            if after in words:
                return referred(words[words.index(str(after)) + 1 :])
        return None

    def keywords(self) -> list[str]:
        """The keywords that the grammar allows here."""
        for heads in (self._own_heads, self._plain_heads):
            text = "frt 1\n" + "".join(f"{head} {{\n" for head in heads())
            found = _accepted(text + " ".join(self.here.item))
            if found is None and self.here.item != self.here.member:
                found = _accepted(text + " ".join(self.here.member))
            if found is not None:
                return found
        return []

    def _own_heads(self) -> list[str]:
        return [" ".join(block.head) for block in self.blocks[1:]]

    def _plain_heads(self) -> list[str]:
        return [_HEADS.get(b.kind, " ".join(b.head)) for b in self.blocks[1:]]


def cursor(text: str, offset: int) -> Cursor | None:
    """The cursor at an offset; None inside a comment or a text."""
    before = text[:offset]
    word = _WORD.search(before)
    path = _PATH.search(before)
    start = word.start() if word else offset
    end = 0
    blocks = [Block([])]
    for lexeme in lexemes(before[:start]):
        if lexeme.kind.startswith("open_"):
            return None
        end = lexeme.end
        _take(blocks, lexeme, before)
    line = before[max(end, before.rfind("\n") + 1) : start]
    if "#" in line:
        return None
    here = blocks[-1]
    if indent_at(before, start) is not None and not here.rounds:  # most likely a new member
        here.member, here.item = [], _carried(here)
    return Cursor(tuple(blocks), word[0] if word else "", path[0] if path else "")


def _carried(block: Block) -> list[str]:
    """What an item on a new line goes on with: nothing, unless its mark asks for more."""
    last = block.item[-1] if block.item else ""
    return block.item if last in ("=", "of", ":", "=>", "*", "+", "@", "->") else []


def _take(blocks: list[Block], lexeme: Lexeme, text: str) -> None:
    here, word = blocks[-1], lexeme.text
    if word == "{":
        blocks.append(Block(here.item if _is_arms(here) else here.member or here.item))
        here.member, here.item = [], []
        return
    if word == "}":
        closed = blocks.pop() if len(blocks) > 1 else Block([])
        blocks[-1].member, blocks[-1].item = list(closed.head), list(closed.head)
        return
    if word in tables().starters and not here.rounds and indent_at(text, lexeme.start) is not None:
        here.member, here.item = [], []
    here.rounds = max(0, here.rounds + (word in "([") - (word in ")]"))
    if word == "," and not here.rounds:
        here.member.append(word)
        here.item = []
        return
    here.member.append(word)
    here.item.append(word)


def _is_arms(block: Block) -> bool:
    return "match" in block.item


def _accepted(text: str) -> list[str] | None:
    """The keywords that may follow a text; None where it can't be read."""
    engine = Engine(tables(), text)
    engine.read()
    if engine.at < len(text):
        return None
    return sorted(_words(engine))


def _words(engine: Engine) -> Iterator[str]:
    for terminal in engine.accepts(engine.cell):
        mark = engine.tables.marks.get(terminal, "")
        if mark[:1].isalpha():
            yield mark


def allowed(cursor: Cursor) -> frozenset[str]:
    """The keywords that the grammar allows at the cursor."""
    return frozenset(cursor.keywords())


def referred(words: list[str]) -> Symbol | None:
    """``decoder_ffn . mlp version 1``: the structure's symbol."""
    if not words or not words[0].isidentifier():
        return None
    return ("structure", words[0], _version(words, 1))


def seam_of(words: list[str]) -> str | None:
    return words[2] if len(words) > 2 and words[1] == "." else None


def _version(words: list[str], at: int) -> int | None:
    if "version" not in words[at:]:
        return None
    place = words.index("version", at) + 1
    return int(words[place]) if place < len(words) and words[place].isdigit() else None

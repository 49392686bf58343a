"""Which files of a run the others can be left out of: what the asked ones need, told from
the text alone.

Reading is by words, so it may name a file too many and never one too few: a word counts
wherever it stands in the code. Where strings or braces don't pair up, as in a file with
mistakes, comments and strings count too, and what looks like the head of a declaration is
one at any depth. A name that no file declares is no business of this module: whoever meets
one has to read every file, to say what it was nearest to.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_APART = re.compile(r'"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|#[^\n]*')
_BRACE = re.compile(r"[{}]")
_HEAD = re.compile(
    r"\b(?:(structure|pipeline|binding|scheme|impl)\s+([A-Za-z_][A-Za-z0-9_]*)|(auto)(?=\s*\{))"
)
_IMPL = re.compile(
    r"\bimpl\s+([A-Za-z_][A-Za-z0-9_]*)\b[^{}]*?\bfor\s+([A-Za-z_][A-Za-z0-9_]*)"
)


class Purpose(Enum):
    """What the files are read for.

    CHECK     the findings about the asked files
    GENERATE  these, and every declaration that generated files are made of
    """

    CHECK = "check"
    GENERATE = "generate"


@dataclass(frozen=True)
class Head:
    """What the text of one file shows: its words, and ``kind`` and name of what it declares.

    impls  name and structure of each impl
    """

    words: frozenset[str]
    declares: frozenset[tuple[str, str]]
    impls: frozenset[tuple[str, str]]

    def has(self, *kinds: str) -> bool:
        return any(kind in kinds for kind, _ in self.declares)


def head(text: str) -> Head:
    """Reads the words of a file; never raises."""
    code = _APART.sub(" ", text)
    outside = None if '"' in code else _outside(code)
    tops = code if outside is None else outside
    if '"' in code:
        code = tops = f"{text}\n{code}"
    return Head(
        frozenset(_WORD.findall(code)),
        frozenset((m[1] or m[3], m[2] or "auto") for m in _HEAD.finditer(tops)),
        frozenset((m[1], m[2]) for m in _IMPL.finditer(tops)),
    )


def _outside(code: str) -> str | None:
    """What stands outside of all braces, with ``{}`` for each block; None where braces don't
    pair up."""
    parts: list[str] = []
    depth = start = 0
    for found in _BRACE.finditer(code):
        if found[0] == "{":
            if depth == 0:
                parts.append(code[start : found.start()])
            depth += 1
        else:
            depth -= 1
            start = found.end()
        if depth < 0:
            return None
    return None if depth else "{}".join([*parts, code[start:]])


def needed(heads: Mapping[str, Head], asked: Collection[str], purpose: Purpose) -> frozenset[str]:
    """The files, by name, without which something about the asked ones would be lost.

    A file needs those that declare the structures and pipelines it names. Beyond that:

    - a name declared twice needs both files;
    - an asked structure needs its impls: what can't be generated of it shows in them, and
      its rules choose among them; of any other structure, those that its text names;
    - an asked scheme needs the impls of what it names, an asked ``auto`` every scheme;
    - to generate, a structure needs all of its impls (its gate tries each, and their modules
      have names that tell them apart), a binding and a scheme every scheme and ``auto``.
    """
    return frozenset(_Search(heads, frozenset(asked), purpose is Purpose.GENERATE).run())


@dataclass
class _Search:
    heads: Mapping[str, Head]
    asked: frozenset[str]
    generate: bool
    declaring: dict[tuple[str, str], list[str]] = field(init=False)
    impls: dict[str, list[tuple[str, str]]] = field(init=False)
    """Structure -> name of an impl of it, and its file."""

    def __post_init__(self) -> None:
        self.declaring = defaultdict(list)
        self.impls = defaultdict(list)
        for file, read in self.heads.items():
            for key in read.declares:
                self.declaring[key].append(file)
            for name, structure in read.impls:
                self.impls[structure].append((name, file))

    def run(self) -> set[str]:
        found = set(self.asked)
        stack = list(self.asked)
        routed = self.generate and any(
            self.heads[file].has("binding", "scheme") for file in self.asked
        )
        if routed or any(self.heads[file].has("auto") for file in self.asked):
            stack += self._of_kind("scheme", "auto")
        schemes = routed or any(self.heads[file].has("scheme", "auto") for file in self.asked)
        while stack:
            file = stack.pop()
            for other in self._leads_to(file, schemes):
                if other not in found:
                    found.add(other)
                    stack.append(other)
            found.add(file)
        return found

    def _of_kind(self, *kinds: str) -> list[str]:
        return [file for file, read in self.heads.items() if read.has(*kinds)]

    def _leads_to(self, file: str, schemes: bool) -> Iterator[str]:
        read = self.heads[file]
        asked = file in self.asked
        if asked:
            for key in read.declares:
                if key[0] != "impl":  # many structures have an impl of one name
                    yield from self.declaring[key]
        routes = schemes and read.has("scheme", "auto")
        for word in read.words:
            yield from self.declaring.get(("structure", word), ())
            yield from self.declaring.get(("pipeline", word), ())
            own = ("structure", word) in read.declares
            every = routes or (own and (asked or self.generate))
            for impl, other in self.impls.get(word, ()):
                if every or impl in read.words:
                    yield other

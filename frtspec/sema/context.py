"""How findings are collected: one place for wording, did-you-mean and no cascades.

A name is reported as unknown once in a declaration, wherever else it is used. A
name that occurs in text the parser could not read may have been declared or used
there, so nothing is said about it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile, Span
from frtspec.diag.suggest import closest
from frtspec.ir import words
from frtspec.syntax import ast
from frtspec.syntax.ast.walk import inside

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Notes = tuple[tuple[Span | None, str], ...]


@dataclass
class _Unknown:
    """An unknown name, kept back until it is clear which names were never used.

    ``uses``: every place where it stands.
    """

    diagnostic: Diagnostic
    what: str
    name: str
    near: str | None
    uses: list[Span]


@dataclass(frozen=True)
class _Unused:
    kind: str
    name: str
    diagnostic: Diagnostic


class LostWords:
    """Words in text that the parser could not read; remembers whether that mattered.

    Whoever finds a word here leaves something unsaid, so the declaration is not known to be
    right: ``mattered``.
    """

    def __init__(self, words: frozenset[str] = frozenset()) -> None:
        self._words = words
        self.mattered = False

    def __contains__(self, name: str) -> bool:
        return self._noted(name in self._words)

    def __bool__(self) -> bool:
        return self._noted(bool(self._words))

    def any_of(self, names: Iterable[str]) -> bool:
        """Whether one of the names is among the words."""
        return self._noted(not self._words.isdisjoint(names))

    def add(self, names: Iterable[str]) -> None:
        """Words that are lost as well."""
        self._words |= frozenset(names)

    def _noted(self, found: bool) -> bool:
        self.mattered |= found
        return found


@dataclass
class Context:
    """Findings in one declaration.

    ``what``: how messages call the declaration (``structure decoder_ffn version 1``).
    ``dropped``: words in the text of its members that could not be parsed.
    ``imported``: it says only what its source says, so what is left open is no error.
    ``widened``: whether a name was looked for among those of every file, and not found.
    """

    what: str
    dropped: LostWords = field(default_factory=LostWords)
    imported: bool = False
    widened: bool = False
    found: list[Diagnostic] = field(default_factory=list)
    used: set[tuple[str, str]] = field(default_factory=set)
    _unknown: dict[tuple[str, str], _Unknown] = field(default_factory=dict)
    _unused: list[_Unused] = field(default_factory=list)

    def error(
        self, code: str, message: str, span: Span, *, notes: Notes = (), help: str | None = None
    ) -> None:
        self.found.append(Diagnostic(code, message, span, notes=notes, help=help))

    def unknown(
        self,
        what: str,
        name: ast.Name,
        candidates: Iterable[str],
        *,
        code: str = "FRT0201",
        everywhere: bool = False,
    ) -> None:
        """Report that nothing called ``name`` is known; ``what`` is its kind (``dim``).

        ``everywhere``: the candidates are declarations of any file.
        """
        self.widened |= everywhere
        if name.id in self.dropped:
            return
        if (what, name.id) in self._unknown:
            self._unknown[what, name.id].uses.append(name.span)
            return
        pool = list(dict.fromkeys(candidates))
        other = words.ELSEWHERE.get(name.id)
        near = other if other in pool else closest(name.id, pool)
        if near is not None:
            help = f"did you mean `{near}`?"
        elif pool and len(pool) <= 12:
            help = f"known here: {', '.join(pool)}"
        else:
            help = None
        found = Diagnostic(code, f"unknown {what} `{name.id}`", name.span, help=help)
        self._unknown[what, name.id] = _Unknown(found, what, name.id, near, [name.span])

    def misspelt(self, what: str, name: str) -> bool:
        """Whether an unknown name of this kind was most likely meant to be ``name``."""
        return any(u.what == what and u.near == name for u in self._unknown.values())

    @property
    def guessing(self) -> bool:
        """Whether a name was not known, so that what hangs on it is not either."""
        return bool(self._unknown)

    @property
    def variants_guessed(self) -> bool:
        """Whether a variant or a value of one was not known: what exists when is open."""
        return any("variant" in unknown.what for unknown in self._unknown.values())

    def use(self, kind: str, name: str) -> None:
        """Mark a declared name of this kind as used."""
        self.used.add((kind, name))

    def unused(self, kind: str, name: str, span: Span, why: str) -> None:
        """Report a name that nothing uses, unless a misspelt use explains it."""
        if (kind, name) not in self.used and name not in self.dropped:
            message = f"{kind} `{name}` is declared and never used"
            found = Diagnostic("FRT0205", message, span, help=why)
            self._unused.append(_Unused(kind, name, found))

    def unused_value(self, name: str, span: Span) -> None:
        """Report a definition that no later line reads."""
        if name not in self.dropped:
            message = f"`{name}` is computed and never read"
            help = "use it or leave it out; a value to be measured is a `point`"
            found = Diagnostic("FRT0205", message, span, help=help)
            self._unused.append(_Unused("value", name, found))

    def finish(self) -> list[Diagnostic]:
        """Everything found. An unknown name and an unused one that are nearly alike, or the
        only two of their kind, are one mistake: of the two places, the one that stands alone
        is blamed."""
        spare = list(self._unused)
        lost = [unknown.what for unknown in self._unknown.values() if unknown.near is None]
        for unknown in self._unknown.values():
            twin = next((item for item in spare if item.name == unknown.near), None)
            fitting = [item for item in spare if item.kind == unknown.what]
            if unknown.near is None and lost.count(unknown.what) == len(fitting) == 1:
                twin = fitting[0]
            if twin is not None:
                spare.remove(twin)
            self.found.append(unknown.diagnostic if twin is None else _one_mistake(unknown, twin))
        self.found += [item.diagnostic for item in spare]
        self._unknown.clear()
        self._unused.clear()
        return self.found


def _one_mistake(unknown: _Unknown, unused: _Unused) -> Diagnostic:
    if len(unknown.uses) == 1:
        notes: Notes = ((unused.diagnostic.span, "declared here and never used"),)
        return replace(unknown.diagnostic, notes=notes)
    return Diagnostic(
        "FRT0205",
        f"{unused.kind} `{unused.name}` is declared and never used, and `{unknown.name}` is "
        f"used {len(unknown.uses)} times and not declared",
        unused.diagnostic.span,
        notes=((unknown.uses[0], "first used here"),),
        help=f"did you mean `{unknown.name}`?",
    )


def words_of(source: SourceFile, nodes: Iterable[object]) -> frozenset[str]:
    """Every word in the text of the error nodes among ``nodes`` (nested ones too)."""
    out: set[str] = set()
    for node in error_nodes(nodes):
        out.update(_WORD.findall(source.text[node.span.start : node.span.end]))
    return frozenset(out)


def error_nodes(nodes: Iterable[object]) -> list[ast.ErrorNode]:
    """The error nodes in these trees, in order."""
    return [node for node in inside(nodes) if isinstance(node, ast.ErrorNode)]


def listing(names: Collection[str], limit: int = 8) -> str:
    """``a, b and c``; the first few where there are many."""
    shown = list(names)
    if len(shown) > limit:
        return f"{', '.join(shown[:limit])} and {len(shown) - limit} more"
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"

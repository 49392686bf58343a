"""How findings are collected: one place for wording, did-you-mean and no cascades.

A name is reported as unknown once in a declaration, wherever else it is used. A
name that occurs in text the parser could not read may have been declared or used
there, so nothing is said about it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile, Span
from frtspec.diag.suggest import closest
from frtspec.syntax import ast

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Notes = tuple[tuple[Span | None, str], ...]


@dataclass
class _Unknown:
    """An unknown name, kept back until it is clear which names were never used."""

    diagnostic: Diagnostic
    what: str
    near: str | None


@dataclass
class Context:
    """Findings in one declaration.

    ``what``: how messages call the declaration (``structure decoder_ffn version 1``).
    ``dropped``: words in the text of its members that could not be parsed.
    """

    what: str
    dropped: frozenset[str] = frozenset()
    found: list[Diagnostic] = field(default_factory=list)
    used: set[tuple[str, str]] = field(default_factory=set)
    _unknown: dict[tuple[str, str], _Unknown] = field(default_factory=dict)
    _unused: list[tuple[str, str, Diagnostic]] = field(default_factory=list)

    def error(
        self, code: str, message: str, span: Span, *, notes: Notes = (), help: str | None = None
    ) -> None:
        self.found.append(Diagnostic(code, message, span, notes=notes, help=help))

    def unknown(
        self, what: str, name: ast.Name, candidates: Iterable[str], *, code: str = "FRT0201"
    ) -> None:
        """Report that nothing called ``name`` is known; ``what`` is its kind (``dim``)."""
        if name.id in self.dropped or (what, name.id) in self._unknown:
            return
        pool = list(dict.fromkeys(candidates))
        near = closest(name.id, pool)
        if near is not None:
            help = f"did you mean `{near}`?"
        elif pool and len(pool) <= 12:
            help = f"known here: {', '.join(pool)}"
        else:
            help = None
        found = Diagnostic(code, f"unknown {what} `{name.id}`", name.span, help=help)
        self._unknown[what, name.id] = _Unknown(found, what, near)

    def use(self, kind: str, name: str) -> None:
        """Mark a declared name of this kind as used."""
        self.used.add((kind, name))

    def unused(self, kind: str, name: str, span: Span, why: str) -> None:
        """Report a name that nothing uses, unless a misspelt use explains it."""
        if (kind, name) not in self.used and name not in self.dropped:
            message = f"{kind} `{name}` is declared and never used"
            self._unused.append((kind, name, Diagnostic("FRT0205", message, span, help=why)))

    def unused_value(self, name: str, span: Span) -> None:
        """Report a definition that no later line reads."""
        if name not in self.dropped:
            message = f"`{name}` is computed and never read"
            help = "use it or leave it out; a value to be measured is a `point`"
            self._unused.append(("name", name, Diagnostic("FRT0205", message, span, help=help)))

    def finish(self) -> list[Diagnostic]:
        """Everything found; unknown and unused names are matched with each other first."""
        spare = [item for item in self._unused]
        lost = []
        for unknown in self._unknown.values():
            match = next((item for item in spare if item[1] == unknown.near), None)
            if match is not None:
                spare.remove(match)
            elif unknown.near is None:
                lost.append(unknown)
        for unknown in lost:
            fitting = [item for item in spare if item[0] == unknown.what] or spare
            if not fitting or len(fitting) > len(lost):
                continue
            unknown.diagnostic = _with_help(
                unknown.diagnostic,
                f"`{fitting[0][1]}` is declared and never used: was it meant?",
            )
            spare.remove(fitting[0])
        self.found += [unknown.diagnostic for unknown in self._unknown.values()]
        self.found += [diagnostic for _, _, diagnostic in spare]
        self._unknown.clear()
        self._unused.clear()
        return self.found


def _with_help(found: Diagnostic, help: str) -> Diagnostic:
    return Diagnostic(found.code, found.message, found.span, found.severity, found.notes, help)


def words_of(source: SourceFile, nodes: Iterable[object]) -> frozenset[str]:
    """Every word in the text of the error nodes among ``nodes`` (nested ones too)."""
    out: set[str] = set()
    for node in error_nodes(nodes):
        out.update(_WORD.findall(source.text[node.span.start : node.span.end]))
    return frozenset(out)


def error_nodes(nodes: Iterable[object]) -> list[ast.ErrorNode]:
    """The error nodes in these trees, in order."""
    out: list[ast.ErrorNode] = []
    stack = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.ErrorNode):
            out.append(node)
        elif isinstance(node, tuple):
            stack.extend(node[::-1])
        elif not isinstance(node, str | int | Span) and hasattr(node, "__dataclass_fields__"):
            stack.extend(getattr(node, name) for name in reversed(node.__dataclass_fields__))
    return out


def listing(names: Collection[str], limit: int = 8) -> str:
    """``a, b and c``; the first few where there are many."""
    shown = list(names)
    if len(shown) > limit:
        return f"{', '.join(shown[:limit])} and {len(shown) - limit} more"
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"

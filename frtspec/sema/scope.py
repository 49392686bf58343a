"""Names inside a structure: what each stands for and where it is visible."""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from dataclasses import dataclass, field

from frtspec.diag.source import Span
from frtspec.sema.context import Context
from frtspec.syntax import ast

OPERANDS = ("input", "slot", "param", "value", "point", "carry", "over", "scale")
"""Kinds of names that may stand in an expression."""


@dataclass(frozen=True)
class Symbol:
    """What a name stands for. ``index``: the index it is repeated over, if any.

    ``over_items``: for what a scan reads step by step, the index it was declared with.
    """

    kind: str
    span: Span
    index: str | None = None
    over_items: tuple[str, ...] | None = None


@dataclass
class Scope:
    """Names by nesting: an ``each`` or a ``scan`` has a scope of its own.

    ``index``: the index of the ``each`` we are in; ``step``: the step of the ``scan``.
    """

    names: dict[str, Symbol] = field(default_factory=dict)
    outer: Scope | None = None
    index: str | None = None
    step: str | None = None

    def inner(self, *, index: str | None = None, step: str | None = None) -> Scope:
        return Scope({}, self, index or self.index, step or self.step)

    def find(self, name: str) -> Symbol | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None

    def visible(self) -> Iterator[str]:
        """Names that may stand in an expression here."""
        scope: Scope | None = self
        while scope is not None:
            yield from (n for n, symbol in scope.names.items() if symbol.kind in OPERANDS)
            scope = scope.outer


def reserved(name: str) -> str | None:
    """Why a name cannot be declared, or None."""
    if keyword.iskeyword(name) or keyword.issoftkeyword(name) and name != "type":
        return f"`{name}` is a keyword of Python, in which the generated code is written"
    if name.startswith("__"):
        return "names that start with two underscores belong to Python"
    if name.startswith("frt_"):
        return "names that start with frt_ belong to the generated code"
    return None


def declare(context: Context, scope: Scope, kind: str, name: ast.Name, symbol: Symbol) -> bool:
    """Put a name into a scope; reports and returns False when it is taken or reserved."""
    why = reserved(name.id)
    if why is not None:
        context.error(
            "FRT0204", f"{kind} cannot be called `{name.id}`", name.span, help=f"{why}: rename it"
        )
    before = scope.names.get(name.id)
    if before is not None:
        context.error(
            "FRT0202",
            f"`{name.id}` is declared twice",
            name.span,
            notes=((before.span, f"first as {article(before.kind)}"),),
            help="give one of the two another name",
        )
        return False
    scope.names[name.id] = symbol
    return why is None


def article(kind: str) -> str:
    """``an input``, ``a slot``."""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"

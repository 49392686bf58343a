"""FRT0700: constructs that nothing consumes yet, named one by one."""

from __future__ import annotations

from collections.abc import Iterator

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import Span
from frtspec.ir.consumers import MISSING
from frtspec.syntax import ast
from frtspec.syntax.ast.walk import inside

_KINDS = frozenset(row.node for row in MISSING)

UNSUPPORTED = "FRT0700"


def unsupported(file: ast.File) -> Iterator[Diagnostic]:
    """One finding per construct of a file that has no consumer."""
    for decl in file.decls:
        for node in inside([decl]):
            if type(node) in _KINDS:
                yield from _rows(node, type(decl).__name__)


def _rows(node: object, owner: str) -> Iterator[Diagnostic]:
    for row in MISSING:
        if type(node) is row.node and row.owner in (None, owner) and row.test(node):
            yield Diagnostic(
                UNSUPPORTED,
                f"unsupported: {row.what} has no generator yet",
                _head(node),
                help="it is read and checked; leave it out of what is generated until then",
            )


def _head(node: object) -> Span:
    """The name of the construct where it has one, else all of it."""
    name = getattr(node, "name", None)
    span: Span = node.span  # type: ignore[attr-defined]
    return name.span if isinstance(name, ast.Name) else span

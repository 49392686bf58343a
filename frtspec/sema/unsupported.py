"""FRT0700: constructs that nothing consumes yet, named one by one."""

from __future__ import annotations

from collections.abc import Iterator

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import Span
from frtspec.ir.consumers import MISSING
from frtspec.syntax import ast

_OWNERS = (ast.ImplDecl, ast.SeatDecl, ast.StructureDecl)

UNSUPPORTED = "FRT0700"


def unsupported(file: ast.File) -> Iterator[Diagnostic]:
    """One finding per construct of a file that has no consumer."""
    stack: list[tuple[object, str | None]] = [(decl, None) for decl in reversed(file.decls)]
    while stack:
        node, owner = stack.pop()
        if isinstance(node, tuple):
            stack.extend((item, owner) for item in reversed(node))
            continue
        if not hasattr(node, "__dataclass_fields__"):
            continue
        yield from _rows(node, owner)
        inner = type(node).__name__ if isinstance(node, _OWNERS) else owner
        fields = reversed(node.__dataclass_fields__)
        stack.extend((getattr(node, name), inner) for name in fields if name != "span")


def _rows(node: object, owner: str | None) -> Iterator[Diagnostic]:
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

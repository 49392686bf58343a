"""Reading numbers, paths and words out of the IR for a plain document."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.source import Span
from frtspec.ir.decl import Binding, Export
from frtspec.syntax import ast

NOTHING = Export("", (), Span("", 0, 0))


@dataclass
class CannotExport(Exception):
    """Something that flash-rt's format has no place for."""

    message: str
    span: Span
    help: str | None = None


def hints(binding: Binding, target: str) -> Export:
    """The binding's ``export`` block for a catalog; an empty one where it has none."""
    return next((e for e in binding.exports if e.target == target), NOTHING)


def whole(expr: ast.Expr, what: str, span: Span) -> int:
    """A number written as one. Raises ``CannotExport`` for anything else."""
    if isinstance(expr, ast.Number) and expr.value == int(expr.value):
        return int(expr.value)
    raise CannotExport(
        f"{what} is read from the host's config, and flash-rt's format takes a number",
        span,
        "write the number of the model that is meant",
    )


def word(expr: ast.Expr, what: str, span: Span) -> str:
    """A value written as a name. Raises ``CannotExport`` for anything else."""
    if isinstance(expr, ast.Name):
        return expr.id
    raise CannotExport(
        f"{what} is chosen by the host's config, and flash-rt's format takes one value",
        span,
        "write the value of the model that is meant",
    )


def joined(base: str, below: str) -> str:
    return f"{base}.{below}" if base else below

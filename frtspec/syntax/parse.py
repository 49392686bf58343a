"""Text to syntax tree: one call, every error of the file, never an exception."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.diagnostic import Diagnostic, in_order
from frtspec.diag.source import SourceFile
from frtspec.syntax import ast
from frtspec.syntax.build import build_file
from frtspec.syntax.engine import Engine
from frtspec.syntax.nodes import Node
from frtspec.syntax.scanner import comments
from frtspec.syntax.tables import tables
from frtspec.syntax.trivia import Comment

MAX_ERRORS = 20


@dataclass(frozen=True)
class ParseResult:
    """A file's syntax tree, its findings and its comments.

    ``file`` is whole where there is no finding; elsewhere ``ErrorNode`` stands for
    what could not be read.
    """

    file: ast.File
    diagnostics: tuple[Diagnostic, ...]
    comments: tuple[Comment, ...]


def parse(source: SourceFile) -> ParseResult:
    """Parse one source file. Never raises on bad input; at most 20 syntax errors."""
    tree, found, doubtful = _read(source)
    file, built = build_file(source, tree, doubtful)
    said = {source.position(d.span.start)[0] for d in found}
    built = [d for d in built if source.position(d.span.start)[0] not in said]
    return ParseResult(file, in_order(found + built), comments(source))


def _read(source: SourceFile) -> tuple[Node, list[Diagnostic], list[int]]:
    """(the concrete tree, findings, offsets at which the tree holds a guess)."""
    engine = Engine(tables(), source.text)
    tree = engine.read()
    if tree is not None:
        return tree, [], []
    from frtspec.syntax.mend import mended  # wording and repairs: only where needed

    return mended(engine, source, MAX_ERRORS)

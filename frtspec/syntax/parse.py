"""Text to syntax tree: one call, every error of the file, never an exception."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.diagnostic import Diagnostic, in_order
from frtspec.diag.source import SourceFile
from frtspec.syntax import ast
from frtspec.syntax.build import build_file
from frtspec.syntax.grammar import parser
from frtspec.syntax.trivia import Comment


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
    tree = parser().parse(source.text)
    file, found = build_file(source, tree)
    return ParseResult(file, in_order(found), ())

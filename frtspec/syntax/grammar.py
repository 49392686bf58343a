"""The grammar as Lark compiles it.

Keywords stay soft by two small means, both applied to the terminals here so that the
grammar file reads as plain words:

- a keyword is matched as a whole word (``slots`` is not ``slot`` and an ``s``), and a mark
  as a whole mark (``=>`` is not ``=`` and a ``>``);
- ``not``, ``over`` and ``each`` inside an expression count as keywords only where what
  follows on the line shows that they are meant, so that they stay free as names; ``in``
  before a parenthesis asks for membership, before a name it declares an input.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from frtspec.resources import grammar_dir

if TYPE_CHECKING:
    from lark import Lark
    from lark.lexer import TerminalDef

RESERVED = ("match", "scan", "rows", "per", "present", "against", "input")
"""The words that can't be names anywhere."""

_WORD_END = "(?![A-Za-z0-9_])"
NO_PART_OF = {"=": "[=>]", "-": ">", ".": r"\.", ":": "=", "?": r"\?"}
"""Mark -> what may not follow it, since that would make another mark."""

_INFIX = "is|and|or|when|otherwise|where|carry|updates|aliases|use|with"
_MEANT_BY_WHAT_FOLLOWS = {
    "NOT": rf"(?:(?=\s*\()|(?=[ \t]+(?!(?:{_INFIX}){_WORD_END})[A-Za-z_]))",
    "OVER_DIM": r"(?=[ \t]+[A-Za-z_][A-Za-z0-9_]*\s*[,)])",
    "EACH_ARG": r"(?=[ \t]+[A-Za-z_][A-Za-z0-9_]*[ \t]*=>)",
    "IN_SET": r"(?=[ \t]*\()",
}


def grammar_text() -> str:
    """The text of ``frt.lark``."""
    return (grammar_dir() / "frt.lark").read_text(encoding="utf-8")


def compile_grammar(*, strict: bool = False) -> Lark:
    """Compile the grammar.

    ``strict`` makes Lark refuse every conflict and every collision of terminals (it
    needs ``interegular``). The look-ahead of those words and marks is left out there:
    it only narrows a terminal, and so can't hide a collision.
    """
    from lark import Lark
    from lark.lexer import ContextualLexer, PatternRE, PatternStr

    class UncheckedLexer(ContextualLexer):
        """Skips the collision check, which costs more than everything else at start-up."""

        def __init__(self, conf, states, always_accept=()):  # type: ignore[no-untyped-def]
            conf.skip_validation = True
            super().__init__(conf, states, always_accept)

    def whole_words(terminal: TerminalDef) -> None:
        word = terminal.pattern.value
        ahead = _MEANT_BY_WHAT_FOLLOWS.get(terminal.name)
        if ahead is not None:
            terminal.pattern = PatternRE(word + _WORD_END + ("" if strict else ahead))
        elif isinstance(terminal.pattern, PatternStr) and word.isidentifier():
            terminal.pattern = PatternRE(word + _WORD_END)
            terminal.priority = 1
        elif word in NO_PART_OF and not strict:
            terminal.pattern = PatternRE(f"{re.escape(word)}(?!{NO_PART_OF[word]})")

    return Lark(
        grammar_text(),
        parser="lalr",
        lexer="contextual",
        start="file",
        propagate_positions=True,
        maybe_placeholders=True,
        edit_terminals=whole_words,
        strict=strict,
        _plugins={} if strict else {"ContextualLexer": UncheckedLexer},
    )

"""The TextMate grammar that editors colour specs by, made from the language's own tables.

``python -m frtspec.lsp.textmate`` writes it into ``editors/vscode``; a test holds it current.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from frtspec.ir import words
from frtspec.ir.ops import OPS
from frtspec.syntax.grammar import RESERVED
from frtspec.syntax.tables import tables

FILE = "editors/vscode/syntaxes/frt.tmLanguage.json"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_DECLARES = ("structure", "pipeline", "impl", "scheme", "binding")
_DTYPES = ("f32", "int64", "bool", *words.FORMATS, *words.PLAIN_FORMATS)
_NO_NAMES = "(?:prove|for|eager|when)"
"""Words that may follow a member's keyword where others have a name."""

_START = r"(?:^|(?<=[{}]))\s*"
"""Where a member begins: first on its line, or behind a brace."""


def _any(names: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=lambda n: (-len(n), n)))


def grammar() -> dict[str, Any]:
    """The grammar as a JSON object.

    Keywords are soft: a word that begins members is one where a member begins; others are
    coloured as keywords unless they stand in a path or are given a value.
    """
    found = tables()
    starters = found.starters - set(_DECLARES)
    inside = found.words - set(RESERVED)
    named = _any(starters - {"at", "boundary", "call", "in", "out", "otherwise", "reference"})
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "frtspec",
        "scopeName": "source.frt",
        "fileTypes": ["frt"],
        "patterns": [{"include": f"#{name}"} for name in _ORDER],
        "repository": {
            "comment": {"match": "#.*$", "name": "comment.line.number-sign.frt"},
            "docstring": {
                "begin": '"""',
                "end": '"""',
                "name": "string.quoted.triple.frt",
            },
            "string": {
                "begin": '"',
                "end": '"|$',
                "name": "string.quoted.double.frt",
                "patterns": [{"match": r"\\.", "name": "constant.character.escape.frt"}],
            },
            "edition": _words(rf"{_START}(frt)\b(?=\s+[0-9])", "keyword.control.edition.frt"),
            "declaration": _words(
                rf"{_START}({_any(_DECLARES)})\s+({_NAME})",
                "storage.type.declaration.frt",
                "entity.name.type.frt",
            ),
            "member": {
                "patterns": [
                    _words(
                        rf"{_START}({named})\s+(?!{_NO_NAMES}\b)({_NAME})(?!\s*=>|\.)",
                        "keyword.other.member.frt",
                        "variable.other.definition.frt",
                    ),
                    _words(
                        rf"{_START}({_any(starters)})\b(?!\s*(?:=|:|\.|,|\)))",
                        "keyword.other.member.frt",
                    ),
                ]
            },
            "reserved": _words(rf"(?<![.\w])({_any(RESERVED)})(?!\w)", "keyword.control.frt"),
            "path": {
                "match": rf"(?<![.\w]){_NAME}(?:\.(?:[A-Za-z0-9_]+|\{{[^{{}}\n]*\}}))+",
                "name": "variable.other.path.frt",
                "captures": {"0": {"patterns": [{"include": "#interpolation"}]}},
            },
            "interpolation": {
                "match": r"\{[^{}\n]*\}",
                "name": "meta.interpolation.frt",
            },
            "op": _words(
                rf"(?<![.\w])({_any(n for n, op in OPS.items() if not op.symbol)})(?=\s*\()",
                "support.function.op.frt",
            ),
            "dtype": _words(rf"(?<![.\w])({_any(_DTYPES)})(?!\w)", "support.type.dtype.frt"),
            "word": _words(
                rf"(?<![.\w])((?:{_any(inside)})(?!\w|\.|\s*=(?![=>]))|steps(?=\s*=))",
                "keyword.other.frt",
            ),
            "number": {
                "match": r"(?<![.\w])[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?",
                "name": "constant.numeric.frt",
            },
            "operator": {
                "match": r"=>|->|\.\.=|\.\.|\*\*|//|\?\?|<=|>=|==|!=|[-+*/%@<>=?|]",
                "name": "keyword.operator.frt",
            },
        },
    }


_ORDER = (
    "comment",
    "docstring",
    "string",
    "edition",
    "declaration",
    "member",
    "reserved",
    "path",
    "op",
    "dtype",
    "word",
    "number",
    "operator",
)


def _words(pattern: str, *scopes: str) -> dict[str, Any]:
    """A pattern whose groups have these scopes."""
    captures = {str(n): {"name": scope} for n, scope in enumerate(scopes, start=1)}
    return {"match": pattern, "captures": captures}


def text() -> str:
    """The file's text."""
    return json.dumps(grammar(), indent=2) + "\n"


if __name__ == "__main__":
    Path(FILE).write_text(text(), encoding="utf-8")

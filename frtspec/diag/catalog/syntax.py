"""Codes of reading (FRT00xx) and of the syntax (FRT01xx)."""

from __future__ import annotations

from frtspec.diag.codes_types import Code, Example, Phase

_SCHEME = """frt 1

scheme plain {
  otherwise keep "nothing has a form here"
}
"""


def _raw(contents: bytes) -> Example:
    return Example((("example.frt", contents),), ("check", "example.frt"))


def _structure(*members: str) -> str:
    body = "".join(f"  {line}\n" for member in members for line in member.splitlines())
    return f"frt 1\n\nstructure s version 1 {{\n{body}}}\n"


def _code(
    number: str,
    title: str,
    summary: str,
    example: str | Example,
    fix: str,
    fixed: str | None = None,
    phase: Phase = "syntax",
) -> Code:
    return Code(f"FRT{number}", title, phase, summary, example, fix, fixed)


CODES: tuple[Code, ...] = (
    _code(
        "0001",
        "file that can't be read",
        "The path is there, but there is no text to be had from it: it is a folder, a pipe or a "
        "device, access is denied, or it is far larger than any spec.",
        Example((), ("check", "/dev/null")),
        "Give a readable file.",
        phase="source",
    ),
    _code(
        "0002",
        "file that is not UTF-8",
        "Specs are UTF-8 text, with or without a leading byte order mark. The bytes of this file "
        "are not; some editors save UTF-16 or a local encoding.",
        _raw("frt 1\n".encode("utf-16")),
        "Save the file as UTF-8.",
        phase="source",
    ),
    _code(
        "0003",
        "zero byte in a file",
        "A zero byte is no text. It is most often a sign of UTF-16 without its mark, or of a "
        "file that was cut off while it was written.",
        _raw(b"frt 1\n\0\n"),
        "Save the file as UTF-8 text again.",
        phase="source",
    ),
    _code(
        "0101",
        "something unexpected",
        "The text does not go on here as the language allows, and no small edit would mend it. "
        "The member is left out, and reading goes on with the next one.",
        _structure("dim M", "rung torch", "dim D"),
        "The help line says what can stand here.",
    ),
    _code(
        "0102",
        "misspelt word",
        "A word stands where a word of the language is expected, and it is close to one of them.",
        _SCHEME.replace("keep", "kepe"),
        "Correct the spelling.",
        _SCHEME,
    ),
    _code(
        "0103",
        "block that is not closed",
        "A `{` has no `}`. The place shown is where the block most likely ends, judged by the "
        "indentation; the note shows where it was opened.",
        _SCHEME.removesuffix("}\n"),
        "Add the `}`.",
        _SCHEME,
    ),
    _code(
        "0104",
        "something missing",
        "With one more mark or word at this place the text would read on.",
        _structure("dim M, D", "in x [rows M D] : host"),
        "Add what the message names.",
    ),
    _code(
        "0105",
        "something too many",
        "Without this mark or word, or with another one in its place, the text would read on.",
        _structure("dim M,, D"),
        "Remove it, or write what the help line says.",
    ),
    _code(
        "0106",
        "word of the language as a name",
        "Seven words can't be names, because an expression or a list may begin with them: match, "
        "scan, rows, per, present, against and input. All other words of the language can.",
        _structure("dim per"),
        "Choose another name, for example with `_` at its end.",
    ),
    _code(
        "0107",
        "missing or unknown edition",
        "A file begins with the edition of the language that it is written in. A later version "
        "of frtspec reads older editions; it does not guess.",
        _SCHEME.replace("frt 1", "frt 9"),
        "Begin the file with `frt 1`.",
        _SCHEME,
    ),
    _code(
        "0108",
        "text without an end",
        'A text in quotes ends on its own line, and a docstring ends with `"""`.',
        _SCHEME.replace('here"', "here"),
        "Add the closing quote.",
        _SCHEME,
    ),
    _code(
        "0109",
        "character outside the language",
        "This character has no meaning in a spec outside texts, docstrings and comments.",
        _structure("dim M §"),
        "Remove it. Names are ASCII letters, digits and `_`.",
    ),
    _code(
        "0110",
        "nesting too deep",
        "Expressions may nest some ninety levels deep and hold a hundred operators, far beyond "
        "what a reader can follow.",
        _structure("param a = " + "(" * 100 + "1" + ")" * 100),
        "Give parts of the expression names of their own.",
    ),
    _code(
        "0111",
        "number out of range",
        "Numbers are kept exactly, so their size is limited: 60 digits and an exponent of 300. "
        "Versions, indices and sizes are whole numbers.",
        _structure("dim M").replace("version 1", "version 1.5"),
        "Write a number in range; a version counts 1, 2, 3.",
    ),
    _code(
        "0112",
        "too many errors",
        "After twenty syntax errors the rest of a file is not read: what follows is most often "
        "the consequence of one of them.",
        _structure(*["dim M;"] * 21),
        "Mend the first errors and run again.",
    ),
    _code(
        "0114",
        "unknown escape",
        'In a text, `\\` stands before `"`, `\\`, `n` or `t` only.',
        _SCHEME.replace("nothing", "\\d nothing"),
        "Write `\\\\` for a backslash.",
        _SCHEME,
    ),
    _code(
        "0115",
        "incomplete declaration",
        "The declaration can be read, but a part that it needs is not there: a version, a shape, "
        "a dtype.",
        _structure("dim M, D", "in x [rows M, D]"),
        "Add the part; the help line shows how.",
    ),
    _code(
        "0116",
        "part of a declaration at the wrong place",
        "The parts of this declaration are in another order than the language has them, or one "
        "is there twice.",
        _structure("dim D", "slot w [D]?"),
        "Write it as the help line shows.",
    ),
    _code(
        "0117",
        "host path with a wrong index",
        "In a path on the host, `{…}` holds an index: a name, a number, or a sum or product of "
        "them.",
        'frt 1\n\nbinding b {\n  host transformers ">=5" class C\n'
        "  seat s : t version 1 at layers.{i j} {\n  }\n}\n",
        "Write an index such as `{i}` or `{2 * i + 1}`.",
    ),
    _code(
        "0118",
        "operator that does not apply",
        "`is` compares a variant axis with names of its values, and `not` applies to a whole "
        "condition.",
        _structure("variant a { b, c }", "dim M", "in x? [M] : host when 1 is b"),
        "Use `==` for numbers and texts; put `not` and its condition in parentheses.",
    ),
)

"""Helpers of the syntax tests: frames around snippets, a short dump of syntax trees."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from frtspec.diag.source import SourceFile, Span
from frtspec.syntax import ast
from frtspec.syntax.parse import ParseResult, parse

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(__file__).parent / "cases"

FRAMES = {
    "file": ("", ""),
    "structure": ("frt 1\nstructure s version 1 {\n", "\n}\n"),
    "discover": ("frt 1\nstructure s version 1 { discover {\n", "\n} }\n"),
    "reference": ("frt 1\nstructure s version 1 { reference {\n", "\n} }\n"),
    "scan": ("frt 1\nstructure s version 1 { reference { scan t in S {\n", "\n} } }\n"),
    "expression": ("frt 1\nstructure s version 1 { reference { let v =\n", "\n} }\n"),
    "impl": ("frt 1\nimpl f for s version 1 {\n", "\n}\n"),
    "rung": ("frt 1\nimpl f for s version 1 { rung torch {\n", "\n} }\n"),
    "scheme": ("frt 1\nscheme f {\n", "\n}\n"),
    "binding": ("frt 1\nbinding b {\n", "\n}\n"),
    "seat": ("frt 1\nbinding b { seat s : t version 1 at m {\n", "\n} }\n"),
    "pipeline": ("frt 1\npipeline p version 1 {\n", "\n}\n"),
    "stage": ("frt 1\npipeline p version 1 { stage s {\n", "\n} }\n"),
    "loop": ("frt 1\npipeline p version 1 { loop l {\n", "\n} }\n"),
    "use": ("frt 1\nbinding b { pipeline p version 1 {\n", "\n} }\n"),
    "stage_use": ("frt 1\nbinding b { pipeline p version 1 { stage s {\n", "\n} } }\n"),
    "coverage": ("frt 1\nbinding b { pipeline p version 1 { coverage c {\n", "\n} } }\n"),
}
"""What stands around a snippet of each kind; the snippet begins on a line of its own."""


def catalog() -> list[Path]:
    """Every spec that the project ships, and the hardest five."""
    return sorted([*(ROOT / "specs").rglob("*.frt"), *(ROOT / "tests/specs/hard").glob("*.frt")])


def source_of(path: Path) -> SourceFile:
    return SourceFile.from_text(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))


def framed(kind: str, snippet: str) -> SourceFile:
    before, after = FRAMES[kind]
    return SourceFile.from_text("case.frt", f"{before}{snippet}{after}")


def lines_before(kind: str) -> int:
    """Lines of the frame before the snippet."""
    return FRAMES[kind][0].count("\n")


def parsed(text: str) -> ParseResult:
    return parse(SourceFile.from_text("case.frt", text))


# ---------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    """``kind``: the frame. ``tree``: the dump of what the snippet means, or None.
    ``errors``: (line, column, code, words of the message)."""

    kind: str
    number: int
    snippet: str
    tree: str | None
    errors: tuple[tuple[int, int, str, str], ...]

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"


def cases() -> Iterator[Case]:
    """``> snippet`` lines, then ``= tree`` lines, or ``! line:column code words`` lines."""
    for path in sorted(CASES.glob("*.txt")):
        snippet: list[str] = []
        answers: list[str] = []
        start = 0
        for number, line in enumerate([*path.read_text("utf-8").splitlines(), ">"], start=1):
            if line.startswith(">"):
                if answers:
                    yield _case(path.stem, start, snippet, answers)
                    snippet, answers = [], []
                start = start if snippet else number
                snippet.append(line[2:])
            elif line[:1] in "=!" and line:
                answers.append(line)


def _case(kind: str, number: int, snippet: list[str], answers: list[str]) -> Case:
    trees = [line[2:] for line in answers if line[0] == "="]
    errors = []
    for line in answers:
        if line[0] == "!":
            place, code, words = line[2:].split(" ", 2)
            row, column = place.split(":")
            errors.append((int(row), int(column), code, words))
    tree = "\n".join(trees) if trees else None
    return Case(kind, number, "\n".join(snippet), tree, tuple(errors))


def meaning(kind: str, file: ast.File) -> str:
    """The dump of the part of the tree that the snippet of a frame became."""
    if kind == "file":
        return dump(file)
    decl: Any = file.decls[0]
    members = decl.members
    if kind in ("reference", "scan", "expression"):
        members = members[0].body
        if kind == "scan":
            members = members[0].body
        if kind == "expression":
            return dump(members[0].value)
    elif kind in ("rung", "seat", "stage", "loop", "use", "discover"):
        members = members[0].members
    elif kind in ("stage_use", "coverage"):
        members = members[0].members[0].members
    return "\n".join(dump(member) for member in members)


# ---------------------------------------------------------------- dumps


def dump(node: Any) -> str:
    """A node without its spans, on one line: names bare, absent parts left out."""
    match node:
        case ast.Name():
            return node.id
        case ast.Number():
            return node.text
        case ast.HostPath():
            return "".join(
                part.text if part.text is not None else f"{{{dump(part.expr)}}}"
                for part in node.parts
            )
        case ast.Docstring():
            return f"doc({node.text!r})"
        case ast.String():
            return repr(node.value)
        case ast.Binary():
            return f"({dump(node.left)} {node.op} {dump(node.right)})"
        case ast.Unary():
            return f"({node.op} {dump(node.operand)})"
        case ast.Field():
            return f"{dump(node.base)}.{node.name.id}"
        case ast.ErrorNode():
            return "ERROR"
        case Decimal() | str() | int() | bool():
            return str(node)
        case tuple():
            return f"[{', '.join(dump(item) for item in node)}]"
        case None:
            return "-"
    parts = [
        f"{field.name}={dump(value)}"
        for field in dataclasses.fields(node)
        if not isinstance(value := getattr(node, field.name), Span)
        and value is not None
        and value is not False
        and value != ()
    ]
    return f"{type(node).__name__}({', '.join(parts)})"

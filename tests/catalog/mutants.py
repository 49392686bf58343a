"""Every small change to a spec: what is declared is left out, or is something else.

A mutant is made on the syntax tree, by the types of its fields alone, so nothing that the
language can say is forgotten. Formatting, comments and spans are no part of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from frtspec.ir import words
from frtspec.ir.types import DTYPES
from frtspec.syntax import ast

SWAPPED = {
    "+": "-", "-": "+", "*": "/", "/": "*", "//": "/", "%": "*", "**": "*", "@": "*", "??": "+",
    "<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "==",
    "and": "or", "or": "and", "not": "-",
}  # fmt: skip
"""Operators -> what each becomes."""

WORDS = {
    "in": "out", "out": "in", "input": "output", "output": "input", "arg": "input",
    "boundary": "latency", "latency": "boundary",
    "at": "around", "around": "at",  # a boundary of discovery
    "hub": "local", "local": "hub", "torch": "emulate", "emulate": "torch",
    "let": "point", "point": "let", "yield": "let", "next": "emit", "emit": "next",
}  # fmt: skip
"""Words that the tree keeps as text -> another one that is allowed there."""

NEVER_EMPTY = frozenset(
    [
        "Compare.links",
        "HostPath.parts",
        "Index.items",
        "Is.values",
        "OnlyDecl.values",
        "PartDecl.results",
        "StepDecl.names",
        "VariantDecl.values",
    ]
)
"""Lists that the grammar gives at least one item."""

NOT_CONTRACT = frozenset({"span", "raw", "edition"})
"""Fields that are no part of what is declared. The edition picks the grammar: whoever reads
the text sees it, not whoever reads the tree."""


@dataclass(frozen=True)
class Mutant:
    """``where``: the way to the changed node, ``structure decoder_ffn/gate 0/metrics[1]``;
    ``what``: the change; ``kind``: class and field it is about."""

    where: str
    what: str
    kind: str
    file: ast.File


def mutants(file: ast.File) -> Iterator[Mutant]:
    """Every mutant of a file that has one changed, removed or flipped thing."""
    for where, what, kind, changed in _changes(file, ""):
        if kind == "SeamText.eager" and "SegmentDecl" in where:
            continue  # only a stage is eager in the grammar
        if kind == "StepDecl.kind" and not what.endswith("-> 'let'"):
            continue  # a step is a let or a yield, and what is prepared stands before them
        if what.startswith("'chunks' ->") and where.endswith("/name/id"):
            continue  # a word of the language where several slots follow it
        yield Mutant(where, what, kind, changed)


def _changes(node: Any, where: str) -> Iterator[tuple[str, str, str, Any]]:
    """(where, what, kind, the node with one change in it)."""
    if isinstance(node, ast.HostPath):
        yield from _paths(node, where)
        return
    hints = _hints(type(node))
    for name in hints:
        value = getattr(node, name)
        kind = f"{type(node).__name__}.{name}"
        here = f"{where}/{name}"
        for step, what, inner_kind, changed in _of_value(node, name, value, hints[name]):
            if kind in NEVER_EMPTY and changed == ():
                continue
            full = here + step
            yield full, what, inner_kind or kind, dataclasses.replace(node, **{name: changed})


def _paths(path: ast.HostPath, where: str) -> Iterator[tuple[str, str, str, Any]]:
    """A path with another last word, without it, and with each expression changed; its
    text and its parts say the same."""
    longer = dataclasses.replace(path.parts[-1], text="x", expr=None)
    changed = [(f"{path.text}x", (*path.parts, longer))]
    for place, part in enumerate(path.parts):
        if part.text is not None:
            other = part.text.replace(part.text.strip("."), "other", 1)
            text = path.text.replace(part.text, other, 1)
            new = dataclasses.replace(part, text=other)
            changed.append((text, (*path.parts[:place], new, *path.parts[place + 1 :])))
    for text, parts in changed:
        new_path = dataclasses.replace(path, text=text, parts=parts)
        yield where, f"{path.text} -> {text}", "HostPath", new_path
    for place, part in enumerate(path.parts):
        for step, what, kind, new in _changes(part.expr, "") if part.expr is not None else ():
            inner = dataclasses.replace(part, expr=new)
            parts = (*path.parts[:place], inner, *path.parts[place + 1 :])
            yield f"{where}[{place}]{step}", what, kind, dataclasses.replace(path, parts=parts)


def _of_value(
    node: Any, name: str, value: Any, hint: Any
) -> Iterator[tuple[str, str, str | None, Any]]:
    if dataclasses.is_dataclass(value):
        if NoneType in get_args(hint):
            yield "", f"without {_short(value)}", None, None
        yield from _changes(value, "")
    elif isinstance(value, tuple):
        yield from _of_tuple(value, hint)
    elif isinstance(value, bool):
        yield "", f"{value} -> {not value}", None, not value
    elif isinstance(value, str):
        other = _other_text(node, name, value)
        if other is not None:
            yield "", f"{value!r} -> {other!r}", None, other
    elif isinstance(value, int | Decimal) and not isinstance(value, bool):
        yield "", f"{value} -> {value + 1}", None, value + 1
    elif value is not None:
        raise TypeError(f"{type(node).__name__}.{name} holds {type(value).__name__}")


def _of_tuple(value: tuple[Any, ...], hint: Any) -> Iterator[tuple[str, str, str | None, Any]]:
    """Of a list, each item is left out in turn; a pair stays a pair."""
    kinds = next((a for a in (hint, *get_args(hint)) if get_origin(a) is tuple), tuple[Any, ...])
    inner = get_args(kinds)
    is_list = len(inner) == 2 and inner[1] is Ellipsis
    for place, item in enumerate(value):
        step = f"[{place}]"
        of_item = inner[0] if is_list else inner[place]
        rest = value[:place] + value[place + 1 :]
        if is_list:
            yield step, f"without {_short(item)}", None, rest
        elif item is not None and NoneType in get_args(of_item):
            yield step, f"without {_short(item)}", None, (*value[:place], None, *value[place + 1 :])
        if dataclasses.is_dataclass(item):
            label = f"{step}{_label(item)}"
            for where, what, kind, changed in _changes(item, ""):
                yield label + where, what, kind, (*value[:place], changed, *value[place + 1 :])
        elif isinstance(item, tuple):
            for where, what, kind, changed in _of_tuple(item, of_item):
                yield step + where, what, kind, (*value[:place], changed, *value[place + 1 :])
        elif isinstance(item, str):
            other = WORDS.get(item, f"{item}_x")
            yield step, f"{item!r} -> {other!r}", None, (*value[:place], other, *value[place + 1 :])


def _other_text(node: Any, name: str, value: str) -> str | None:
    if isinstance(node, ast.Number):  # its value is changed, and its text with it
        return None
    if isinstance(node, ast.Name):
        return _other_name(value)
    if value in SWAPPED:
        return SWAPPED[value]
    if value in WORDS:
        return WORDS[value]
    return f"{value}_x" if value.isidentifier() else f"{value} x"


def _other_name(value: str) -> str:
    """Another word of the same closed list where the name is one, else a new name."""
    for table in (words.POINT_KINDS, words.GATE_KINDS, words.METRICS, DTYPES, words.STATUSES):
        if value in table:
            names = list(table)
            return names[(names.index(value) + 1) % len(names)]
    return f"{value}_x"


@cache
def _hints(node: type) -> dict[str, Any]:
    hints = get_type_hints(node)
    return {f.name: hints[f.name] for f in dataclasses.fields(node) if f.name not in NOT_CONTRACT}


def _label(node: Any) -> str:
    name = getattr(node, "name", None)
    text = name.id if isinstance(name, ast.Name) else name if isinstance(name, str) else None
    return f" {type(node).__name__}" + (f" {text}" if text else "")


def _short(value: Any) -> str:
    return _label(value).strip() if dataclasses.is_dataclass(value) else repr(value)

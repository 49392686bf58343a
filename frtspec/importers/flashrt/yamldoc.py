"""YAML as a tree with spans: what PyYAML's own loader throws away, and what it lets pass.

A key that stands twice in one mapping, an alias, a document behind the first: the usual
loader takes them without a word. Here they are findings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile, Span

UNREADABLE, TWICE = "FRT0881", "FRT0882"

DEEPEST = 40
"""Levels of nesting; the catalog's own files have six."""

LONGEST = 100_000
"""Characters; the catalog's own files have four thousand."""

_STR, _INT, _FLOAT = "tag:yaml.org,2002:str", "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_BOOL, _NULL = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:null"
_AS_TEXT = frozenset(f"tag:yaml.org,2002:{name}" for name in ("timestamp", "merge", "value"))

Plain = str | int | float | bool | None


@dataclass(frozen=True)
class Scalar:
    """A plain value. ``text``: as it was written, without its quotes."""

    value: Plain
    text: str
    span: Span


@dataclass(frozen=True)
class Seq:
    items: tuple[Value, ...]
    span: Span


@dataclass(frozen=True)
class Map:
    """``entries`` in order, every key a text and once; ``span`` is the first key's line."""

    entries: tuple[tuple[Scalar, Value], ...]
    span: Span

    def get(self, name: str) -> Value | None:
        return next((value for key, value in self.entries if key.text == name), None)

    def key(self, name: str) -> Scalar | None:
        return next((key for key, _ in self.entries if key.text == name), None)

    def names(self) -> list[str]:
        return [key.text for key, _ in self.entries]

    def __iter__(self) -> Iterator[tuple[Scalar, Value]]:
        return iter(self.entries)


Value = Scalar | Seq | Map


def plain(value: Value) -> object:
    """The value as lists, dicts and scalars."""
    match value:
        case Scalar(value=held):
            return held
        case Seq(items=items):
            return [plain(item) for item in items]
        case Map(entries=entries):
            return {key.text: plain(item) for key, item in entries}


def kind(value: Value | None) -> str:
    """What a value is, in words for a message."""
    match value:
        case None | Scalar(value=None):
            return "nothing"
        case Scalar(value=bool()):
            return "true or false"
        case Scalar(value=int() | float()):
            return "a number"
        case Scalar():
            return "a text"
        case Seq():
            return "a list"
        case Map():
            return "a mapping"


def read(source: SourceFile) -> tuple[Map | None, list[Diagnostic]]:
    """The one mapping that a file holds, and what is wrong with it; never raises.

    A key that stands twice is an error, and the first keeps its place.
    """
    reader = _Reader(source)
    if len(source.text) > LONGEST:
        why = f"{len(source.text)} characters are no binding or structure: at most {LONGEST}"
        return None, [Diagnostic(UNREADABLE, why, Span(source.path, 0, 0))]
    try:
        root = yaml.compose(source.text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        return None, [reader.broken(error)]
    except (yaml.YAMLError, ValueError) as error:
        why = f"no YAML: {_first_line(str(error))}"
        return None, [Diagnostic(UNREADABLE, why, Span(source.path, 0, 0))]
    except RecursionError:
        return None, [reader.too_deep(Span(source.path, 0, 0))]
    if root is None:
        return None, [Diagnostic(UNREADABLE, "the file is empty", Span(source.path, 0, 0))]
    value = reader.value(root, 0)
    if not isinstance(value, Map):
        if not reader.found:
            message = f"the file holds {kind(value)}, not a mapping"
            reader.found.append(Diagnostic(UNREADABLE, message, reader.span(root)))
        return None, reader.found
    return value, reader.found


class _Reader:
    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.found: list[Diagnostic] = []
        self.seen: set[int] = set()

    def span(self, node: yaml.Node) -> Span:
        """A scalar's own text; of a collection its first line, since it may end lines later."""
        start, end = node.start_mark.index, node.end_mark.index
        if not isinstance(node, yaml.ScalarNode):
            line_end = self.source.text.find("\n", start)
            end = min(end, line_end if line_end >= 0 else end)
        return Span(self.source.path, start, end)

    def value(self, node: yaml.Node, depth: int) -> Value:
        """The node as a value; what can't be one is reported and stands as nothing."""
        span = self.span(node)
        if depth > DEEPEST:
            self.found.append(self.too_deep(span))
            return Scalar(None, "", span)
        if id(node) in self.seen:
            message = "an alias (`*name`) stands here"
            help = "write the value out: what an alias stands for is easily missed"
            self.found.append(Diagnostic(UNREADABLE, message, span, help=help))
            return Scalar(None, "", span)
        self.seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return Map(tuple(self.entries(node, depth)), span)
        if isinstance(node, yaml.SequenceNode):
            return Seq(tuple(self.value(item, depth + 1) for item in node.value), span)
        return self.scalar(node, span)

    def entries(self, node: yaml.MappingNode, depth: int) -> Iterator[tuple[Scalar, Value]]:
        first: dict[str, Span] = {}
        for key, item in node.value:
            span = self.span(key)
            value = self.value(item, depth + 1)
            if not isinstance(key, yaml.ScalarNode):
                message = "a key has to be a text"
                self.found.append(Diagnostic(UNREADABLE, message, span))
                continue
            if key.value in first:
                self.found.append(
                    Diagnostic(
                        TWICE,
                        f"the key `{key.value}` stands twice in one mapping",
                        span,
                        notes=((first[key.value], "the first one is here"),),
                        help="most readers take the last without a word; keep one",
                    )
                )
                continue
            first[key.value] = span
            yield Scalar(key.value, key.value, span), value

    def scalar(self, node: yaml.Node, span: Span) -> Scalar:
        text: str = node.value
        try:
            return Scalar(_resolved(node.tag, text), text, span)
        except ValueError as error:
            why = f"`{_cut(text)}` can't be read: {_first_line(str(error))}"
            self.found.append(Diagnostic(UNREADABLE, why, span))
            return Scalar(None, text, span)

    def broken(self, error: yaml.MarkedYAMLError) -> Diagnostic:
        mark = error.problem_mark or error.context_mark
        at = mark.index if mark else 0
        why = _first_line(error.problem or error.context or "no YAML")
        return Diagnostic(UNREADABLE, f"no YAML: {why}", Span(self.source.path, at, at))

    def too_deep(self, span: Span) -> Diagnostic:
        return Diagnostic(UNREADABLE, f"nested more than {DEEPEST} levels deep", span)


def _resolved(tag: str, text: str) -> Plain:
    """The value behind a resolved tag; dates and the like stay text."""
    if tag == _NULL:
        return None
    if tag == _BOOL:
        return text.lower() in ("yes", "true", "on")
    if tag == _INT:
        return int(text.replace("_", ""), 0)
    if tag == _FLOAT:
        lowered = text.lower().replace("_", "")
        return float(lowered.replace(".inf", "inf").replace(".nan", "nan"))
    if tag == _STR or tag in _AS_TEXT:
        return text
    raise ValueError(f"the tag `{_cut(tag)}` means nothing here")


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return _cut(lines[0]) if lines else "it has no text"


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}…"

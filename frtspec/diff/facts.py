"""What changed between two versions of a declaration, as plain records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from frtspec.diag.source import Span
from frtspec.ir.canon import canonical


@dataclass(frozen=True)
class Subject:
    """A declaration by kind, name (of an impl with its target) and version."""

    kind: str
    name: str
    version: int | None = None

    def __str__(self) -> str:
        name = "" if self.name == self.kind else f" {self.name}"
        if self.version is None:
            return f"{self.kind}{name}"
        if self.kind == "impl":  # its name ends in the version of its structure
            return f"{self.kind}{name} (version {self.version})"
        return f"{self.kind}{name} v{self.version}"


@dataclass(frozen=True)
class Fact:
    """One change.

    rule     its row in ``frtspec.diff.rules``
    subject  the declaration, as the newer side names it
    item     what in it: ``point act_after_mul``; never a position in a list
    detail   the change in one clause, both sides named
    old      its place in the older side, None where it is new
    new      its place in the newer side, None where it is gone
    """

    rule: str
    subject: Subject
    item: str
    detail: str
    old: Span | None = None
    new: Span | None = None
    help: str | None = None

    @property
    def id(self) -> str:
        """Stable as long as the names are."""
        return f"{self.rule}:{self.subject}" + (f":{self.item}" if self.item else "")


@dataclass
class Found:
    """Facts about one pair of declarations, in the order in which they were found."""

    subject: Subject
    facts: list[Fact] = field(default_factory=list)

    def add(
        self,
        rule: str,
        item: str,
        detail: str,
        old: Any = None,
        new: Any = None,
        help: str | None = None,
    ) -> None:
        """``old`` and ``new``: spans, or what has one."""
        self.facts.append(Fact(rule, self.subject, item, detail, _span(old), _span(new), help))


def _span(value: Any) -> Span | None:
    if value is None or isinstance(value, Span):
        return value
    found = getattr(value, "span", None)
    if found is None:
        origin = getattr(value, "origin", None)
        found = None if origin is None else origin.span
    return found


Comparator = Callable[[Any, Any, Found], None]


IDENTITY = frozenset({"is", "name", "version", "structure", "seam"})
"""What tells declarations apart, and is no fact about them."""


def by_field(
    old: Any,
    new: Any,
    found: Found,
    table: Mapping[str, Comparator],
    other: str,
    elsewhere: frozenset[str] = frozenset(),
) -> None:
    """Runs the comparator of each field whose canonical form moved. What none of them can
    name is told as ``other``, so that no change of a contract goes unnamed.

    elsewhere  fields that the caller compares itself
    """
    mine, theirs = canonical(old), canonical(new)
    for name in dict.fromkeys((*table, *mine, *theirs)):
        if name in IDENTITY or name in elsewhere or mine.get(name) == theirs.get(name):
            continue
        before = len(found.facts)
        if name in table:
            table[name](old, new, found)
        if len(found.facts) == before:
            found.add(other, name, f"`{name}` is not what it was", old, new)


def same(old: Any, new: Any) -> bool:
    """Whether two pieces of IR mean the same."""
    return bool(canonical(old) == canonical(new))


def named(items: Any) -> dict[str, Any]:
    return {item.name: item for item in items}

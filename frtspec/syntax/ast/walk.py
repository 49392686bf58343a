"""Going through a tree."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

_PLAIN = frozenset({"Span", "str", "int", "bool", "Decimal", "str | None", "int | None"})
"""Annotations of fields that hold no node."""

_fields: dict[type, tuple[str, ...] | None] = {}
"""Class -> its fields that may hold nodes, last first; None where it is no node."""


def inside(nodes: Iterable[object]) -> Iterator[object]:
    """Every node in these trees, outermost first, in the order of the text."""
    stack = list(nodes)[::-1]
    known = _fields
    while stack:
        node = stack.pop()
        cls = node.__class__
        if cls is tuple:
            stack.extend(node[::-1])  # type: ignore[index]
            continue
        names = known[cls] if cls in known else _learn(cls)
        if names is None:
            continue
        yield node
        for name in names:
            value = getattr(node, name)
            if value is not None:
                stack.append(value)


def _learn(cls: type) -> tuple[str, ...] | None:
    names = None
    if dataclasses.is_dataclass(cls) and cls.__name__ != "Span":
        fields = reversed(dataclasses.fields(cls))
        names = tuple(f.name for f in fields if f.type not in _PLAIN)
    _fields[cls] = names
    return names

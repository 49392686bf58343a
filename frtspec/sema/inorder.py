"""Structures in the order in which they can be built: what stands in a slot first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile
from frtspec.sema.sizes import whole
from frtspec.syntax import ast

Declared = tuple[SourceFile, ast.StructureDecl]
Open = frozenset[str]
Key = tuple[str, int | None]


@dataclass
class _Visit:
    """A declaration on the way down: its slots still to be looked at, the names of structures
    that it can't have."""

    item: Declared
    slots: Iterator[tuple[ast.SlotDecl, ast.StructRef, Declared]]
    opened: set[str] = field(default_factory=set)


def inner_first(
    declared: Sequence[tuple[SourceFile, ast.Decl]], found: list[Diagnostic]
) -> list[tuple[SourceFile, ast.StructureDecl, Open]]:
    """The declarations, each behind those that its slots name.

    A circle is reported once and opened where it closes; with each declaration come the
    names of structures that it can't have for that.
    """
    nodes: list[Declared] = [(s, n) for s, n in declared if isinstance(n, ast.StructureDecl)]
    by_key: dict[Key, list[Declared]] = {}
    for source, node in nodes:
        number = None if node.version is None else whole(node.version.value)
        for key in ((node.name.id, number), (node.name.id, None)):
            by_key.setdefault(key, []).append((source, node))
    done: set[int] = set()
    out: list[tuple[SourceFile, ast.StructureDecl, Open]] = []
    for root in nodes:
        path = [_Visit(root, _inner(root[1], by_key))] if id(root[1]) not in done else []
        while path:  # a chain of slots may be longer than Python's stack
            here = path[-1]
            step = next(here.slots, None)
            if step is None:
                path.pop()
                done.add(id(here.item[1]))
                out.append((*here.item, frozenset(here.opened)))
                continue
            slot, wanted, inner = step
            if any(inner[1] is visit.item[1] for visit in path):
                found.append(_circle(slot, inner[1]))
                here.opened.add(wanted.name.id)
            elif id(inner[1]) not in done:
                path.append(_Visit(inner, _inner(inner[1], by_key)))
    return out


def _inner(
    node: ast.StructureDecl, by_key: dict[Key, list[Declared]]
) -> Iterator[tuple[ast.SlotDecl, ast.StructRef, Declared]]:
    """Each declaration that a slot of this one may mean."""
    for slot in node.members:
        if isinstance(slot, ast.SlotDecl) and slot.structure is not None:
            wanted = slot.structure
            number = None if wanted.version is None else whole(wanted.version.value)
            for inner in by_key.get((wanted.name.id, number), ()):
                yield slot, wanted, inner


def _circle(slot: ast.SlotDecl, node: ast.StructureDecl) -> Diagnostic:
    return Diagnostic(
        "FRT0322",
        f"structure `{node.name.id}` would be made of itself",
        slot.name.span,
        notes=((node.name.span, "declared here"),),
        help="a structure is made of smaller ones: leave this slot out, or make it a part",
    )

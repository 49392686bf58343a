"""Structures in the order in which they can be built: what stands in a slot first."""

from __future__ import annotations

from collections.abc import Sequence

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile
from frtspec.sema.sizes import whole
from frtspec.syntax import ast

Declared = tuple[SourceFile, ast.StructureDecl]
Open = frozenset[str]
Key = tuple[str, int | None]


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

    def visit(item: Declared, path: tuple[ast.StructureDecl, ...]) -> None:
        node = item[1]
        if id(node) in done:
            return
        opened: set[str] = set()
        for slot in _inner(node):
            assert slot.structure is not None
            wanted = slot.structure
            number = None if wanted.version is None else whole(wanted.version.value)
            for inner in by_key.get((wanted.name.id, number), ()):
                if inner[1] in (*path, node):
                    found.append(_circle(slot, inner[1]))
                    opened.add(wanted.name.id)
                else:
                    visit(inner, (*path, node))
        if id(node) not in done:
            done.add(id(node))
            out.append((*item, frozenset(opened)))

    for item in nodes:
        visit(item, ())
    return out


def _inner(node: ast.StructureDecl) -> list[ast.SlotDecl]:
    return [m for m in node.members if isinstance(m, ast.SlotDecl) and m.structure is not None]


def _circle(slot: ast.SlotDecl, node: ast.StructureDecl) -> Diagnostic:
    return Diagnostic(
        "FRT0322",
        f"structure `{node.name.id}` would be made of itself",
        slot.name.span,
        notes=((node.name.span, "declared here"),),
        help="a structure is made of smaller ones: leave this slot out, or make it a part",
    )

"""Seams: proper cuts of a reference, and what lies inside each.

A seam is what one host module stands for, so what lies between its ends must be
computed from the ends, slots and params alone, and nothing outside may look in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frtspec.ir import expr as ir
from frtspec.ir.decl import MetricBound, Seam, Structure
from frtspec.ir.walk import conditions, defines, exprs, reads, refs, statements, tests, variants
from frtspec.sema.context import Context, listing
from frtspec.syntax import ast

NO_CUT = "FRT0311"


@dataclass(frozen=True)
class _Cut:
    """Positions of statements inside, and of the last definition of each end."""

    inside: tuple[int, ...]
    sources: tuple[str, ...]
    targets: tuple[str, ...]


def build_seam(
    context: Context, structure: Structure, node: ast.SeamDecl, gates: tuple[MetricBound, ...]
) -> Seam | None:
    """The seam, or None when it was reported as no cut."""
    last = _definitions(structure.reference)
    known = [*last, *(port.name for port in structure.inputs)]
    right = True
    for name in (*node.sources, *node.targets):
        if name.id not in known:
            context.unknown("value", name, known)
            right = False
    for name in node.targets:
        if name.id in known and name.id not in last:
            context.error(NO_CUT, f"seam ends at `{name.id}`, which is an input", name.span)
            right = False
    if not right:
        return None
    cut = _cut(context, structure, node, last)
    if cut is None or not _closed(context, structure, node, cut, last):
        return None
    if not _whole(context, structure, node, cut):
        return None
    body = tuple(structure.reference[k] for k in cut.inside)
    read = {name for stmt in body for name in reads(stmt)}
    asked = {t.name for t in tests(body) if isinstance(t, ir.IsPresent)}
    axes = variants(body)
    own = {s.name for s in statements(body) if isinstance(s, ir.Let) and s.kind == "point"}
    own |= {*cut.sources, *cut.targets}
    return Seam(
        name=node.name.id,
        sources=cut.sources,
        targets=cut.targets,
        gates=gates,
        body=body,
        slots=tuple(s.name for s in structure.slots if s.name in read | asked),
        points=tuple(p.name for p in structure.points if p.name in own),
        variants=tuple(v.name for v in structure.variants if v.name in axes),
        params=tuple(p.name for p in structure.params if p.name in read),
        span=node.span,
    )


def _whole(context: Context, structure: Structure, node: ast.SeamDecl, cut: _Cut) -> bool:
    """Whether nothing inside is computed by the host."""
    body = [structure.reference[k] for k in cut.inside]
    for ref in refs(body):
        if ref.kind == "part":
            context.error(
                NO_CUT,
                f"seam `{node.name.id}` holds the part `{ref.name}`, which stays the host's",
                node.name.span,
                notes=((ref.span, f"`{ref.name}` is called here"),),
                help="end the seam before it",
            )
            return False
    return True


def _definitions(body: Sequence[ir.Stmt]) -> dict[str, list[int]]:
    """Value name -> positions of the statements that define it, in order."""
    out: dict[str, list[int]] = {}
    for position, stmt in enumerate(body):
        for name in sorted(defines(stmt)):
            out.setdefault(name, []).append(position)
    return out


def _before(places: list[int], position: int) -> list[int]:
    """The definitions that a read at ``position`` may see: from the last unconditional on."""
    return [k for k in places if k < position]


def _cut(
    context: Context, structure: Structure, node: ast.SeamDecl, last: dict[str, list[int]]
) -> _Cut | None:
    """Walk back from the targets to the sources; every path has to end in a source."""
    body = structure.reference
    sources, targets = [n.id for n in node.sources], [n.id for n in node.targets]
    ports = {p.name for p in structure.inputs}
    inside: set[int] = set()
    met: set[str] = set()
    todo = [k for name in targets for k in last[name]]
    right = True
    while todo:
        position = todo.pop()
        if position in inside:
            continue
        inside.add(position)
        asked = {t.name for t in tests([body[position]]) if isinstance(t, ir.IsPresent)}
        for name in sorted(reads(body[position]) | asked):
            if name in sources and all(k < position for k in last.get(name, ())):
                met.add(name)
            elif name in ports:
                right = False
                context.error(
                    NO_CUT,
                    f"seam `{node.name.id}` also depends on the input `{name}`",
                    node.name.span,
                    notes=((body[position].span, f"`{name}` is read here"),),
                    help=f"add `{name}` to `from`, or move an end of the seam",
                )
                ports.discard(name)
            else:
                todo += _before(last.get(name, []), position)
    broken = any(isinstance(e, ir.Invalid) for e in exprs([body[k] for k in inside]))
    for source in node.sources:
        if source.id not in met and right and not broken:
            right = False
            context.error(
                NO_CUT,
                f"seam `{node.name.id}` does not depend on `{source.id}`",
                source.span,
                help=f"leave it out: {listing(targets)} can be computed without it",
            )
    return _Cut(tuple(sorted(inside)), tuple(sources), tuple(targets)) if right else None


def _closed(
    context: Context,
    structure: Structure,
    node: ast.SeamDecl,
    cut: _Cut,
    last: dict[str, list[int]],
) -> bool:
    """Whether nothing outside reads a value from inside other than the targets."""
    inner = {name for k in cut.inside for name in defines(structure.reference[k])}
    inner -= {*cut.targets, *cut.sources}
    for position, stmt in enumerate(structure.reference):
        if position in cut.inside:
            continue
        asked = {
            t.name
            for t in conditions(stmt.when if isinstance(stmt, ir.Let) else None)
            if isinstance(t, ir.IsPresent)
        }
        for name in sorted((reads(stmt) | asked) & inner):
            if any(k in cut.inside for k in _before(last[name], position)):
                context.error(
                    NO_CUT,
                    f"seam `{node.name.id}` is no cut: `{name}` is computed inside and read outside",
                    node.name.span,
                    notes=((stmt.span, f"`{name}` is read here"),),
                    help=f"add `{name}` to `to`, or move an end of the seam",
                )
                return False
    return True

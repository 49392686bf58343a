"""The dataflow of a structure's reference as a graph: what is drawn of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from frtspec.diag.source import SourceFile, Span
from frtspec.dims import shape_text
from frtspec.docgen.maths import condition
from frtspec.ir import expr as ir
from frtspec.ir.decl import Port, Slot, Structure
from frtspec.ir.walk import exprs_of, parts, reads

Kind = Literal["input", "slot", "value", "point", "output"]


@dataclass(frozen=True)
class Node:
    """One box. ``lines``: the text in it; ``when``: the condition it stands under, or
    None; ``spans``: the brackets that it lies in."""

    key: int
    kind: Kind
    title: str
    lines: tuple[str, ...]
    when: str | None
    spans: tuple[str, ...] = ()


@dataclass(frozen=True)
class Edge:
    """``maybe``: the value flows in some combinations only."""

    source: int
    target: int
    maybe: bool


@dataclass(frozen=True)
class Flow:
    """``spans``: what brackets name: the seams of a structure, the loops of a pipeline."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    spans: tuple[str, ...]


def flow(structure: Structure, sources: Mapping[str, SourceFile]) -> Flow:
    """The graph of the reference with all its variants, in the order of the spec.

    sources  the texts that the spans of the structure point into
    """
    made = _Flow(structure, sources)
    for port in structure.inputs:
        made.item(port, "input")
    for slot in structure.slots:
        made.item(slot, "slot")
    made.body(structure.reference, None)
    used = {end for edge in made.edges for end in (edge.source, edge.target)}
    nodes = tuple(node for node in made.nodes if node.key in used or node.kind == "output")
    return Flow(
        nodes, tuple(dict.fromkeys(made.edges)), tuple(f"seam {s.name}" for s in structure.seams)
    )


@dataclass
class _Flow:
    structure: Structure
    sources: Mapping[str, SourceFile]
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    holders: dict[str, tuple[tuple[int, bool], ...]] = field(default_factory=dict)
    """Name -> the boxes that may hold its value now, and whether only in some variants."""

    def item(self, item: Port | Slot, kind: Kind) -> None:
        shape = "" if item.shape is None else shape_text(item.shape)
        if isinstance(item, Slot) and item.inner is not None:
            seam = f".{item.inner.seam}" if item.inner.seam else ""
            shape = f"structure {item.inner.name}{seam} {item.inner.version}"
        index = f"[{item.index}]" if item.index else ""
        when = None if item.when is None else condition(item.when)
        if item.optional and when is None:
            when = "where given"
        key = self.node(kind, f"{item.name}{index}", (shape,) if shape else (), when)
        self.holders[item.name] = ((key, False),)

    def node(
        self,
        kind: Kind,
        title: str,
        lines: tuple[str, ...],
        when: str | None,
        span: Span | None = None,
    ) -> int:
        cuts = () if span is None else self.seams_at(span)
        self.nodes.append(Node(len(self.nodes), kind, title, lines, when, cuts))
        return len(self.nodes) - 1

    def seams_at(self, span: Span) -> tuple[str, ...]:
        return tuple(
            f"seam {seam.name}"
            for seam in self.structure.seams
            if any(stmt.span == span for stmt in seam.body)
        )

    # ------------------------------------------------------------ statements

    def body(self, stmts: Iterable[ir.Stmt], index: str | None) -> None:
        for stmt in stmts:
            match stmt:
                case ir.Let():
                    self.let(stmt, index)
                case ir.Each():
                    self.body(stmt.body, stmt.index)
                case ir.Scan():
                    self.scan(stmt)

    def let(self, stmt: ir.Let, index: str | None) -> None:
        kind: Kind = {"point": "point", "yield": "output"}.get(stmt.kind, "value")  # type: ignore[assignment]
        title = stmt.name + (f"[{stmt.index or index}]" if stmt.index or index else "")
        lines = [self.text(stmt.value.span)]
        if stmt.otherwise is not None:
            lines.append(f"otherwise {self.text(stmt.otherwise.span)}")
        when = None if stmt.when is None else condition(stmt.when)
        key = self.node(kind, title, tuple(lines), when, stmt.span)
        chosen = {
            ref.name
            for expr in exprs_of(stmt)
            for part in parts(expr)
            if isinstance(part, ir.Select)
            for _, arm in part.arms
            for ref in parts(arm)
            if isinstance(ref, ir.Ref)
        }
        for name in sorted(_values(stmt)):
            self.read(name, key, stmt.when is not None or name in chosen)
        before = self.holders.get(stmt.name, ()) if stmt.rebinds and stmt.when is not None else ()
        self.holders[stmt.name] = (*((held, True) for held, _ in before), (key, bool(before)))

    def scan(self, stmt: ir.Scan) -> None:
        inner = [self.text(each.span) for each in stmt.body]
        over = ", ".join(name for name, _ in stmt.over)
        key = self.node(
            "value", f"scan {stmt.step} in {stmt.dim}", (f"over {over}", *inner), None, stmt.span
        )
        for name in sorted(reads(stmt)):
            self.read(name, key, False)
        made = {each.name for each in stmt.body if isinstance(each, ir.Let) and each.kind == "emit"}
        for name in {*made, *(carry for carry, _ in stmt.carries)}:
            self.holders[name] = ((key, False),)

    def read(self, name: str, key: int, maybe: bool) -> None:
        for held, only_some in self.holders.get(name, ()):
            self.edges.append(Edge(held, key, maybe or only_some))

    def text(self, span: Span) -> str:
        """The words of the spec at a place, on one line."""
        return " ".join(self.sources[span.path].text[span.start : span.end].split())


def _values(stmt: ir.Let) -> set[str]:
    """What a statement reads the numbers of: not what only lends its dtype to a cast."""
    numbers: set[str] = set()
    stack = list(exprs_of(stmt))
    while stack:
        node = stack.pop()
        match node:
            case ir.Ref():
                numbers.add(node.name)
            case ir.Op(op="cast", args=args):
                stack.append(args[0])
            case ir.Op(args=args):
                stack += args
            case ir.Select(arms=arms):
                stack += [arm for _, arm in arms]
            case ir.EachOf(value=value):
                stack.append(value)
    return numbers & reads(stmt)

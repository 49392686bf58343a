"""What an impl computes: a structure's dataflow, or a part of it, for the variants it serves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from frtspec.codegen.operands import root_of
from frtspec.codegen.specialise import Specialised
from frtspec.diag.source import Span
from frtspec.ir.decl import Impl, Seam, Structure
from frtspec.ir.expr import Each, Let, Ref, Scan, Stmt
from frtspec.ir.types import Tensor, ValueType
from frtspec.ir.walk import reads, statements
from frtspec.sema.liveness import unread


@dataclass(frozen=True)
class Cut:
    """What an impl computes: statements between ``sources`` (arguments, in order) and
    ``targets`` (results, in order). ``repeated``: results that are one per index;
    ``whole``: sources that hold whole numbers."""

    body: tuple[Stmt, ...]
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    repeated: frozenset[str]
    served: Specialised
    whole: frozenset[str] = frozenset()


def cut_of(structure: Structure, impl: Impl, types: Mapping[str, ValueType]) -> Cut:
    """The cut of an impl's seam, or the whole structure, for the variants it serves."""
    numbers = {n for n, t in types.items() if isinstance(t, Tensor) and t.dtype.startswith("int")}
    served = Specialised.of(structure, dict(impl.only))
    seam: Seam | None = structure.seam(impl.seam) if impl.seam else None
    results = seam.targets if seam else tuple(p.name for p in structure.outputs)
    body = without_unread(
        _kept(served.statements(seam.body if seam else structure.reference)), results
    )
    if seam:
        whole = frozenset(numbers & {*seam.sources})
        return Cut(body, seam.sources, seam.targets, frozenset(), served, whole)
    read = {name for stmt in body for name in reads(stmt)}
    inputs = tuple(p.name for p in structure.inputs if p.name in read)
    repeated = frozenset(p.name for p in structure.outputs if p.index)
    targets = tuple(p.name for p in structure.outputs)
    return Cut(body, inputs, targets, repeated, served, frozenset(numbers & {*inputs}))


def _kept(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """The statements without casts of a value to itself (``let h = f32(cast(h, x))``): between
    roundings that an impl states, its arithmetic is float32 throughout."""
    for stmt in body:
        if isinstance(stmt, Let):
            if not _cast_only(stmt):
                yield stmt
        else:
            yield replace(stmt, body=tuple(_kept(stmt.body)))


def without_unread(body: Iterable[Stmt], results: Iterable[str]) -> tuple[Stmt, ...]:
    """The statements without values that only variants read which the impl does not serve."""
    out = tuple(body)
    while dead := unread(out, frozenset(results)):
        gone = {(let.name, let.span) for let in dead}
        out = tuple(_without(out, gone))
    return out


def _without(body: Iterable[Stmt], gone: Collection[tuple[str, Span]]) -> Iterator[Stmt]:
    for stmt in body:
        if not isinstance(stmt, Let):
            yield replace(stmt, body=tuple(_without(stmt.body, gone)))
        elif (stmt.name, stmt.span) not in gone:
            yield stmt


def _cast_only(let: Let) -> bool:
    root = root_of(let.value)
    same = isinstance(root, Ref) and (root.name, root.index) == (let.name, let.index)
    return same and let.kind == "let" and let.otherwise is None


def aliases(cut: Cut) -> dict[str, Ref]:
    """Points that are an argument under another name (``point x_in = x``)."""
    out: dict[str, Ref] = {}
    count = definitions(cut.body)
    walked = {n for s in statements(cut.body) if isinstance(s, Scan) for n, _ in s.over}
    for stmt in cut.body:
        if isinstance(stmt, Let) and stmt.when is None and len(count[stmt.name]) == 1:
            if stmt.name in walked:
                continue
            root = root_of(stmt.value)
            if isinstance(root, Ref) and root.name in cut.sources and stmt.name not in cut.targets:
                out[stmt.name] = root
    return out


def definitions(body: Iterable[Stmt]) -> Mapping[str, list[object]]:
    """Name -> places (spans of top-level statements) that define it, in order."""
    out: dict[str, list[object]] = {}
    for stmt in body:
        for inner in statements([stmt]):
            if isinstance(inner, Let):
                out.setdefault(inner.name, []).append(stmt.span)
    return out


def names_in(cut: Cut) -> frozenset[str]:
    """Every name of a cut: arguments, results, values, steps and what is carried."""
    out = {*cut.sources, *cut.targets}
    for stmt in statements(cut.body):
        match stmt:
            case Let(name=name):
                out.add(name)
            case Each(index=index):
                out.add(index)
            case Scan(step=step, carries=carries):
                out.update((step, *(name for name, _ in carries)))
    return frozenset(out)

"""What the typed program promises to every phase behind the checks, as a table.

The checks report mistakes of users; this finds mistakes of ours. It runs at the border
between the checks and the generator, and in tests over every spec.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from frtspec.ir import decl, pipewords
from frtspec.ir import expr as ir
from frtspec.ir.ops import OPS
from frtspec.ir.walk import defines, exprs, ops, refs, statements

SETTLED = ("axis", "axes", "pair", "equation")
"""Attributes that say which axes an op works on; one of them is there once it is settled."""


@dataclass(frozen=True)
class Promise:
    """One promise about one kind of declaration. ``broken`` yields what breaks it."""

    kind: type
    text: str
    broken: Callable[[Any, decl.Program], Iterator[str]]


def illegal(program: decl.Program) -> tuple[str, ...]:
    """Every broken promise, in words; empty for a program that is as it must be."""
    every: list[Any] = [
        *program.structures.values(),
        *program.impls.values(),
        *program.schemes.values(),
        *program.bindings.values(),
        *program.pipelines.values(),
    ]
    return tuple(
        f"{type(item).__name__} {name}: {row.text}: {what}"
        for item, name in ((item, item.name) for item in every)
        for row in PROMISES
        if isinstance(item, row.kind)
        for what in row.broken(item, program)
    )


def _invalid(item: decl.Structure, _: decl.Program) -> Iterator[str]:
    for expr in exprs(item.reference):
        if isinstance(expr, ir.Invalid):
            yield str(expr.span)


def _undeclared(item: decl.Structure, _: decl.Program) -> Iterator[str]:
    known = {port.name for port in item.inputs} | {slot.name for slot in item.slots}
    known |= {param.name for param in item.params} | {index.name for index in item.indexes}
    known |= {port.scale for port in item.outputs if port.scale}
    known |= {part.name for part in item.parts}
    for stmt in statements(item.reference):
        known |= defines(stmt)
        if isinstance(stmt, ir.Let):
            known.add(stmt.name)
        if isinstance(stmt, ir.Scan):
            known |= {name for name, _ in stmt.carries}
    yield from (ref.name for ref in refs(item.reference) if ref.name not in known)


def _unsettled(item: decl.Structure, _: decl.Program) -> Iterator[str]:
    for op in ops(item.reference):
        if op.op not in OPS or OPS[op.op].axes != "none" and not set(dict(op.attrs)) & set(SETTLED):
            yield op.op


def _unyielded(item: decl.Structure, _: decl.Program) -> Iterator[str]:
    lets = [s for s in statements(item.reference) if isinstance(s, ir.Let)]
    yielded = {s.name for s in lets if s.kind == "yield"}
    yield from (port.name for port in item.outputs if port.name not in yielded)


def _shapeless(item: decl.Structure, _: decl.Program) -> Iterator[str]:
    yield from (s.name for s in item.slots if (s.shape is None) == (s.inner is None))


def _seams(item: decl.Structure, _: decl.Program) -> Iterator[str]:
    spans = {stmt.span for stmt in item.reference}
    slots = {slot.name for slot in item.slots}
    for seam in item.seams:
        if not seam.body or not {stmt.span for stmt in seam.body} <= spans:
            yield f"{seam.name} has a body of its own"
        if not set(seam.slots) <= slots:
            yield f"{seam.name} reads slots that are none"


def _no_target(item: decl.Impl, program: decl.Program) -> Iterator[str]:
    structure = program.structures.get(item.structure)
    if structure is None:
        yield f"{item.structure}"
    elif item.seam is not None and item.seam not in [s.name for s in structure.seams]:
        yield item.seam


def _packs(item: decl.Impl, program: decl.Program) -> Iterator[str]:
    structure = program.structures.get(item.structure)
    known = {slot.name for slot in structure.slots} if structure else set()
    points = {point.name for point in structure.points} if structure else set()
    yield from (slot for pack in item.packs for slot in pack.slots if slot not in known)
    yield from (scale.point for scale in item.scales if scale.point not in points)


def _ladder(item: decl.Impl, _: decl.Program) -> Iterator[str]:
    if not item.rungs and not item.bands:
        yield "nothing runs it"


def _routes(item: decl.Scheme, program: decl.Program) -> Iterator[str]:
    for route in item.routes:
        key = (route.structure, route.structure_version, route.seam, route.use or "")
        if route.use is not None and key not in program.impls:
            yield f"{route.structure} uses {route.use}"


def _seats(item: decl.Binding, program: decl.Program) -> Iterator[str]:
    """What an imported binding leaves open stays open: nothing is ever attached by it."""
    imported = item.status.name == "imported"
    for seat in (seat for group in item.groups for seat in group.seats):
        structure = program.structures.get(seat.structure)
        if structure is None:
            yield f"{seat.name} is of {seat.structure}"
        elif seat.seam is not None and seat.seam not in [s.name for s in structure.seams]:
            yield f"{seat.name} is of the seam {seat.seam}"
        elif not imported and _open_variants(structure, seat):
            yield f"{seat.name} leaves a variant open"


def _open_variants(structure: decl.Structure, seat: decl.Seat) -> set[str]:
    return {v.name for v in structure.variants if v.default is None} - dict(seat.variants).keys()


def _embedded(item: decl.Pipeline, program: decl.Program) -> Iterator[str]:
    yield from (f"{name} v{v}" for name, v in item.embeds if (name, v) not in program.structures)


def _flows(item: decl.Pipeline, _: decl.Program) -> Iterator[str]:
    known = {value.name for value in (*item.flows, *item.states)}
    for stage in item.stages:
        yield from (f"{stage.name}: {v.name}" for v in stage.values if v.name not in known)
    yield from (name for gate in item.gates for name in gate.on if name not in known)


def _loops(item: decl.Pipeline, _: decl.Program) -> Iterator[str]:
    stages = {stage.name for stage in item.stages}
    for loop in item.loops:
        if not loop.runs or not set(loop.runs) <= stages:
            yield loop.name


def _unheld(item: decl.Pipeline, _: decl.Program) -> Iterator[str]:
    yield from (rule.name for rule in item.conform if rule.check not in pipewords.CHECKS)


def _uses(item: decl.Binding, program: decl.Program) -> Iterator[str]:
    seats = {seat.name for group in item.groups for seat in group.seats}
    for use in item.pipelines:
        pipeline = program.pipelines.get(use.pipeline)
        if pipeline is None:
            yield f"{use.pipeline}"
            continue
        bound = {stage.name for stage in use.stages}
        needed = {stage.name for stage in pipeline.stages if not stage.optional}
        if not needed <= bound <= {stage.name for stage in pipeline.stages}:
            yield f"{pipeline.name} is not bound whole"
        for segment in use.coverage.segments if use.coverage else ():
            if segment.stage not in bound or not set(segment.seats) <= seats:
                yield f"segment {segment.name} lies nowhere"


def _undigested(item: Any, _: decl.Program) -> Iterator[str]:
    if len(item.origin.contract_digest) != 64:
        yield "no contract digest"


PROMISES: tuple[Promise, ...] = (
    Promise(decl.Structure, "nothing invalid is left", _invalid),
    Promise(decl.Structure, "every name is declared", _undeclared),
    Promise(decl.Structure, "every op is known and its axes are settled", _unsettled),
    Promise(decl.Structure, "every output is yielded", _unyielded),
    Promise(decl.Structure, "every weight has a shape", _shapeless),
    Promise(decl.Structure, "seams are cuts of the reference", _seams),
    Promise(decl.Impl, "its target is in the program", _no_target),
    Promise(decl.Impl, "packs and scales are of its target", _packs),
    Promise(decl.Impl, "there is a ladder", _ladder),
    Promise(decl.Scheme, "every route ends in an impl", _routes),
    Promise(decl.Binding, "every seat is of a structure in the program", _seats),
    Promise(decl.Binding, "its pipelines are in the program and bound whole", _uses),
    Promise(decl.Pipeline, "what it embeds is in the program", _embedded),
    Promise(decl.Pipeline, "every value is declared", _flows),
    Promise(decl.Pipeline, "every loop runs stages", _loops),
    Promise(decl.Pipeline, "every rule has a check", _unheld),
    Promise(object, "the contract is digested", _undigested),
)

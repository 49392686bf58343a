"""What joins seats: chains, groups and pipelines, checked by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from frtspec.ir import decl as ir
from frtspec.ir import words
from frtspec.ir.types import DTYPES
from frtspec.sema.common import named_once, one_of, version
from frtspec.sema.context import Context, listing
from frtspec.sema.scope import Scope
from frtspec.sema.target import Built
from frtspec.syntax import ast

LINK, PIPELINE, STAGE = "FRT0610", "FRT0901", "FRT0902"


def check_chain(
    context: Context,
    node: ast.ChainDecl,
    names: Scope,
    seats: Mapping[str, ir.Seat],
    structures: Mapping[str, Mapping[int, Built]],
) -> None:
    """Both ends are ports of seats; the wire is a dtype; the facts are known."""
    for (seat, port), direction in ((node.producer, "output"), (node.consumer, "input")):
        if seat.id not in seats:
            if names.find(seat.id) is None:
                context.unknown("seat", seat, seats)
            continue
        name, number = seats[seat.id].structure
        structure = structures[name][number].structure
        ports = structure.outputs if direction == "output" else structure.inputs
        known = [p.name for p in ports]
        if port.id not in known:
            context.unknown(f"{direction} of {name}", port, known)
    if node.producer[0].id == node.consumer[0].id:
        context.error(LINK, "a chain joins two seats", node.span)
    one_of(context, "dtype", node.wire, DTYPES)
    named_once(context, "fact", node.facts)
    for fact in node.facts:
        one_of(context, "fact", fact, words.WIRE_FACTS)


def check_group(context: Context, node: ast.GroupDecl, names: Scope) -> None:
    """The seats exist, each once; the writer is one of the ways to choose one."""
    named_once(context, "seat", node.seats)
    known = [n for n, s in names.names.items() if s.kind == "seat"]
    for seat in node.seats:
        if seat.id not in known:
            context.unknown("seat", seat, known)
    if node.writer.id not in ("first_called", *(s.id for s in node.seats)):
        message = f"`{node.writer.id}` cannot be the writer"
        help = f"first_called, or one of {listing([s.id for s in node.seats])}"
        context.error(LINK, message, node.writer.span, help=help)


def check_pipeline(
    context: Context,
    node: ast.PipelineUse,
    pipelines: Mapping[str, Mapping[int, ast.PipelineDecl]],
    seats: Mapping[str, ir.Seat],
) -> None:
    """The pipeline exists in this version; stages are its stages; seats are seats."""
    by_version = pipelines.get(node.name.id)
    if by_version is None:
        context.unknown("pipeline", node.name, pipelines, code=PIPELINE)
        return
    number = version(context, node.version)
    if number not in by_version:
        known = listing([f"version {k}" for k in sorted(by_version)])
        message = f"pipeline `{node.name.id}` has no version {number}"
        context.error(PIPELINE, message, node.version.span, help=f"there is {known}")
        return
    declared = by_version[number]
    stages = [n.id for n in item_names(declared.members, "stage")]
    for name in item_names(node.members, "stage"):
        if name.id not in stages:
            context.unknown("stage", name, stages, code=STAGE)
    for seat in _seats_named(node.members):
        if seat.id not in seats:
            context.unknown("seat", seat, seats)


def item_names(members: Iterable[object], keyword: str) -> list[ast.Name]:
    """Names of the items of one keyword, at this level."""
    items = [m for m in members if isinstance(m, ast.Item) and m.keyword == keyword]
    return [item.name for item in items if item.name is not None]


def _seats_named(members: Iterable[object]) -> Iterator[ast.Name]:
    """Every name after `seats`, at any depth."""
    for item in members:
        if isinstance(item, ast.Item):
            yield from item.names if item.keyword == "seats" else ()
            yield from _seats_named(item.members)


def check_pipeline_decl(context: Context, node: ast.PipelineDecl) -> None:
    """Stages and windows are named once."""
    for keyword in ("stage", "window", "buffer"):
        named_once(context, keyword, item_names(node.members, keyword))

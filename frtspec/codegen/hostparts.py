"""What an impl of a whole structure calls of the host: its parts, and structures in its slots.

Both are handed to each run by keyword. A part is the host's own code; a structure in a slot
is the host's module there, which may be a seat of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.codegen.unsupported import Unsupported
from frtspec.diag.source import Span
from frtspec.ir.decl import Structure
from frtspec.ir.expr import Attr, Cond, Op, Ref, Stmt
from frtspec.ir.walk import ops


@dataclass(frozen=True)
class Hosted:
    """One thing that is called. ``several``: it gives a tuple; ``inner``: it is a structure."""

    name: str
    when: Cond | None
    several: bool
    inner: bool
    span: Span

    def parameter(self, optional: bool) -> str:
        """``self_attention: ops.Part``"""
        kind = "Parts" if self.several else "Part"
        return f"{self.name}: ops.{kind}" + (" | None = None" if optional else "")


def hosted(structure: Structure) -> list[Hosted]:
    """Parts and structures in slots, in the order of their declarations."""
    found = [
        Hosted(part.name, part.when, len(part.results) > 1, False, part.span)
        for part in structure.parts
    ]
    found += [
        Hosted(slot.name, slot.when, len(slot.inner.outputs) > 1, True, slot.span)
        for slot in structure.slots
        if slot.inner is not None
    ]
    return found


def called(structure: Structure, body: tuple[Stmt, ...]) -> list[Hosted]:
    """What some statements call."""
    calls = [op.args[0] for op in ops(body) if op.op in ("part", "inner")]
    names = {ref.name for ref in calls if isinstance(ref, Ref)}
    return [item for item in hosted(structure) if item.name in names]


def result_of(structure: Structure, name: str, call: Op) -> tuple[tuple[str, Attr], ...]:
    """Which result of an inner structure is meant, as the attributes of a call.

    Raises ``Unsupported`` where its inputs are not given from the first one on.
    """
    inner = next(slot.inner for slot in structure.slots if slot.name == name)
    assert inner is not None
    order = [port.name for port in inner.inputs]
    given = call.attr("given")
    if not isinstance(given, tuple) or list(given) != order[: len(given)]:
        raise Unsupported(f"`{name}`, called with inputs out of order in an impl,", call.span)
    outputs = [port.name for port in inner.outputs]
    if len(outputs) == 1:
        return ()
    return (("result", outputs.index(str(call.attr("output")))),)

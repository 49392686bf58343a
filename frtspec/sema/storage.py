"""Ports that say something about storage: what updates an input, is one, or carries codes."""

from __future__ import annotations

from frtspec.ir import expr as ir
from frtspec.ir.decl import Port, Structure
from frtspec.ir.types import QUANTISED, Tensor
from frtspec.ir.walk import statements
from frtspec.sema.context import Context

STORAGE, WIRE = "FRT0323", "FRT0324"


def check_storage(context: Context, structure: Structure) -> None:
    """Report outputs that can't share what they say they share, and wires without a scale."""
    inputs = {port.name: port for port in structure.inputs}
    for port in (*structure.inputs, *structure.outputs):
        _wire(context, port)
    for port in structure.outputs:
        for word, name in (("updates", port.updates), ("aliases", port.aliases)):
            target = None if name is None else inputs.get(name)
            if target is not None:
                _alike(context, port, target, word)
        if port.aliases in inputs:
            _same_storage(context, structure, port)
    taken: dict[str, Port] = {}
    for port in structure.outputs:
        if port.updates is not None and taken.setdefault(port.updates, port) is not port:
            first = taken[port.updates]
            message = f"`{port.updates}` is updated by `{first.name}` already"
            context.error(STORAGE, message, port.span, notes=((first.span, "here"),))


def _wire(context: Context, port: Port) -> None:
    if (port.dtype in QUANTISED) == (port.scale is not None):
        return
    if port.scale is None:
        message = f"`{port.name}` carries codes of {port.dtype} without their scale"
        help = f"write `: {port.dtype} scale {port.name}_s`"
    else:
        message = f"`{port.name}` is {port.dtype}, which has no scale"
        help = f"leave `scale {port.scale}` out, or carry codes: `: fp8_e4m3 scale {port.scale}`"
    context.error(WIRE, message, port.span, help=help)


def _alike(context: Context, port: Port, target: Port, word: str) -> None:
    """One storage has one shape and one dtype."""
    if port.shape == target.shape and port.dtype == target.dtype and port.index == target.index:
        return
    context.error(
        STORAGE,
        f"`{port.name}` {word} `{target.name}` and is {Tensor(port.shape, port.dtype)}, not "
        f"{Tensor(target.shape, target.dtype)}",
        port.span,
        notes=((target.span, f"`{target.name}` is declared here"),),
        help="one storage has one shape and one dtype",
    )


def _same_storage(context: Context, structure: Structure, port: Port) -> None:
    """What is an input's storage is yielded as that input."""
    for stmt in statements(structure.reference):
        if not isinstance(stmt, ir.Let) or stmt.kind != "yield" or stmt.name != port.name:
            continue
        value = stmt.value
        if isinstance(value, ir.Invalid) or (
            isinstance(value, ir.Ref) and value.kind == "input" and value.name == port.aliases
        ):
            continue
        context.error(
            STORAGE,
            f"`{port.name}` is computed here, so it can't be the storage of `{port.aliases}`",
            stmt.span,
            help=f"write `yield {port.name} = {port.aliases}`, or leave `aliases` out",
        )

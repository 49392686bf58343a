"""Types of a call to an inner structure: its dims found from what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from frtspec.dims import Axis, Poly, Shape, axis, shape_text
from frtspec.ir.decl import Inner, Port
from frtspec.ir.types import ONE, OpError, Tensor, numel


@dataclass
class Unified:
    """``dims``: inner dim -> its size outside; ``lead``: what a dim of rows folds."""

    slot: str
    inner: Inner
    dims: dict[str, Poly] = field(default_factory=dict)
    lead: dict[str, Shape] = field(default_factory=dict)

    def result(self, output: str) -> Tensor:
        port = next(p for p in self.inner.outputs if p.name == output)
        shape: list[Axis] = []
        for item in port.shape:
            if isinstance(item, Poly):
                shape.append(self.outside(item))
            elif item.rows and str(item.alternatives[0]) in self.lead:
                shape += self.lead[str(item.alternatives[0])]
            else:
                shape.append(axis([self.outside(a) for a in item.alternatives], rows=item.rows))
        return Tensor(tuple(shape), port.dtype)

    def of_slots(self) -> dict[str, Poly]:
        """Inner dims that the inner slots are made of, those of their own among them."""
        used = {
            symbol
            for slot in self.inner.slots
            for item in slot.shape or ()
            for symbol in item.symbols()
        }
        return {name: self.outside(Poly.symbol(name)) for name in sorted(used)}

    def size(self, item: Axis) -> Poly | None:
        """An exact inner size in the outer dims."""
        return self.outside(item) if isinstance(item, Poly) else None

    def outside(self, poly: Poly) -> Poly:
        """An inner size in the outer dims; its own dims as ``slot.dim``."""
        own = {s: Poly.symbol(f"{self.slot}.{s}") for s in poly.symbols() if s not in self.dims}
        return poly.subs({**own, **{s: self.dims[s] for s in poly.symbols() if s in self.dims}})


def unify(slot: str, inner: Inner, given: Mapping[str, Tensor]) -> Unified:
    """The inner dims from the tensors handed in. Raises ``OpError`` where one doesn't fit."""
    ports = {port.name: port for port in inner.inputs}
    found = Unified(slot, inner)
    for name, value in given.items():
        port = ports[name]
        if value.dtype != port.dtype:
            message = f"`{name}` of `{slot}` is {port.dtype}, not {value.dtype}"
            raise OpError("dtype", message, "cast it before")
        _match(found, port, value)
    for name, value in given.items():  # sizes made of several dims, once all are known
        for declared, real in _aligned(ports[name], value):
            known = isinstance(declared, Poly) and set(declared.symbols()) <= set(found.dims)
            if known and found.size(declared) != real:
                raise _misfit(slot, ports[name], value)
    return found


def _match(found: Unified, port: Port, value: Tensor) -> None:
    if port.shape and port.shape[0].rows:
        count = len(port.shape) - 1
        if len(value.shape) < count:
            raise _misfit(found.slot, port, value)
        lead = value.shape[: len(value.shape) - count]
        symbol = str(port.shape[0].alternatives[0])
        folded = numel(lead) if lead else ONE
        if found.dims.setdefault(symbol, folded) != folded:
            raise _misfit(found.slot, port, value)
        found.lead.setdefault(symbol, lead)
    elif len(value.shape) != len(port.shape):
        raise _misfit(found.slot, port, value)
    for declared, real in _aligned(port, value):
        if not isinstance(declared, Poly) or not isinstance(real, Poly):
            options = declared.alternatives
            if options and real not in options and len(options) == 1:
                raise _misfit(found.slot, port, value)
            continue
        symbols = declared.symbols()
        if declared == Poly.symbol(symbols[0]) if symbols else False:
            if found.dims.setdefault(symbols[0], real) != real:
                raise _misfit(found.slot, port, value)
        elif not symbols and declared != real:
            raise _misfit(found.slot, port, value)


def _aligned(port: Port, value: Tensor) -> list[tuple[Axis, Axis]]:
    """Declared and real axes from the right, without what rows fold."""
    count = len(port.shape) - (1 if port.shape and port.shape[0].rows else 0)
    if not count:
        return []
    return list(zip(port.shape[-count:], value.shape[-count:], strict=True))


def _misfit(slot: str, port: Port, value: Tensor) -> OpError:
    return OpError(
        "shape",
        f"`{port.name}` of `{slot}` is {shape_text(port.shape)}, not {shape_text(value.shape)}",
    )

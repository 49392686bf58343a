"""Types of what a scan or an index repeats, put together again."""

from __future__ import annotations

from frtspec.dims import Axis, Poly, axis
from frtspec.ir.types import UNKNOWN, Tensor, ValueType


def stacked(value: ValueType, dim: Poly, place: int) -> ValueType:
    """A value emitted at every step, with the scan's axis back in its place."""
    if not isinstance(value, Tensor):
        return UNKNOWN
    k = place if place >= 0 else len(value.shape) + 1 + place
    return Tensor(value.shape[:k] + (dim,) + value.shape[k:], value.dtype)


def summed(value: ValueType, index: str, position: int) -> ValueType | None:
    """The type of ``cat(each i => …)``: the joined axis summed over the index."""
    if not isinstance(value, Tensor):
        return value
    shape = list(value.shape)
    if not -len(shape) <= position < len(shape):
        return value
    total = _sum_axis(shape[position], index)
    shape[position] = total or shape[position]
    still = any(f"[{index}]" in symbol for item in shape for symbol in item.symbols())
    return None if total is None or still else Tensor(tuple(shape), value.dtype)


def _sum_axis(item: Axis, index: str) -> Axis | None:
    """``2*N[i]`` summed over i is ``2*sum(N)``; a fixed size counts once per index."""
    if not isinstance(item, Poly):
        return None
    mark = f"[{index}]"
    total = Poly.const(0)
    for monomial, coefficient in item.terms:
        repeated = [name for name, _ in monomial if name.endswith(mark)]
        term = Poly(((monomial, coefficient),))
        if not repeated:
            total = total + term * Poly.symbol(f"count({index})")
        elif len(repeated) == 1 and dict(monomial)[repeated[0]] == 1:
            name = repeated[0]
            total = total + term.subs({name: Poly.symbol(f"sum({name[: -len(mark)]})")})
        else:
            return None
    return axis((total / item.den,))

"""What a structure costs: operations and bytes at given sizes.

One operation per element for arithmetic and for a transcendental function, two per
multiply and add of a product. Bytes are counted in two ways: ``least`` reads every
input and weight once and writes every output once, as a perfect fusion would;
``unfused`` reads and writes memory at every op.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from frtspec.dims import Poly
from frtspec.ir import expr as ir
from frtspec.ir.decl import Port, Seam, Slot, Structure
from frtspec.ir.opcall import OpCall
from frtspec.ir.opdef import bytes_moved, tensor_bytes
from frtspec.ir.ops import OPS
from frtspec.ir.types import Tensor
from frtspec.ir.walk import ops
from frtspec.sema.combos import Combo, combos
from frtspec.sema.innertypes import Unified
from frtspec.sema.typing import infer

HOST_BITS = 16
"""Width of the host's dtype unless said otherwise."""


@dataclass(frozen=True)
class Cost:
    """Polynomials in the structure's dims. ``flops`` in operations; the others in bytes.

    ``weights`` are the bytes of slots alone, part of ``least``.
    """

    flops: Poly
    least: Poly
    unfused: Poly
    weights: Poly

    def at(self, sizes: Mapping[str, int]) -> CostAt:
        """The numbers for given sizes; those of a repeated dim as ``N[0]``, ``N[1]``…

        Raises ``DimError`` naming a dim that is missing.
        """
        known = _with_counts(sizes, (self.flops, self.least, self.unfused, self.weights))
        return CostAt(
            self.flops.value(known),
            self.least.value(known),
            self.unfused.value(known),
            self.weights.value(known),
        )


@dataclass(frozen=True)
class CostAt:
    """A cost at given sizes: operations and bytes."""

    flops: int
    least: int
    unfused: int
    weights: int

    @property
    def intensity(self) -> float:
        """Operations per byte that a perfect fusion moves."""
        return self.flops / self.least if self.least else 0.0

    def seconds(self, flops_per_second: float, bytes_per_second: float) -> float:
        """The roofline's lower bound on a device."""
        return max(self.flops / flops_per_second, self.least / bytes_per_second)


def cost(
    structure: Structure, combo: Combo, *, seam: Seam | None = None, host_bits: int = HOST_BITS
) -> Cost:
    """The cost of a structure, or of one seam of it, in one combination.

    Inner structures count with what they are called with; of variants that are left open
    the first value counts. Dims of their own are called ``ffn.F``.
    """
    typing = infer(structure, combo)
    inside = None if seam is None else {id(op) for op in ops(_original(structure, seam))}
    flops = unfused = _ZERO
    for op, call, result, times in typing.trace:
        if not isinstance(result, Tensor) or (inside is not None and id(op) not in inside):
            continue
        flops = flops + op_flops(op, call, result) * times
        unfused = unfused + bytes_moved(call.args, result, host_bits) * times
    slots = _present(structure.slots, combo)
    weights = _ZERO
    for op, unified, times in typing.calls:
        if inside is not None and id(op) not in inside:
            continue
        own = _inner_cost(op, unified, host_bits)
        flops = flops + own.flops * times
        unfused = unfused + own.unfused * times
        weights = weights + own.weights
    slots = [item for item in slots if isinstance(item, Slot) and item.inner is None]
    if seam is None:
        ports = [*_present(structure.inputs, combo), *_exist(structure, combo)]
        moved = _item_bytes(ports, host_bits)
    else:
        slots = [slot for slot in slots if slot.name in seam.slots]
        edges = [typing.values.get(name) for name in (*seam.sources, *seam.targets)]
        moved = sum((tensor_bytes(v, host_bits) for v in edges if isinstance(v, Tensor)), _ZERO)
    weights = weights + _item_bytes(slots, host_bits)
    return Cost(_settled(flops), _settled(weights + moved), _settled(unfused), _settled(weights))


def _inner_cost(op: ir.Op, call: Unified, host_bits: int) -> Cost:
    """The cost of one call to an inner structure, in the outer dims."""
    inner = call.inner
    given = set(cast(tuple[str, ...], op.attr("given")))
    pins = set(inner.pins)
    inputs = {port.name for port in inner.whole.inputs}
    chosen = next(
        combo
        for combo in combos(inner.whole)
        if pins <= set(combo.variants)
        and (inner.seam is not None or combo.present & inputs <= given)
    )
    seam = None if inner.seam is None else inner.whole.seam(inner.seam)
    own = cost(inner.whole, chosen, seam=seam, host_bits=host_bits)
    return Cost(*(call.outside(poly) for poly in (own.flops, own.least, own.unfused, own.weights)))


def op_flops(op: ir.Op, call: OpCall, result: Tensor) -> Poly:
    """Operations of one op."""
    return OPS[op.op].flops(call, result)


def _original(structure: Structure, seam: Seam) -> tuple[ir.Stmt, ...]:
    """The statements of the reference that lie in the seam (typing knows them by identity)."""
    spans = {stmt.span for stmt in seam.body}
    return tuple(stmt for stmt in structure.reference if stmt.span in spans)


def _present(items: Iterable[Port | Slot], combo: Combo) -> list[Port | Slot]:
    return [
        item
        for item in items
        if combo.exists(item) and (not item.optional or item.name in combo.present)
    ]


def _exist(structure: Structure, combo: Combo) -> list[Port]:
    return [port for port in structure.outputs if combo.exists(port)]


def _item_bytes(items: Iterable[Port | Slot], host_bits: int) -> Poly:
    """Bytes of ports or slots, repeated ones counted as often as they are there."""
    total = _ZERO
    for item in items:
        size = tensor_bytes(Tensor(item.shape or (), item.dtype or "host"), host_bits)
        total = total + (size if item.index is None else size * Poly.symbol(f"count({item.index})"))
    return total


def _settled(poly: Poly) -> Poly:
    """Sums over an index carried out: ``count(i) * K * N[i]`` is ``K * sum(N)``."""
    total = _ZERO
    for monomial, coefficient in poly.terms:
        powers = dict(monomial)
        for count in [name for name in powers if name.startswith("count(")]:
            mark = f"[{count[6:-1]}]"
            repeated = [name for name in powers if name.endswith(mark)]
            if len(repeated) == 1 and powers[repeated[0]] == powers[count] == 1:
                del powers[count], powers[repeated[0]]
                powers[f"sum({repeated[0][: -len(mark)]})"] = 1
        total = total + Poly(((tuple(sorted(powers.items())), coefficient),))
    return total / poly.den


def _with_counts(sizes: Mapping[str, int], polys: Iterable[Poly]) -> dict[str, int]:
    """The sizes, and how many there are of what is repeated."""
    heads = [name.partition("[")[0] for name in sizes if name.endswith("]")]
    counted = max((heads.count(head) for head in heads), default=0)
    counts = {s for poly in polys for s in poly.symbols() if s.startswith("count(")}
    return dict(sizes) | (dict.fromkeys(counts - sizes.keys(), counted) if counted else {})


_ZERO = Poly.const(0)

"""What the seats of a binding cost on a device, and what each scheme could win at most.

A roofline, worked out from the dataflow alone: operations over the device's measured rate,
bytes over its measured bandwidth, whichever takes longer. Bounds from below, no measurement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from frtspec.devices import Device
from frtspec.dims import DimError
from frtspec.dims.shape import symbols_of
from frtspec.docgen.costs import Sizes
from frtspec.ir.decl import Binding, Impl, Program, Structure
from frtspec.ir.decl.binding import Loop, Seat
from frtspec.sema.combos import Combo, combos
from frtspec.sema.cost import CostAt, cost
from frtspec.syntax import ast

HOST_DTYPE = "bf16"
BITS = {"fp8_e4m3": 8.0, "fp8_e5m2": 8.0, "int8": 8.0, "int4": 4.25, "nvfp4": 4.5}
"""Bits a weight, with the scales of its blocks where the format has them."""

_OPS: Mapping[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}


class Open(Exception):
    """A size that the given config does not settle; the message names it."""


@dataclass(frozen=True)
class Form:
    """A scheme's form of a seat. ``seconds``: its roofline; ``gain``: how often faster that
    is than the host's; ``reason``: why there is no number."""

    scheme: str
    impl: str
    weights: float
    seconds: float | None
    gain: float | None


@dataclass(frozen=True)
class SeatCost:
    """One seat at one row count. ``times``: how many there are of it, None where the config
    does not say; ``where``: what the sizes are of."""

    seat: str
    structure: str
    where: str
    times: int | None
    rows: int
    at: CostAt
    seconds: float
    bound: str
    forms: tuple[Form, ...]


@dataclass(frozen=True)
class Unsized:
    """A seat whose sizes nothing gives."""

    seat: str
    structure: str
    why: str


def seat_costs(
    program: Program,
    binding: Binding,
    device: Device,
    rows: Sequence[int],
    config: Mapping[str, object] | None,
    sizes: Sequence[Sizes],
) -> Iterator[SeatCost | Unsized]:
    """Every seat at every row count. Sizes come from a host's config (its JSON) where one is
    given, else from those of known models."""
    evaluate = _Values(binding, config or {})
    for group in binding.groups:
        for seat in group.seats:
            structure = program.structures[seat.structure]
            name = f"{structure.name}{'.' + seat.seam if seat.seam else ''} v{structure.version}"
            try:
                where, dims = _sized(evaluate, seat, structure, config, sizes)
                times = _times(evaluate, group.loops) if config is not None else None
                for count in rows:
                    yield _seat(
                        program, seat, structure, name, where, dims, times, count, device, evaluate
                    )
            except (Open, DimError) as error:
                yield Unsized(seat.name, name, str(error))


def _sized(
    evaluate: _Values,
    seat: Seat,
    structure: Structure,
    config: Mapping[str, object] | None,
    sizes: Sequence[Sizes],
) -> tuple[str, dict[str, int]]:
    if config is not None:
        dims = {}
        for name, value in seat.dims:
            found = evaluate.value(value)
            if not isinstance(found, int | Decimal) or found != int(found):
                raise Open(f"dim {name} is {found}, which is no size")
            dims[name] = int(found)
        return "the given config", dims
    known = next((one for one in sizes if one.of(structure)), None)
    if known is None:
        raise Open("no model's sizes are known; give --config")
    return known.model, dict(known.dims)


def _times(evaluate: _Values, loops: Sequence[Loop]) -> int | None:
    total = 1
    for loop in loops:
        try:
            low = evaluate.value(loop.lo)
            high = evaluate.value(loop.hi)
        except Open:
            return None
        if loop.where is not None:
            return None
        assert isinstance(low, int | Decimal) and isinstance(high, int | Decimal)
        total *= int(high) - int(low) + bool(loop.inclusive)
    return total


def _seat(
    program: Program,
    seat: Seat,
    structure: Structure,
    name: str,
    where: str,
    dims: Mapping[str, int],
    times: int | None,
    count: int,
    device: Device,
    evaluate: _Values,
) -> SeatCost:
    seam = None if seat.seam is None else structure.seam(seat.seam)
    found = cost(structure, _combo(structure, seat, evaluate), seam=seam)
    at = found.at({**dict.fromkeys(_rows_of(structure), count), **dims})
    peak = device.peak[HOST_DTYPE]
    seconds = at.seconds(peak, device.bandwidth)
    bound = "compute" if at.flops / peak > at.least / device.bandwidth else "memory"
    forms = tuple(_forms(program, seat, count, at, seconds, device))
    return SeatCost(seat.name, name, where, times, count, at, seconds, bound, forms)


def _rows_of(structure: Structure) -> set[str]:
    """Dims that stand for the length of the work: those that no slot has."""
    of_slots = {symbol for slot in structure.slots for symbol in symbols_of(slot.shape or ())}
    return set(structure.dims) - of_slots


def _combo(structure: Structure, seat: Seat, evaluate: _Values) -> Combo:
    """The seat's combination as far as it is settled, else the first that fits."""
    wanted = {}
    for axis, value in seat.variants:
        try:
            found = evaluate.value(value)
        except Open:
            continue
        if isinstance(found, str):
            wanted[axis] = found
    fitting = [c for c in combos(structure) if wanted.items() <= dict(c.variants).items()]
    return (fitting or list(combos(structure)))[0]


def _forms(
    program: Program, seat: Seat, count: int, at: CostAt, seconds: float, device: Device
) -> Iterator[Form]:
    for scheme in program.schemes.values():
        for route in scheme.routes:
            if (route.structure, route.structure_version) != seat.structure or route.use is None:
                continue
            if route.seam != seat.seam:
                continue
            impl = program.impls.get((*seat.structure, route.seam, route.use))
            if impl is not None and _serves(impl, count):
                yield _form(scheme.name, impl, at, seconds, device)


def _serves(impl: Impl, count: int) -> bool:
    """Whether one of an impl's bands, where it has bands, takes so many rows."""
    ends = [(band.lo, band.hi) for band in impl.bands]
    return not ends or any(lo <= count and (hi is None or count <= hi) for lo, hi in ends)


def _form(scheme: str, impl: Impl, at: CostAt, seconds: float, device: Device) -> Form:
    """Weights in the narrowest format that the impl packs; products at that format's rate
    where activations are quantised too and the rate was measured."""
    formats = [p.format for p in impl.packs if p.format in BITS]
    weights = float(at.weights)
    if formats:
        weights *= min(BITS[str(name)] for name in formats) / 16
    codes = [s.format for s in impl.scales if s.format is not None]
    if codes and codes[0] not in device.peak:
        return Form(scheme, impl.name, weights, None, None)
    peak = device.peak[str(codes[0]) if codes else HOST_DTYPE]
    own = max(at.flops / peak, (at.least - at.weights + weights) / device.bandwidth)
    return Form(scheme, impl.name, weights, own, seconds / own if own else None)


class _Values:
    """Values of config expressions, from the JSON of a config."""

    def __init__(self, binding: Binding, config: Mapping[str, object]) -> None:
        self._dims = dict(binding.dims)
        self._config = config

    def value(self, node: ast.Expr) -> object:
        """Raises ``Open`` where the config does not say."""
        match node:
            case ast.Number(value=value):
                return value
            case ast.String(value=text):
                return text
            case ast.Name(id=name):
                return self.value(self._dims[name]) if name in self._dims else name
            case ast.Field():
                return self._field(node)
            case ast.Binary(op="??", left=left, right=right):
                try:
                    found = self.value(left)
                except Open:
                    found = None
                return self.value(right) if found is None else found
            case ast.Binary(op=op, left=left, right=right) if op in _OPS:
                a, b = self.value(left), self.value(right)
                if isinstance(a, int | Decimal) and isinstance(b, int | Decimal):
                    return _OPS[op](Decimal(a), Decimal(b))
            case ast.Match(subject=subject, arms=arms):
                return self._match(self.value(subject), arms)
        raise Open("an expression that only the live host settles")

    def _field(self, node: ast.Field) -> object:
        names = []
        base: ast.Expr = node
        while isinstance(base, ast.Field):
            names.append(base.name.id)
            base = base.base
        if not isinstance(base, ast.Name) or base.id != "config":
            raise Open("a size that only the live host shows")
        found: object = self._config
        for name in reversed(names):
            if not isinstance(found, Mapping) or name not in found:
                raise Open(f"the config has no {'.'.join(reversed(names))}")
            found = found[name]
        return found

    def _match(self, subject: object, arms: Sequence[ast.MatchArm]) -> object:
        for arm in arms:
            pattern = arm.pattern
            said: object = None
            if isinstance(pattern, ast.String | ast.Number):
                said = pattern.value
            elif isinstance(pattern, ast.Name):
                said = {"true": True, "false": False, "none": None}.get(pattern.id, pattern.id)
            if isinstance(pattern, ast.Else) or said == subject:
                return self.value(arm.value)
        raise Open(f"no arm is for {subject!r}")

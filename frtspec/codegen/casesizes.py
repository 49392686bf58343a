"""Small sizes that satisfy a structure's shapes and rules, for synthetic cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from frtspec.codegen import dimsrc
from frtspec.dims import Constraint, DimError, Poly, Shape, axis, instance
from frtspec.ir.decl import Inner, Port, Slot, Structure

_WIDTHS = ((64, 96, 48, 80, 32, 112, 16, 128), (160, 96, 128, 64, 48, 32, 16))
_MORE = (8, 4, 2, 1, 192, 256, 512, 1024, 2048)
_COUNTS = ((2, 3, 4, 6, 5), (3, 5, 2, 4, 6))
"""For batches, tokens and heads: axes that lead and that no weight has."""

_ROWS = (5, 33)
_MOST_STEPS = 20_000
_LARGEST = 4096
"""Cases are run on a CPU: sizes beyond this are none to test with."""


def fitting_sizes(structure: Structure) -> list[dict[str, int]]:
    """Up to two choices of sizes that satisfy every shape and every ``require``.

    Different dims get different sizes wherever the rules allow it, so that a swapped
    axis shows. Empty when no small sizes fit.
    """
    found = []
    for widths, counts, rows in zip(_WIDTHS, _COUNTS, _ROWS, strict=True):
        search = _Search.of(structure, widths, counts, rows)
        sizes = search.find(distinct=True) or search.find(distinct=False)
        if sizes is not None and sizes not in found:
            found.append(sizes)
    return found


@dataclass
class _Search:
    """Depth-first over the symbols; what an assignment breaks is noticed at once.

    ``tests`` run as soon as the last of their symbols has a size.
    """

    symbols: Sequence[str]
    options: Mapping[str, Sequence[int]]
    folded: frozenset[str]
    tests: Mapping[str, list[Callable[[Mapping[str, int]], bool]]]
    steps: int = field(default=0)

    @staticmethod
    def of(
        structure: Structure, widths: Sequence[int], counts: Sequence[int], rows: int
    ) -> _Search:
        shapes = list(_instances(structure))
        rules = [*structure.requires, *_inner_rules(structure)]
        every = dimsrc.symbols(shapes, rules)
        symbols = [symbol for symbol in every if not symbol.startswith("sum(")]
        folded = {s for shape in shapes for item in shape if item.rows for s in item.symbols()}
        named = _named_sizes(rules)
        leading = _leading(structure)
        options = {
            symbol: tuple(
                dict.fromkeys(
                    (*(counts if symbol in leading else ()), *widths, *named, *_MORE)
                    if symbol not in folded
                    else (rows,)
                )
            )
            for symbol in symbols
        }
        tests: dict[str, list[Callable[[Mapping[str, int]], bool]]] = {s: [] for s in symbols}
        for size in (option for shape in shapes for item in shape for option in item.alternatives):
            _schedule(tests, symbols, size.symbols(), partial(_some, size))
        for rule in rules:
            _schedule(tests, symbols, rule.symbols(), rule.check)
        return _Search(symbols, options, frozenset(folded), tests)

    def find(self, *, distinct: bool) -> dict[str, int] | None:
        """The first assignment that fits, or None; ``distinct``: no size twice."""
        self.steps = 0
        return next(self._assignments({}, distinct), None)

    def _assignments(self, chosen: dict[str, int], distinct: bool) -> Iterator[dict[str, int]]:
        if len(chosen) == len(self.symbols):
            yield dict(chosen)
            return
        symbol = self.symbols[len(chosen)]
        for size in self.options[symbol]:
            self.steps += 1
            if self.steps > _MOST_STEPS:
                return
            if distinct and symbol not in self.folded and size in chosen.values():
                continue
            env = {**chosen, symbol: size}
            if all(_holds(test, env) for test in self.tests[symbol]):
                yield from self._assignments(env, distinct)


def _leading(structure: Structure) -> set[str]:
    """Dims that are an axis before the last of some port of three axes or more, and by
    themselves no axis of a weight."""
    ports = [port.shape for port in (*structure.inputs, *structure.outputs)]
    weights = [slot.shape or () for slot in structure.slots]
    inner = [s for slot in structure.slots if slot.inner for s in _inner_shapes(slot.inner)]
    alone = (item.symbols() for shape in (*weights, *inner) for item in shape)
    wide = {symbols[0] for symbols in alone if len(symbols) == 1}
    return {
        s for shape in ports if len(shape) > 2 for item in shape[:-1] for s in item.symbols()
    } - wide


def _some(size: Poly, env: Mapping[str, int]) -> bool:
    return size.value(env) > 0


def _holds(test: Callable[[Mapping[str, int]], bool], env: Mapping[str, int]) -> bool:
    try:
        return test(env)
    except DimError:  # a division with a rest
        return False


def _schedule(
    tests: dict[str, list[Callable[[Mapping[str, int]], bool]]],
    symbols: Sequence[str],
    used: Sequence[str],
    test: Callable[[Mapping[str, int]], bool],
) -> None:
    """Run a test when the last symbol it asks about is chosen; sums wait for the end."""
    order = {symbol: position for position, symbol in enumerate(symbols)}
    last = max((order.get(symbol, len(symbols) - 1) for symbol in used), default=None)
    if last is not None and symbols:
        tests[symbols[last]].append(test)


def _named_sizes(rules: Sequence[Constraint]) -> list[int]:
    """Sizes that the rules speak of: bounds and divisors, their multiples and halves."""
    constants = [arg.as_int() for rule in rules for arg in rule.args]
    sizes = [c * k // 2 for c in constants if c is not None and c > 0 for k in (2, 4, 6, 1)]
    return [size for size in sizes if 0 < size <= _LARGEST]


def _instances(structure: Structure) -> Iterator[Shape]:
    """Every shape; a repeated value's for each position of a middling count."""
    counts = {index.name: min(max(3, index.lo), index.hi) for index in structure.indexes}
    values: list[Port | Slot] = [*structure.inputs, *structure.slots, *structure.outputs]
    for value in values:
        if isinstance(value, Slot) and value.inner is not None:
            yield from _inner_shapes(value.inner)
        if value.shape is None:
            continue
        if value.index is None:
            yield value.shape
        else:
            yield from (instance(value.shape, k) for k in range(counts[value.index]))


def _inner_shapes(inner: Inner) -> Iterator[Shape]:
    """The shapes of an inner structure's slots, in the outer dims."""
    dims = dict(inner.dims)
    for slot in inner.slots:
        yield tuple(
            axis([option.subs(dims) for option in item.alternatives]) for item in slot.shape or ()
        )


def _inner_rules(structure: Structure) -> Iterator[Constraint]:
    """What inner structures require of sizes that are known outside."""
    for slot in structure.slots:
        if slot.inner is None:
            continue
        dims = dict(slot.inner.dims)
        for rule in slot.inner.whole.requires:
            if set(rule.symbols()) <= dims.keys():
                yield Constraint(rule.kind, tuple(arg.subs(dims) for arg in rule.args))

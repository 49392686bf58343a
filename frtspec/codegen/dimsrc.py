"""Dims as Python source: polynomials, axes, shapes and rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from frtspec.codegen.pysrc import ATOM, Py, binary, call, negative, number, pyrepr
from frtspec.dims import Axis, Constraint, Measured, Poly, Shape

_INDEXED = re.compile(r"^(\w+)\[(\w+)\]$")
_SUM = re.compile(r"^sum\((\w+)\)$")


def symbol_name(symbol: str) -> str:
    """The Python name of a symbol: ``N[i]`` is ``N_i``, ``sum(N)`` is ``sum_N``."""
    if match := _INDEXED.match(symbol):
        return f"{match[1]}_{match[2]}"
    if match := _SUM.match(symbol):
        return f"sum_{match[1]}"
    return symbol


def poly(value: Poly, name: Callable[[str], str] = symbol_name) -> Py:
    """A polynomial over symbols: ``D * F``, ``(D + 1) / 2``."""
    top, bottom = _fraction(value)
    if bottom == _ONE:
        return _sum(top, name)
    whole = top.as_int()
    if whole is not None and bottom.as_int() is not None:  # two plain numbers make a float
        return binary("/", call("Poly.const", number(whole)), _sum(bottom, name))
    return binary("/", _sum(top, name), _sum(bottom, name))


def whole(value: Poly, name: Callable[[str], str]) -> Py:
    """The same over whole numbers, with one exact division at the end: ``(d + 1) // 2``."""
    top, bottom = _fraction(value)
    return _sum(top, name) if bottom == _ONE else binary("//", _sum(top, name), _sum(bottom, name))


_ONE = Poly.const(1)


def _fraction(value: Poly) -> tuple[Poly, Poly]:
    """Numerator and denominator, both without a division."""
    below: dict[str, int] = {}
    for monomial, _ in value.terms:
        for symbol, power in monomial:
            below[symbol] = max(below.get(symbol, 0), -power)
    bottom = Poly.const(value.den)
    for symbol, power in below.items():
        bottom = bottom * Poly.symbol(symbol) ** power
    return value * bottom, bottom


def _sum(value: Poly, name: Callable[[str], str]) -> Py:
    total: Py | None = None
    for monomial, coefficient in value.terms:
        term = _product(monomial, abs(coefficient), name)
        if total is None:
            total = term if coefficient > 0 else negative(term)
        else:
            total = binary("+" if coefficient > 0 else "-", total, term)
    return total or number(0)


def _product(
    monomial: tuple[tuple[str, int], ...], coefficient: int, name: Callable[[str], str]
) -> Py:
    factors = [_power(Py(name(symbol)), power) for symbol, power in monomial]
    if coefficient != 1 or not factors:
        factors.insert(0, number(coefficient))
    out = factors[0]
    for factor in factors[1:]:
        out = binary("*", out, factor)
    return out


def _power(base: Py, power: int) -> Py:
    return base if power == 1 else binary("**", base, number(power))


@dataclass
class DimNames:
    """The ``frtspec.dims`` functions that some source needs, collected as it is built."""

    functions: set[str]

    @staticmethod
    def fresh() -> DimNames:
        return DimNames(set())

    def axis(self, axis: Axis) -> Py:
        """``D``, ``rows(M)``, ``either(D / 2, D)``, ``any_axis()``."""
        sizes = [self._size(option) for option in axis.alternatives]
        if isinstance(axis, Poly):
            return self._exactly(axis)
        if axis.rows:
            if len(sizes) == 1:
                return self._call("rows", sizes[0])
            options = "".join(f"{size}, " for size in sizes)
            return self._call("axis", Py(f"({options})"), rows=Py("True"))
        return self._call("either", *sizes) if sizes else self._call("any_axis")

    def shape(self, shape: Shape) -> Py:
        """A tuple of axes."""
        axes = [self.axis(axis).text for axis in shape]
        return Py(f"({axes[0]},)" if len(axes) == 1 else f"({', '.join(axes)})", ATOM)

    def rule(self, rule: Constraint) -> Py:
        """``at_least(D * F, 1048576)``."""
        return self._call(rule.kind, *(self._size(arg) for arg in rule.args))

    def rules(self, rules: Iterable[Constraint]) -> Py:
        """A tuple of rules."""
        items = [self.rule(rule).text for rule in rules]
        return Py(f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})", ATOM)

    def measured(self, rule: Measured) -> Py:
        """``measured("steps", "cond", "<=", 64)``."""
        fields = (rule.fact, rule.of, rule.op, *rule.values)
        return self._call("measured", *(Py(pyrepr(value)) for value in fields))

    def outer(self, value: Poly) -> Py:
        """A size of an inner structure outside: ``D``; its own are symbols, ``ffn.F``."""
        own = [symbol for symbol in value.symbols() if "." in symbol]
        if not own:
            return self._exactly(value)
        self.functions.add("Poly")
        return poly(value, lambda s: f'Poly.symbol("{s}")' if s in own else symbol_name(s))

    def _exactly(self, value: Poly) -> Py:
        # A bare number is no axis; as a polynomial it is one.
        constant = value.as_int()
        if constant is None:
            return self._size(value)
        self.functions.add("Poly")
        return call("Poly.const", number(constant))

    def _size(self, value: Poly) -> Py:
        source = poly(value)
        if "Poly.const(" in source.text:
            self.functions.add("Poly")
        return source

    def _call(self, function: str, *args: Py, **keywords: Py) -> Py:
        self.functions.add(function)
        return call(function, *args, **keywords)


def symbols(shapes: Iterable[Shape], rules: Iterable[Constraint]) -> list[str]:
    """Every symbol used, in the order of first use."""
    found: dict[str, None] = {}
    for shape in shapes:
        for axis in shape:
            for option in axis.alternatives:
                found.update(dict.fromkeys(_in_order(option)))
    for rule in rules:
        for arg in rule.args:
            found.update(dict.fromkeys(_in_order(arg)))
    return list(found)


def _in_order(value: Poly) -> list[str]:
    return [name for monomial, _ in value.terms for name, _ in monomial]

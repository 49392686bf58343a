"""Dims as Python source: polynomials, axes, shapes and rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from frtspec.codegen.pysrc import ATOM, Py, binary, call, negative, number
from frtspec.dims import Axis, Constraint, Poly, Shape

_INDEXED = re.compile(r"^(\w+)\[(\w+)\]$")
_SUM = re.compile(r"^sum\((\w+)\)$")


def symbol_name(symbol: str) -> str:
    """The Python name of a symbol: ``N[i]`` is ``N_i``, ``sum(N)`` is ``sum_N``."""
    if match := _INDEXED.match(symbol):
        return f"{match[1]}_{match[2]}"
    if match := _SUM.match(symbol):
        return f"sum_{match[1]}"
    return symbol


def poly(value: Poly, name: Callable[[str], str] = symbol_name, divide: str = "/") -> Py:
    """A polynomial over names; ``divide`` is ``/`` for symbols, ``//`` for whole numbers."""
    total: Py | None = None
    for monomial, coefficient in value.terms:
        term = _term(monomial, abs(coefficient), value.den, name, divide)
        if total is None:
            total = term if coefficient > 0 else negative(term)
        else:
            total = binary("+" if coefficient > 0 else "-", total, term)
    return total or number(0)


def _term(
    monomial: tuple[tuple[str, int], ...],
    coefficient: int,
    den: int,
    name: Callable[[str], str],
    divide: str,
) -> Py:
    top = [_power(Py(name(s)), p) for s, p in monomial if p > 0]
    below = [_power(Py(name(s)), -p) for s, p in monomial if p < 0]
    if coefficient != 1 or not top:
        top.insert(0, number(coefficient))
    if den != 1:
        below.insert(0, number(den))
    product = _product(top)
    return binary(divide, product, _product(below)) if below else product


def _power(base: Py, power: int) -> Py:
    return base if power == 1 else binary("**", base, number(power))


def _product(factors: list[Py]) -> Py:
    out = factors[0]
    for factor in factors[1:]:
        out = binary("*", out, factor)
    return out


@dataclass
class DimNames:
    """The ``frtspec.dims`` functions that some source needs, collected as it is built."""

    functions: set[str]

    @staticmethod
    def fresh() -> DimNames:
        return DimNames(set())

    def axis(self, axis: Axis) -> Py:
        """``D``, ``rows(M)``, ``either(D / 2, D)``, ``any_axis()``."""
        sizes = [poly(option) for option in axis.alternatives]
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
        return self._call(rule.kind, *(poly(arg) for arg in rule.args))

    def rules(self, rules: Iterable[Constraint]) -> Py:
        """A tuple of rules."""
        items = [self.rule(rule).text for rule in rules]
        return Py(f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})", ATOM)

    def _exactly(self, value: Poly) -> Py:
        # A bare number is no axis; as a polynomial it is one.
        constant = value.as_int()
        if constant is None:
            return poly(value)
        self.functions.add("Poly")
        return call("Poly.const", number(constant))

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

"""Whether rules on sizes follow from others: bounds, divisibility, equality of polynomials.

Sizes are whole and at least 1. What is not proven here counts as a change, never as none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from math import gcd

from frtspec.dims import Constraint, Poly

Atom = tuple[str, Poly, int]
"""``("ge", p, c)``: p >= c, p without a constant. ``("eq", p, c)``: p == c. ``("div", p, d)``:
d divides p. ``("in", …)`` and what else is kept as it is."""


@dataclass(frozen=True)
class Other:
    """A rule that is only compared as a whole."""

    text: str


def atoms(rule: Constraint) -> tuple[Atom | Other, ...]:
    """The rule as a conjunction in a normal form."""
    args = rule.args
    match rule.kind:
        case "at_least":
            return (_least(args[0] - args[1]),)
        case "at_most":
            return (_least(args[1] - args[0]),)
        case "between":
            return _least(args[1] - args[0]), _least(args[2] - args[1])
        case "divides":
            divisor = args[0].as_int()
            if divisor is None or args[1].den != 1:
                return (Other(rule.text),)
            return (("div", args[1], divisor),)
        case "equal":
            return (_equal(args[0] - args[1]),)
        case _:
            sizes = sorted(map(str, args[1:]))
            return (Other(f"{args[0]} in {sizes}"),)


def _constant(poly: Poly) -> tuple[Poly, int]:
    """The part with symbols, times the denominator, and the constant."""
    scaled = poly * poly.den
    constant = next((c for monomial, c in scaled.terms if monomial == ()), 0)
    return scaled - constant, constant


def _content(poly: Poly) -> int:
    return reduce(gcd, (c for _, c in poly.terms), 0)


def _least(poly: Poly) -> Atom | Other:
    """``poly >= 0`` as ``p >= c`` in lowest terms (sizes are whole, so c is rounded up)."""
    rest, constant = _constant(poly)
    shared = _content(rest) or 1
    if any(power < 0 for monomial, _ in rest.terms for _, power in monomial):
        return Other(f"{rest} >= {-constant}")
    return "ge", Poly(tuple((m, c // shared) for m, c in rest.terms)), -(constant // shared)


def _equal(poly: Poly) -> Atom:
    rest, constant = _constant(poly)
    shared = gcd(_content(rest), constant) or 1
    if rest.terms and rest.terms[0][1] < 0:
        shared = -shared
    return "eq", Poly(tuple((m, c // shared) for m, c in rest.terms)), -constant // shared


@dataclass(frozen=True)
class Known:
    """A conjunction, and what follows from it."""

    atoms: frozenset[Atom | Other]

    @staticmethod
    def of(rules: Iterable[Constraint]) -> Known:
        return Known(frozenset(atom for rule in rules for atom in atoms(rule)))

    def implies(self, rule: Constraint) -> bool:
        return all(self._holds(atom) for atom in atoms(rule))

    def _holds(self, atom: Atom | Other) -> bool:
        if atom in self.atoms:
            return True
        if isinstance(atom, Other):
            return False
        kind, poly, number = atom
        if kind == "ge":
            low = self._low(poly)
            return low is not None and low >= number
        if kind == "div":
            return self._divisor(poly) % number == 0
        return self._low(poly) == number == self._high(poly)

    def _stated(self, kind: str, poly: Poly) -> list[int]:
        return [
            atom[2]
            for atom in self.atoms
            if not isinstance(atom, Other) and atom[:2] == (kind, poly)
        ]

    def _low(self, poly: Poly) -> int | None:
        """A bound from below, as far as it can be told."""
        stated = self._stated("ge", poly) + self._stated("eq", poly)
        worked = self._sum(poly, low=True)
        return max(stated + ([] if worked is None else [worked]), default=None)

    def _high(self, poly: Poly) -> int | None:
        stated = [-n for n in self._stated("ge", -poly)] + self._stated("eq", poly)
        worked = self._sum(poly, low=False)
        return min(stated + ([] if worked is None else [worked]), default=None)

    def _sum(self, poly: Poly, *, low: bool) -> int | None:
        total = 0
        for monomial, factor in poly.terms:
            bound = self._product(monomial, low=low == (factor > 0))
            if bound is None:
                return None
            total += factor * bound
        return total

    def _product(self, monomial: tuple[tuple[str, int], ...], *, low: bool) -> int | None:
        """Sizes are positive, so bounds of factors multiply."""
        total = 1
        for name, power in monomial:
            symbol = Poly.symbol(name)
            if low:
                stated = self._stated("ge", symbol) + self._stated("eq", symbol)
                bound = max([1, *stated])
            else:
                above = [-n for n in self._stated("ge", -symbol)] + self._stated("eq", symbol)
                if not above:
                    return None
                bound = min(above)
            total *= bound**power
        return total

    def _divisor(self, poly: Poly) -> int:
        """A number that divides it for certain."""
        parts = []
        for monomial, factor in poly.terms:
            known = abs(factor)
            for name, power in monomial:
                known *= self._lcm(Poly.symbol(name)) ** max(power, 0)
            parts.append(known)
        whole = reduce(gcd, parts, 0) or 1
        stated = self._lcm(poly)
        return whole * stated // gcd(whole, stated)

    def _lcm(self, poly: Poly) -> int:
        stated = [*self._stated("div", poly), *(n for n in self._stated("eq", poly) if n)]
        return reduce(lambda a, b: a * b // gcd(a, b), stated, 1)

"""Integer polynomials with exact division: the sizes of the language.

``(Hq + 2*Hkv)*D``, ``R/2``, ``3*D``. Two expressions that are equal as
polynomials are equal here, print the same text and hash the same. A division is
exact: ``R/2`` has a value only where ``R`` is even.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from math import gcd
from typing import Union

from frtspec.dims.errors import DimError

Monomial = tuple[tuple[str, int], ...]
"""Symbols with their exponents (never 0), sorted by name."""

PolyLike = Union["Poly", int]


class Axis:
    """One axis of a shape: what its size may be.

    ``alternatives`` are the sizes allowed (empty: any size); ``rows`` tells that
    the axis stands for any number of leading axes and has their product as size.
    A ``Poly`` is the axis that has exactly that size.
    """

    __slots__ = ()

    @property
    def alternatives(self) -> tuple[Poly, ...]:
        raise NotImplementedError

    @property
    def rows(self) -> bool:
        return False

    def symbols(self) -> tuple[str, ...]:
        """Every symbol of every alternative, sorted."""
        return tuple(sorted({s for poly in self.alternatives for s in poly.symbols()}))

    def subs(self, env: Mapping[str, PolyLike]) -> Axis:
        raise NotImplementedError


Shape = tuple[Axis, ...]


@dataclass(frozen=True)
class Poly(Axis):
    """``sum(coefficient * monomial) / den``, in lowest terms; immutable and hashable.

    Supports ``+ - *``, ``/`` and ``//`` (the same: exact), ``**`` with a whole
    exponent, all mixed with ``int``. Divisions that no polynomial satisfies raise
    ``DimError``; divisions by a symbol are kept (``D/H``) and checked on evaluation.
    """

    terms: tuple[tuple[Monomial, int], ...]
    den: int = 1

    # ------------------------------------------------------------ construction

    @staticmethod
    def const(value: int) -> Poly:
        return _normal({(): value}, 1)

    @staticmethod
    def symbol(name: str) -> Poly:
        return Poly((((((name, 1),)), 1),))

    @staticmethod
    def of(value: PolyLike) -> Poly:
        return value if isinstance(value, Poly) else Poly.const(value)

    # ------------------------------------------------------------ the axis it is

    @property
    def alternatives(self) -> tuple[Poly, ...]:
        return (self,)

    # ------------------------------------------------------------ arithmetic

    def __add__(self, other: PolyLike) -> Poly:
        if not isinstance(other, Poly | int):
            return NotImplemented
        right = Poly.of(other)
        total = {m: c * right.den for m, c in self.terms}
        for monomial, coefficient in right.terms:
            total[monomial] = total.get(monomial, 0) + coefficient * self.den
        return _normal(total, self.den * right.den)

    __radd__ = __add__

    def __neg__(self) -> Poly:
        return Poly(tuple((m, -c) for m, c in self.terms), self.den)

    def __sub__(self, other: PolyLike) -> Poly:
        if not isinstance(other, Poly | int):
            return NotImplemented
        return self + -Poly.of(other)

    def __rsub__(self, other: PolyLike) -> Poly:
        return -self + other

    def __mul__(self, other: PolyLike) -> Poly:
        if not isinstance(other, Poly | int):
            return NotImplemented
        right = Poly.of(other)
        total: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in right.terms:
                monomial = _times(m1, m2)
                total[monomial] = total.get(monomial, 0) + c1 * c2
        return _normal(total, self.den * right.den)

    __rmul__ = __mul__

    def __truediv__(self, other: PolyLike) -> Poly:
        if not isinstance(other, Poly | int):
            return NotImplemented
        right = Poly.of(other)
        if not right.terms:
            raise DimError(f"{self} cannot be divided by 0")
        if len(right.terms) == 1:
            ((monomial, coefficient),) = right.terms
            inverse = tuple((name, -power) for name, power in monomial)
            return self * _normal({inverse: right.den}, coefficient)
        return _divide(self, right)

    __floordiv__ = __truediv__

    def __rtruediv__(self, other: PolyLike) -> Poly:
        return Poly.of(other) / self

    __rfloordiv__ = __rtruediv__

    def __pow__(self, power: int) -> Poly:
        if power < 0:
            return 1 / self**-power
        return reduce(lambda product, _: product * self, range(power), Poly.const(1))

    # ------------------------------------------------------------ reading

    def symbols(self) -> tuple[str, ...]:
        return tuple(sorted({name for monomial, _ in self.terms for name, _ in monomial}))

    def as_int(self) -> int | None:
        """The value of a constant polynomial, else None (also for a fraction)."""
        if not self.terms:
            return 0
        if self.den == 1 and len(self.terms) == 1 and self.terms[0][0] == ():
            return self.terms[0][1]
        return None

    def subs(self, env: Mapping[str, PolyLike]) -> Poly:
        """This polynomial with the symbols of ``env`` replaced."""
        total = Poly.const(0)
        for monomial, coefficient in self.terms:
            kept = tuple((n, p) for n, p in monomial if n not in env)
            product = Poly(((kept, coefficient),))
            for name, power in monomial:
                if name in env:
                    product = product * Poly.of(env[name]) ** power
            total = total + product
        return total / self.den

    def value(self, env: Mapping[str, int]) -> int:
        """The whole number this is under ``env``.

        Raises ``DimError`` when a symbol is missing or the value is not whole.
        """
        missing = [name for name in self.symbols() if lookup(name, env) is None]
        if missing:
            raise DimError(f"{self} is not determined: {', '.join(missing)} unknown")
        known = {name: lookup(name, env) or 0 for name in self.symbols()}
        try:
            number = self.subs(known).as_int()
        except DimError:
            number = None
        if number is None:
            at = ", ".join(f"{name} = {value}" for name, value in known.items())
            raise DimError(f"{self} is not a whole number at {at}", expected=str(self))
        return number

    @cached_property
    def text(self) -> str:
        """Canonical text; parses back to the same polynomial."""
        if not self.terms:
            return "0"
        out = ""
        for monomial, coefficient in self.terms:
            body = _term_text(monomial, abs(coefficient), self.den)
            sign = "-" if coefficient < 0 else "+"
            out += f" {sign} {body}" if out else f"-{body}" if sign == "-" else body
        return out

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{self.text}>"


def lookup(name: str, env: Mapping[str, int]) -> int | None:
    """The value of a symbol: ``env[name]``, or for ``sum(N)`` the sum of all ``N[k]``."""
    if name in env:
        return env[name]
    if name.startswith("sum(") and name.endswith(")"):
        head = f"{name[4:-1]}["
        parts = [v for k, v in env.items() if k.startswith(head) and k[len(head) : -1].isdigit()]
        return sum(parts) if parts else None
    return None


def dims(*names: str) -> tuple[Poly, ...]:
    """One symbol per name: ``M, D, F = dims("M", "D", "F")``."""
    return tuple(Poly.symbol(name) for name in names)


# ---------------------------------------------------------------- canonical form


def _order(monomial: Monomial) -> tuple[int, tuple[tuple[str, int], ...]]:
    """Highest degree first, then by name."""
    return -sum(power for _, power in monomial), tuple((n, -p) for n, p in monomial)


def _normal(total: Mapping[Monomial, int], den: int) -> Poly:
    """Drop zero terms, sort, reduce the fraction; ``den`` may be negative."""
    terms = [(m, c) for m, c in total.items() if c]
    shared = reduce(gcd, (c for _, c in terms), den)
    if den < 0:
        shared = -abs(shared)
    if not terms:
        return Poly((), 1)
    terms.sort(key=lambda term: _order(term[0]))
    return Poly(tuple((m, c // shared) for m, c in terms), den // shared)


def _times(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for name, power in right:
        powers[name] = powers.get(name, 0) + power
    return tuple(sorted((n, p) for n, p in powers.items() if p))


def _divide(left: Poly, right: Poly) -> Poly:
    """Exact long division by a polynomial of several terms."""
    names = sorted({*left.symbols(), *right.symbols()})

    def leading(poly: Poly) -> tuple[Monomial, int]:
        def rank(term: tuple[Monomial, int]) -> tuple[int, ...]:
            powers = dict(term[0])
            return sum(powers.values()), *(powers.get(name, 0) for name in names)

        return max(poly.terms, key=rank)

    lead_monomial, lead_coefficient = leading(right)
    inverse = tuple((name, -power) for name, power in lead_monomial)
    quotient, rest = Poly.const(0), left
    while rest.terms:
        monomial, coefficient = leading(rest)
        step_monomial = _times(monomial, inverse)
        if any(power < 0 for _, power in step_monomial):
            raise DimError(f"{left} cannot be divided exactly by {right}")
        step = _normal({step_monomial: coefficient * right.den}, rest.den * lead_coefficient)
        quotient, rest = quotient + step, rest - step * right
    return quotient


def _term_text(monomial: Monomial, coefficient: int, den: int) -> str:
    shared = gcd(coefficient, den)
    top = _factors(((n, p) for n, p in monomial if p > 0), coefficient // shared)
    below = _factors(((n, -p) for n, p in monomial if p < 0), den // shared)
    if below == "1":
        return top
    return f"{top}/({below})" if "*" in below else f"{top}/{below}"


def _factors(powers: Iterable[tuple[str, int]], coefficient: int) -> str:
    parts = [name if power == 1 else f"{name}**{power}" for name, power in powers]
    return "*".join(([] if coefficient == 1 and parts else [str(coefficient)]) + parts)

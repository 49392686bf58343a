"""Rules on dims: ranges, divisibility, equality."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from frtspec.dims.poly import Poly, PolyLike


@dataclass(frozen=True)
class Constraint:
    """One rule. ``kind``: ``at_least``, ``at_most``, ``between``, ``divides``, ``equal``, ``one_of``.

    ``args`` are in the order of the function that made it.
    """

    kind: str
    args: tuple[Poly, ...]

    @property
    def text(self) -> str:
        """The rule as the language writes it: ``512 <= D <= 16384``, ``D % 16 == 0``."""
        args = [str(arg) for arg in self.args]
        match self.kind:
            case "at_least":
                return f"{args[0]} >= {args[1]}"
            case "at_most":
                return f"{args[0]} <= {args[1]}"
            case "between":
                return f"{args[0]} <= {args[1]} <= {args[2]}"
            case "divides":
                simple = len(self.args[1].terms) <= 1 and self.args[1].den == 1
                return f"{args[1] if simple else f'({args[1]})'} % {args[0]} == 0"
            case "one_of":
                return f"{args[0]} in ({', '.join(args[1:])})"
            case _:
                return f"{args[0]} == {args[1]}"

    @property
    def subject(self) -> Poly:
        """The size that the rule is about: ``D*F`` of ``D*F >= 1048576``."""
        return self.args[1] if self.kind in ("between", "divides") else self.args[0]

    def symbols(self) -> tuple[str, ...]:
        return tuple(sorted({symbol for arg in self.args for symbol in arg.symbols()}))

    def check(self, env: Mapping[str, int]) -> bool:
        """Whether the rule holds. Raises ``DimError`` naming a symbol ``env`` lacks."""
        values = [arg.value(env) for arg in self.args]
        match self.kind:
            case "at_least":
                return values[0] >= values[1]
            case "at_most":
                return values[0] <= values[1]
            case "between":
                return values[0] <= values[1] <= values[2]
            case "divides":
                return values[0] != 0 and values[1] % values[0] == 0
            case "one_of":
                return values[0] in values[1:]
            case _:
                return values[0] == values[1]

    def __str__(self) -> str:
        return self.text


def at_least(size: PolyLike, bound: PolyLike) -> Constraint:
    """``size >= bound``"""
    return Constraint("at_least", (Poly.of(size), Poly.of(bound)))


def at_most(size: PolyLike, bound: PolyLike) -> Constraint:
    """``size <= bound``"""
    return Constraint("at_most", (Poly.of(size), Poly.of(bound)))


def between(low: PolyLike, size: PolyLike, high: PolyLike) -> Constraint:
    """``low <= size <= high``"""
    return Constraint("between", (Poly.of(low), Poly.of(size), Poly.of(high)))


def divides(divisor: PolyLike, size: PolyLike) -> Constraint:
    """``size % divisor == 0``"""
    return Constraint("divides", (Poly.of(divisor), Poly.of(size)))


def equal(left: PolyLike, right: PolyLike) -> Constraint:
    """``left == right``"""
    return Constraint("equal", (Poly.of(left), Poly.of(right)))


def one_of(size: PolyLike, *sizes: PolyLike) -> Constraint:
    """``size in (64, 96)``"""
    return Constraint("one_of", (Poly.of(size), *map(Poly.of, sizes)))

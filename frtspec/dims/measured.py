"""Rules on what is measured on a host, beside the rules on sizes."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

Number = int | float | Decimal


@dataclass(frozen=True)
class Measured:
    """One rule on a measured fact: ``steps(cond) <= 64``, ``dtype(x) is f32``.

    fact    its name in the table of facts
    of      the value it is about, or None for one about the whole seat
    op      ``>=``, ``<=``, ``==`` for a number, ``is`` for a word
    values  what it is compared with: one number, or the words allowed
    """

    fact: str
    of: str | None
    op: str
    values: tuple[Number | str, ...]

    @property
    def subject(self) -> str:
        """``steps(cond)``; ``calls`` for a fact about the seat."""
        return self.fact if self.of is None else f"{self.fact}({self.of})"

    @property
    def text(self) -> str:
        """The rule as the language writes it."""
        shown = [str(value) for value in self.values]
        right = shown[0] if len(shown) == 1 else f"({', '.join(shown)})"
        return f"{self.subject} {self.op} {right}"

    def check(self, found: Number | str) -> bool:
        """Whether the rule holds for what was measured."""
        if self.op == "is":
            return found in self.values
        (bound,) = self.values
        if isinstance(found, str) or isinstance(bound, str):
            raise TypeError(f"{self.subject} is a number: {found!r} against {bound!r}")
        measured, limit = float(found), float(bound)
        match self.op:
            case ">=":
                return measured >= limit
            case "<=":
                return measured <= limit
            case _:
                return measured == limit

    def __str__(self) -> str:
        return self.text


def measured(fact: str, of: str | None, op: str, *values: Number | str) -> Measured:
    """``measured("steps", "cond", "<=", 64)``"""
    return Measured(fact, of, op, values)

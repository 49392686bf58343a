"""From an op with finished argument texts to a Python expression.

A template has one ``{n}`` per argument and ``{name}`` per attribute. Arguments
get parentheses where Python's precedence needs them and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from frtspec.dims import Poly
from frtspec.ir.expr import Attr, SliceArg

CONDITIONAL, SUM, PRODUCT, UNARY, POWER, ATOM = range(6)
"""Binding strengths of Python expressions, weakest first."""


@dataclass(frozen=True)
class Text:
    """A Python expression and how strongly it binds."""

    text: str
    strength: int = ATOM

    def within(self, needed: int) -> str:
        return self.text if self.strength >= needed else f"({self.text})"


Attrs = Mapping[str, Attr]
Template = str | Callable[[Sequence[Text], Attrs], str]

_HOLE = re.compile(r"\{(\w+)\}")


def fill(template: Template, strength: int, args: Sequence[Text], attrs: Attrs) -> Text:
    """The expression of one op. ``strength``: how the template itself binds."""
    if callable(template):
        return Text(template(args, attrs), strength)

    def hole(match: re.Match[str]) -> str:
        name = match[1]
        if not name.isdigit():
            return attr_text(attrs[name])
        return args[int(name)].within(_needed(match, strength))

    return Text(_HOLE.sub(hole, template), strength)


def _needed(match: re.Match[str], strength: int) -> int:
    """The strength an argument needs at its place in the template."""
    if match.string[match.end() :].startswith((".", "[")):
        return ATOM
    if strength == ATOM:
        return CONDITIONAL
    first = match.start() == 0
    if strength == POWER:
        return ATOM if first else UNARY
    return strength if first else strength + (strength != UNARY)


def attr_text(value: Attr) -> str:
    """An attribute as Python text; polynomials use the dims' names as variables."""
    match value:
        case Poly():
            return poly_text(value).text
        case tuple():
            return ", ".join(attr_text(item) for item in value if not isinstance(item, SliceArg))
        case _:
            return str(value)


def slice_text(item: SliceArg) -> str:
    match item.kind:
        case "ellipsis":
            return "..."
        case "step":
            return item.step or ""
        case "at":
            return attr_text(item.lo) if item.lo is not None else ""
        case _:
            ends = ("" if end is None else poly_text(end).text for end in (item.lo, item.hi))
            return ":".join(ends)


def poly_text(poly: Poly) -> Text:
    """A polynomial as Python integer arithmetic: ``2*F``, ``R // 2``, ``(D + 1) // 2``.

    One exact division at the end, so that no part of a sum is rounded by itself.
    """
    below: dict[str, int] = {}
    for monomial, _ in poly.terms:
        for name, power in monomial:
            below[name] = max(below.get(name, 0), -power)
    divisor = Poly.const(poly.den)
    for name, power in below.items():
        divisor = divisor * Poly.symbol(name) ** power
    top = poly * divisor
    strength = SUM if len(top.terms) > 1 else PRODUCT if "*" in str(top) else ATOM
    if strength == ATOM and str(top).startswith("-"):
        strength = UNARY
    whole = Text(str(top), strength)
    if divisor.as_int() == 1:
        return whole
    bottom = Text(str(divisor), PRODUCT if "*" in str(divisor) else ATOM)
    return Text(f"{whole.within(PRODUCT)} // {bottom.within(ATOM)}", PRODUCT)


def const_text(value: Decimal) -> Text:
    """A number as Python text: whole where it is whole, else the shortest float."""
    if value == value.to_integral_value() and abs(value) < 10**15:
        text = str(int(value))
    else:
        text = repr(float(value))
    return Text(text, UNARY if text.startswith("-") else ATOM)

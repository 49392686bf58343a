"""Expressions of a resolved dataflow as Python source.

*Resolved* means that every op carries in its attributes what its rule found out
about axes (see ``resolve``), so that nothing about shapes is asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from frtspec.codegen import dimsrc, pysrc
from frtspec.codegen.pysrc import Py, binary, call, negative, number
from frtspec.dims import Poly
from frtspec.ir.expr import Attr, Const, DimValue, EachOf, Expr, Op, Ref, Select, SliceArg
from frtspec.ir.lowering import ATOM, POWER, PRODUCT, SUM, UNARY, Text
from frtspec.ir.ops import OPS
from frtspec.ir.walk import parts

_FROM_STRENGTH = {
    SUM: pysrc.ADD,
    PRODUCT: pysrc.MUL,
    UNARY: pysrc.UNARY,
    POWER: pysrc.POWER,
    ATOM: pysrc.PRIMARY,
}

Lowering = Callable[[Op, list[Py]], Py]


@dataclass
class Expressions:
    """Turns expressions into source.

    names   the Python name of a value of the spec (itself where it is missing)
    sizes   the Python expression of a dim's value at run time
    extra   lowerings of ops that exist in generated code only (packs, round trips)
    over    the Python name of this step's part of a value that a scan walks
    """

    names: Mapping[str, str]
    sizes: Callable[[str], str]
    extra: Mapping[str, Lowering] = field(default_factory=dict)
    over: dict[str, str] = field(default_factory=dict)

    def emit(self, expr: Expr) -> Py:
        """The source of one expression without ``match`` (those become statements)."""
        match expr:
            case Const(value=value):
                return number(value)
            case DimValue(poly=poly):
                return dimsrc.whole(poly, self.sizes)
            case Ref():
                return self.ref(expr)
            case Op():
                return self._op(expr)
            case EachOf():
                return self._each(expr)
            case _:
                raise AssertionError(f"{type(expr).__name__} is no expression of Python")

    def _each(self, each: EachOf) -> Py:
        """``*x``, or ``*(w[i].T for i in range(len(w)))``: an argument for each repetition."""
        value = each.value
        if isinstance(value, Ref) and value.index == each.index:
            return Py(f"*{self.names.get(value.name, value.name)}")
        repeated = next(
            part.name for part in parts(value) if isinstance(part, Ref) and part.index == each.index
        )
        index = self.names.get(each.index, each.index)
        count = f"len({self.names.get(repeated, repeated)})"
        return Py(f"*({self.emit(value)} for {index} in range({count}))")

    def ref(self, ref: Ref) -> Py:
        """A value by name: ``w[i]`` for a repeated one."""
        if ref.kind == "over":
            return Py(self.over[ref.name])
        name = Py(self.names.get(ref.name, ref.name))
        return name if ref.index is None else name.item(self.names.get(ref.index, ref.index))

    def _op(self, op: Op) -> Py:
        args = [self.emit(arg) for arg in op.args]
        if op.op in self.extra:
            return self.extra[op.op](op, args)
        row = OPS[op.op]
        if op.op == "neg":
            return negative(args[0])
        if row.symbol is not None and len(args) == 2 and len(row.symbol) <= 2:
            return binary(row.symbol, *args)
        attrs = {name: self._attr(value) for name, value in op.attrs}
        text = row.lower([_as_text(arg) for arg in args], attrs)
        return Py(text.text, _FROM_STRENGTH.get(text.strength, pysrc.PRIMARY))

    def _attr(self, value: Attr) -> Attr:
        """An attribute with its dims renamed to what holds their values at run time."""
        if isinstance(value, tuple):
            return cast(Attr, tuple(self._item(item) for item in value))
        return self._renamed(value) if isinstance(value, Poly) else value

    def _item(self, item: object) -> object:
        if isinstance(item, Poly):
            return self._renamed(item)
        if not isinstance(item, SliceArg):
            return item
        lo, hi = (None if end is None else self._renamed(end) for end in (item.lo, item.hi))
        step = None if item.step is None else self.names.get(item.step, item.step)
        return SliceArg(item.kind, lo, hi, step)

    def _renamed(self, poly: Poly) -> Poly:
        return poly.subs({name: Poly.symbol(self.sizes(name)) for name in poly.symbols()})


def _as_text(py: Py) -> Text:
    if py.level >= pysrc.PRIMARY:
        return Text(py.text, ATOM)
    levels = {pysrc.ADD: SUM, pysrc.MUL: PRODUCT, pysrc.UNARY: UNARY, pysrc.POWER: POWER}
    return Text(py.text, levels.get(py.level, 0))


# ---------------------------------------------------------------- walking


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct parts of an expression."""
    match expr:
        case Op(args=args):
            return args
        case Select(arms=arms):
            return tuple(value for _, value in arms)
        case EachOf(value=value):
            return (value,)
        case _:
            return ()


def rebuilt(expr: Expr, new: list[Expr]) -> Expr:
    """The same expression over other direct parts."""
    match expr:
        case Op(op=op, attrs=attrs, span=span):
            return Op(op, tuple(new), attrs, span)
        case Select(axis=axis, arms=arms, span=span):
            pairs = zip(arms, new, strict=True)
            return Select(axis, tuple((values, part) for (values, _), part in pairs), span)
        case EachOf(index=index, span=span):
            return EachOf(index, new[0], span)
        case _:
            return expr


def transformed(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """``change`` on every part, innermost first."""
    return change(rebuilt(expr, [transformed(child, change) for child in children(expr)]))


def first_select(expr: Expr) -> Select | None:
    """The outermost ``match`` of an expression."""
    return next((part for part in parts(expr) if isinstance(part, Select)), None)


def chosen(expr: Expr, axis: str, value: str) -> Expr:
    """The expression under one value of a variant axis: every ``match`` on it decided."""

    def decide(part: Expr) -> Expr:
        if isinstance(part, Select) and part.axis == axis:
            return next(arm for values, arm in part.arms if value in values)
        return part

    return transformed(expr, decide)


def constructor(shape: Py | str, form: str, dtype: str, device: str) -> Py:
    """``torch.zeros(2, 3, dtype=…, device=…)``."""
    return call(f"torch.{form}", shape, dtype=dtype, device=device)

"""Python texts of expressions: parentheses where they are needed, the same value always."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from frtspec.diag.source import NOWHERE
from frtspec.dims import DimError, Poly, dims
from frtspec.ir import expr as ir
from frtspec.ir.lowering import ATOM, Text, const_text, poly_text
from frtspec.ir.ops import OPS

VALUES = {"a": 1.5, "b": -2.25, "c": 0.75}

leaves = st.one_of(
    st.sampled_from(sorted(VALUES)).map(lambda n: ir.Ref(n, "value", None, NOWHERE)),
    st.decimals(-9, 9, places=2).map(lambda d: ir.Const(d, NOWHERE)),
)


def _op(name: str, *args: ir.Expr) -> ir.Expr:
    return ir.Op(name, args, (), NOWHERE)


def _grow(inner: st.SearchStrategy[ir.Expr]) -> st.SearchStrategy[ir.Expr]:
    two = st.tuples(st.sampled_from(["add", "sub", "mul", "div"]), inner, inner)
    power = st.tuples(inner, st.integers(0, 3).map(lambda n: ir.Const(Decimal(n), NOWHERE)))
    return st.one_of(
        two.map(lambda t: _op(*t)),
        power.map(lambda t: _op("pow", *t)),
        inner.map(lambda x: _op("neg", x)),
    )


trees = st.recursive(leaves, _grow, max_leaves=8)


def text(expr: ir.Expr) -> Text:
    match expr:
        case ir.Ref(name=name):
            return Text(name, ATOM)
        case ir.Const(value=value):
            return const_text(value)
        case ir.Op(op=op, args=args):
            return OPS[op].lower([text(arg) for arg in args], {})
        case _:
            raise AssertionError


def value(expr: ir.Expr) -> float:
    match expr:
        case ir.Ref(name=name):
            return VALUES[name]
        case ir.Const(value=number):
            return float(number)
        case ir.Op(op="neg", args=(x,)):
            return -value(x)
        case ir.Op(op=op, args=(x, y)):
            a, b = value(x), value(y)
            functions = {
                "add": lambda: a + b,
                "sub": lambda: a - b,
                "mul": lambda: a * b,
                "div": lambda: a / b,
                "pow": lambda: a**b,
            }
            return float(functions[op]())
        case _:
            raise AssertionError


@given(trees)
def test_the_text_has_the_value_of_the_tree(tree: ir.Expr) -> None:
    try:
        wanted = value(tree)
    except (ZeroDivisionError, OverflowError):
        assume(False)
    assert math.isclose(eval(text(tree).text, {}, dict(VALUES)), wanted, rel_tol=1e-12)


@given(trees)
def test_no_parentheses_around_everything(tree: ir.Expr) -> None:
    shown = text(tree).text
    assert not (shown.startswith("((") and shown.endswith("))"))


A, B = dims("A", "B")


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 2), st.integers(0, 2)), max_size=4),
    st.integers(1, 4),
    st.integers(1, 30),
    st.integers(1, 30),
)
def test_sizes_are_whole_where_they_divide(
    terms: list[tuple[int, int, int]], den: int, a: int, b: int
) -> None:
    poly = sum((c * A**i * B**j for c, i, j in terms), Poly.const(0)) / den
    try:
        wanted = poly.value({"A": a, "B": b})
    except DimError:
        return
    assert eval(poly_text(poly).text, {}, {"A": a, "B": b}) == wanted


@pytest.mark.parametrize(
    ("poly", "shown"),
    [
        (2 * A, "2*A"),
        (A / 2, "A // 2"),
        ((A + 1) / 2, "(A + 1) // 2"),
        (A / B, "A // B"),
        (A / (2 * B), "A // (2*B)"),
        (A - 1, "A - 1"),
        (-A, "-A"),
    ],
)
def test_sizes_read_well(poly: Poly, shown: str) -> None:
    assert poly_text(poly).text == shown

"""Polynomials: a ring with one canonical form, and division that is exact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frtspec.dims import DimError, Poly, dims

NAMES = ("D", "F", "H", "N[0]")
symbols = st.sampled_from(NAMES).map(Poly.symbol)
numbers = st.integers(-20, 20).map(Poly.const)
halves = st.sampled_from(NAMES).map(lambda n: Poly.symbol(n) / 2)


def combine(children: st.SearchStrategy[Poly]) -> st.SearchStrategy[Poly]:
    pairs = st.tuples(children, children)
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] - p[1]),
        pairs.map(lambda p: p[0] * p[1]),
    )


polys = st.recursive(st.one_of(symbols, numbers, halves), combine, max_leaves=6)
environments = st.fixed_dictionaries(
    {name: st.integers(1, 50).map(lambda n: 2 * n) for name in NAMES}
)


@given(polys, polys, polys)
def test_ring_laws_hold_on_the_canonical_form(a: Poly, b: Poly, c: Poly) -> None:
    assert a + b == b + a and str(a + b) == str(b + a) and hash(a + b) == hash(b + a)
    assert a * b == b * a
    assert (a + b) + c == a + (b + c)
    assert (a * b) * c == a * (b * c)
    assert a * (b + c) == a * b + a * c
    assert a - a == Poly.const(0)
    assert a * 1 == a and a + 0 == a


@given(polys, environments)
def test_text_parses_back_to_the_same_polynomial(a: Poly, env: dict[str, int]) -> None:
    scope = {name.replace("[0]", "_0"): Poly.symbol(name) for name in NAMES}
    again = eval(str(a).replace("[0]", "_0"), {}, scope)
    assert Poly.of(again) == a


@given(polys, polys, environments)
def test_values_follow_the_arithmetic(a: Poly, b: Poly, env: dict[str, int]) -> None:
    try:
        left, right = a.value(env), b.value(env)
    except DimError:
        return
    assert (a + b).value(env) == left + right
    assert (a * b).value(env) == left * right
    assert (a - b).value(env) == left - right


@given(polys, polys)
def test_division_undoes_multiplication(a: Poly, b: Poly) -> None:
    if b == Poly.const(0):
        with pytest.raises(DimError, match="divided by 0"):
            a / b
    else:
        assert (a * b) / b == a


def test_inexact_division_by_a_sum_is_refused() -> None:
    d, f = dims("D", "F")
    with pytest.raises(DimError, match=r"cannot be divided exactly by D \+ F"):
        (d * d + 1) / (d + f)


def test_division_by_a_symbol_is_checked_on_evaluation() -> None:
    h, n = dims("H", "N")
    assert str(h / n) == "H/N"
    assert (h / n).value({"H": 64, "N": 4}) == 16
    with pytest.raises(DimError, match="H/N is not a whole number at H = 10, N = 4"):
        (h / n).value({"H": 10, "N": 4})
    with pytest.raises(DimError, match="not a whole number"):
        (h / n).value({"H": 10, "N": 0})


def test_a_missing_symbol_is_named() -> None:
    d, f = dims("D", "F")
    with pytest.raises(DimError, match=r"D\*F is not determined: F unknown"):
        (d * f).value({"D": 3})


def test_sum_of_a_repeated_dim_adds_what_is_known() -> None:
    total = Poly.symbol("sum(N)")
    assert (total * 2).value({"N[0]": 3, "N[1]": 4}) == 14
    assert total.value({"sum(N)": 5}) == 5
    with pytest.raises(DimError, match=r"sum\(N\) unknown"):
        total.value({"K": 3})


@pytest.mark.parametrize(
    ("poly", "text"),
    [
        ("(Hq + 2*Hkv)*D", "2*D*Hkv + D*Hq"),
        ("R/2", "R/2"),
        ("3*D - D", "2*D"),
        ("D*D*F/(2*F)", "D**2/2"),
        ("-D + 1", "-D + 1"),
        ("D - D", "0"),
        ("1/(2*D)", "1/(2*D)"),
    ],
)
def test_canonical_text(poly: str, text: str) -> None:
    scope = dict(zip(("Hq", "Hkv", "D", "R", "F"), dims("Hq", "Hkv", "D", "R", "F"), strict=True))
    assert str(eval(poly, {}, scope)) == text

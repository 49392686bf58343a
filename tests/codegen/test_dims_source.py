"""Dims in generated code are the dims of the spec."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from frtspec import dims as frt_dims
from frtspec.codegen import dimsrc
from frtspec.codegen.dimsrc import DimNames
from frtspec.dims import (
    Axis,
    Constraint,
    DimError,
    Poly,
    any_axis,
    at_least,
    at_most,
    between,
    dims,
    divides,
    either,
    equal,
    rows,
)

M, D, F, N_i, SUM_N = dims("M", "D", "F", "N[i]", "sum(N)")
ENV = {"M": M, "D": D, "F": F, "N_i": N_i, "sum_N": SUM_N}
NUMBERS = {"M": 6, "D": 12, "F": 30, "N_i": 18, "sum_N": 42}


def polys() -> st.SearchStrategy[Poly]:
    leaf = st.sampled_from([M, D, F, N_i, SUM_N]) | st.integers(-9, 9).map(Poly.const)
    return st.recursive(
        leaf,
        lambda inner: (
            st.tuples(inner, inner).map(lambda t: t[0] + t[1])
            | st.tuples(inner, inner).map(lambda t: t[0] - t[1])
            | st.tuples(inner, inner).map(lambda t: t[0] * t[1])
            | st.tuples(inner, st.integers(1, 6)).map(lambda t: t[0] / t[1])
        ),
        max_leaves=6,
    )


@given(polys())
def test_a_polynomial_reads_back(poly: Poly) -> None:
    assert Poly.of(eval(dimsrc.poly(poly).text, {}, {**ENV, "Poly": Poly})) == poly


@given(polys())
def test_a_polynomial_of_numbers_has_its_value(poly: Poly) -> None:
    """Where every part divides without a rest, whole-number arithmetic is exact."""
    try:
        expected = poly.value({"M": 6, "D": 12, "F": 30, "N[i]": 18, "sum(N)": 42})
    except DimError:
        return
    text = dimsrc.whole(poly, dimsrc.symbol_name).text
    assert eval(text, {}, NUMBERS) == expected


def axes() -> st.SearchStrategy[Axis]:
    return (
        polys()
        | st.just(any_axis())
        | polys().map(rows)
        | st.tuples(polys(), polys()).map(lambda t: either(*t))
        | st.tuples(polys(), polys()).map(lambda t: frt_dims.axis(t, rows=True))
    )


@given(st.lists(axes(), min_size=1, max_size=3).map(tuple))
def test_a_shape_reads_back(shape: tuple[Axis, ...]) -> None:
    names = DimNames.fresh()
    text = names.shape(shape).text
    env = {**ENV, **{name: getattr(frt_dims, name) for name in names.functions}}
    assert eval(text, {}, env) == shape


@given(
    st.sampled_from([at_least, at_most, divides, equal]).flatmap(
        lambda rule: st.tuples(polys(), polys()).map(lambda t: rule(*t))
    )
    | st.tuples(polys(), polys(), polys()).map(lambda t: between(*t))
)
def test_a_rule_reads_back(rule: Constraint) -> None:
    names = DimNames.fresh()
    text = names.rule(rule).text
    env = {**ENV, **{name: getattr(frt_dims, name) for name in names.functions}}
    assert eval(text, {}, env) == rule


def test_symbols_come_in_order_of_use() -> None:
    assert dimsrc.symbols([(rows(M), D), (D, F)], [at_least(N_i, D)]) == ["M", "D", "F", "N[i]"]

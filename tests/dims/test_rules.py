"""Rules on dims and axes that are more than one size."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frtspec.dims import (
    Constraint,
    DimError,
    any_axis,
    at_least,
    at_most,
    axis,
    between,
    dims,
    divides,
    either,
    equal,
    instance,
    rows,
    shape_text,
)

D, F = dims("D", "F")


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (at_least(D * F, 1048576), "D*F >= 1048576"),
        (at_most(D, F), "D <= F"),
        (between(512, D, 16384), "512 <= D <= 16384"),
        (divides(16, D), "D % 16 == 0"),
        (divides(16, D + F), "(D + F) % 16 == 0"),
        (equal(D, 2 * F), "D == 2*F"),
    ],
)
def test_rules_print_as_they_are_written(rule: Constraint, text: str) -> None:
    assert rule.text == text


@given(st.integers(0, 200), st.integers(0, 200))
def test_rules_mean_what_they_say(d: int, f: int) -> None:
    env = {"D": d, "F": f}
    assert at_least(D, F).check(env) == (d >= f)
    assert at_most(D, F).check(env) == (d <= f)
    assert between(3, D, F).check(env) == (3 <= d <= f)
    assert divides(16, D).check(env) == (d % 16 == 0)
    assert equal(D, 2 * F).check(env) == (d == 2 * f)


def test_a_rule_on_an_unknown_dim_says_which() -> None:
    with pytest.raises(DimError, match="F is not determined: F unknown"):
        between(1, F, 3).check({"D": 1})


def test_one_exact_size_is_a_polynomial() -> None:
    assert axis((D,)) == D and either(D, D) == D
    assert axis((D,), rows=True) == rows(D) != D
    assert any_axis().alternatives == ()


def test_shapes_print_and_instantiate() -> None:
    (width,) = dims("N[i]")
    shape = (rows(D), width, either(F / 2, F), any_axis())
    assert shape_text(shape) == "[rows D, N[i], F/2 | F, *]"
    assert shape_text(instance(shape, 2)) == "[rows D, N[2], F/2 | F, *]"
    assert shape_text(instance(instance(shape, 2), 5)) == "[rows D, N[2], F/2 | F, *]"


def test_the_package_needs_the_standard_library_only() -> None:
    code = (
        "import sys; import frtspec.dims;"
        "print([m for m in sys.modules if m.split('.')[0] in ('torch', 'lark', 'jinja2', 'black')])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"

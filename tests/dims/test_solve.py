"""The solver: config, then weights, then the other tensors; one wording."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frtspec.dims import (
    DimError,
    any_axis,
    dims,
    either,
    rows,
    solve,
)

M, D, F, H, R = dims("M", "D", "F", "H", "R")
FFN = {"x": (rows(M), D), "w_gate": (D, F), "w_down": (F, D), "y": (rows(M), D)}
sizes = st.integers(1, 40)


@given(st.lists(sizes, max_size=4), sizes, sizes)
def test_rows_fold_any_number_of_leading_axes(lead: list[int], d: int, f: int) -> None:
    found = solve(FFN, {"x": (*lead, d), "w_gate": (d, f), "w_down": (f, d), "y": (*lead, d)})
    assert found.values == {"M": prod(lead), "D": d, "F": f}
    assert found.undetermined == ()


@given(sizes, sizes, st.permutations(list(FFN)))
def test_the_order_of_tensors_does_not_matter(d: int, f: int, order: list[str]) -> None:
    actual = {"x": (2, d), "w_gate": (d, f), "w_down": (f, d), "y": (2, d)}
    assert solve(FFN, {k: actual[k] for k in order}).values == {"M": 2, "D": d, "F": f}


@given(sizes, sizes)
def test_a_swapped_layout_is_found_wherever_the_sizes_differ(d: int, f: int) -> None:
    swapped = {"x": (3, d), "w_gate": (f, d), "w_down": (d, f)}
    if d == f:
        assert solve(FFN, swapped).values["F"] == f
    else:
        with pytest.raises(DimError):
            solve(FFN, swapped)


def test_config_outranks_weights_and_weights_outrank_inputs() -> None:
    with pytest.raises(DimError) as wrong_weight:
        solve(FFN, {"x": (3, 8), "w_gate": (9, 16)}, {"D": 8})
    assert str(wrong_weight.value) == (
        "w_gate, axis 0: expected D = 8, found 9 (D = 8 from the config)"
    )
    with pytest.raises(DimError) as wrong_input:
        solve(FFN, {"x": (3, 8), "w_gate": (9, 16)})
    assert str(wrong_input.value) == (
        "x, axis 1: expected D = 9, found 8 (D = 9 from w_gate, axis 0)"
    )
    assert (wrong_input.value.tensor, wrong_input.value.axis) == ("x", 1)
    assert (wrong_input.value.expected, wrong_input.value.found) == ("D", 8)


def test_what_stays_open_is_named() -> None:
    found = solve({"x": (rows(M), H * D), "w": (D, F)}, {"x": (2, 64)})
    assert found.undetermined == ("D", "F", "H")
    assert solve({"q": (rows(M), H * D)}, {"q": (2, 64)}, {"D": 8}).values["H"] == 8


def test_equations_are_solved_through_each_other() -> None:
    shapes = {"a": (H * D, R), "b": (2 * D + 1, R / 2), "c": (H, any_axis())}
    found = solve(shapes, {"a": (24, 8), "b": (17, 4), "c": (3, 99)})
    assert found.values == {"R": 8, "D": 8, "H": 3}
    with pytest.raises(DimError, match=r"b, axis 0: expected 2\*D \+ 1, found 16: no whole D"):
        solve(shapes, {"b": (16, 4)})


@pytest.mark.parametrize("width", [4, 8])
def test_alternatives_take_either_size(width: int) -> None:
    shapes = {"x": (rows(M), D), "cos": (M, either(D / 2, D))}
    assert solve(shapes, {"cos": (3, width), "x": (3, 8)}).values["D"] == 8
    with pytest.raises(DimError, match=r"cos, axis 1: expected D/2 = 4 or D = 8, found 5"):
        solve(shapes, {"cos": (3, 5), "x": (3, 8)})


def test_alternatives_are_never_guessed() -> None:
    found = solve({"cos": (either(D / 2, D),)}, {"cos": (4,)})
    assert found.values == {} and found.undetermined == ("D",)


def test_repeated_values_have_their_own_dims() -> None:
    (width,) = dims("N[i]")
    shapes = {"x": (rows(M), D), "w": (D, width), "y": (rows(M), width)}
    actual = {"w": ((8, 3), (8, 5)), "y": ((2, 3), (2, 5)), "x": (2, 8)}
    assert solve(shapes, actual).values == {"D": 8, "N[0]": 3, "N[1]": 5, "M": 2}
    with pytest.raises(DimError, match=r"y\[1\], axis 1: expected N\[1\] = 5, found 4"):
        solve(shapes, {**actual, "y": ((2, 3), (2, 4))})


def test_wrong_rank() -> None:
    with pytest.raises(DimError, match=r"w_gate: expected 2 axes, \[D, F\], found 1: \[8\]"):
        solve(FFN, {"w_gate": (8,)})
    with pytest.raises(DimError, match=r"x: expected at least 1 axis, \[rows M, D\], found 0"):
        solve(FFN, {"x": ()})
    with pytest.raises(DimError, match="w_dwon: no tensor of this name"):
        solve(FFN, {"w_dwon": (8, 8)})


def test_empty_batches_are_sizes_too() -> None:
    assert solve(FFN, {"x": (0, 8)}).values == {"M": 0, "D": 8}

"""Layouts of what stands at a boundary, and places as text."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from frtspec.dims import dims
from frtspec.ir import words
from frtspec.runtime.hosts import places
from frtspec.runtime.spec import InputOf, OutputOf, RoutedInput, RoutedOutput

SIZE = st.integers(1, 5)


HEADS = dims("B", "S", "H", "D")


def test_the_runtime_has_every_layout_of_the_language() -> None:
    assert places.LAYOUTS.keys() == words.PORT_LAYOUTS.keys()


@given(SIZE, SIZE, SIZE, SIZE)
def test_heads(b: int, s: int, h: int, d: int) -> None:
    right = torch.arange(b * s * h * d).reshape(b, s, h, d)
    first = right.transpose(1, 2)
    assert torch.equal(places.laid_out(first, "heads_first", HEADS, {}), right)
    assert torch.equal(places.laid_out(right, "tokens_first", HEADS, {}), first)
    flat = right.flatten(2)
    for known in ({"D": d}, {"H": h}, {"H": h, "D": d}):
        assert torch.equal(places.laid_out(flat, "flat_heads", HEADS, known), right)
    assert torch.equal(places.laid_out(right, None, HEADS, {}), right)


@given(SIZE, SIZE, st.sampled_from(["bare", "batch", "heads", "first"]))
def test_tables_that_hold_everything_twice(s: int, r: int, lead: str) -> None:
    table = torch.randn(1, s, r)
    add = {
        "bare": lambda t: t[0],
        "batch": lambda t: t,
        "heads": lambda t: t.unsqueeze(2),
        "first": lambda t: t.unsqueeze(1),
    }[lead]
    halves = add(torch.cat((table, table), -1))
    pairs = add(table.repeat_interleave(2, -1))
    port = dims("B", "S", "R")
    if s > 1 or lead != "heads":  # one token and one head can't be told apart, and need not be
        assert torch.equal(places.laid_out(halves, "half", port, {}), table)
        assert torch.equal(places.laid_out(pairs, "every_other", port, {}), table)


def test_one_token() -> None:
    value = torch.randn(2, 1, 3)
    assert torch.equal(places.laid_out(value, "one_token", dims("B", "D"), {}), value[:, 0])


@pytest.mark.parametrize(
    ("place", "text", "owner"),
    [
        (InputOf("a.b"), "input of a.b", "a.b"),
        (InputOf("a.b", "cond", item=1), "arg cond[1] of a.b", "a.b"),
        (OutputOf("a.b"), "output of a.b", "a.b"),
        (OutputOf("a.b", item=0, layout="half"), "output[0] of a.b", "a.b"),
        (RoutedInput("attention", "q"), "arg q of attention", "seat"),
        (RoutedOutput("rope", item=1), "output[1] of rope", "seat"),
    ],
    ids=str,
)
def test_places_as_the_language_writes_them(place: places.Place, text: str, owner: str) -> None:
    assert places.place_text(place) == text
    assert places.owner("seat", place) == owner


def test_items() -> None:
    one, two = torch.ones(1), torch.zeros(2)
    assert places.item_of((one, two), 1) is two
    assert places.item_of((None, two), None) is two
    assert places.item_of((one,), 3) is None
    assert places.item_of(one, 0) is None
    value: Tensor = places.item_of({"last": two}, None)
    assert value is two

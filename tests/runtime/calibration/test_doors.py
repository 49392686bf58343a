"""A generated package's doors take what the runtime's take."""

from __future__ import annotations

import inspect

import pytest
from flashrt_gen import llama

from frtspec import runtime as rt


@pytest.mark.parametrize("door", ["attach", "build"])
def test_every_option_of_the_runtime_can_be_passed(door):
    theirs = dict(inspect.signature(getattr(rt, door)).parameters)
    del theirs["binding"]
    mine = inspect.signature(getattr(llama, door)).parameters
    assert list(mine) == list(theirs)
    assert {n: p.default for n, p in mine.items()} == {n: p.default for n, p in theirs.items()}


def test_the_generated_doors_pass_their_options_on(monkeypatch):
    for door in ("attach", "build"):
        seen = {}
        monkeypatch.setattr(rt, door, lambda *args, seen=seen, **given: seen.update(given))
        options = {n: object() for n in inspect.signature(getattr(llama, door)).parameters}
        given = {n: v for n, v in options.items() if n not in ("model", "forward")}
        getattr(llama, door)(None, None, **given)
        assert seen == given

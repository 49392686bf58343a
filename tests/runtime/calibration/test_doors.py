"""The doors' options: declared once, passed on by generated packages, checked by name."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields

import pytest
from flashrt_gen import llama

from frtspec import runtime as rt
from frtspec.runtime.options import Options, Sources, read


def test_every_declared_option_has_a_field_and_every_field_is_declared():
    declared = set(rt.AttachOptions.__annotations__)
    assert declared == {f.name for f in (*fields(Options), *fields(Sources))}
    assert set(rt.BuildOptions.__annotations__) < declared
    assert all(
        f.default is not MISSING or f.default_factory is not MISSING
        for f in (*fields(Options), *fields(Sources))
    )


@pytest.mark.parametrize("door", ["attach", "build"])
def test_every_option_is_explained(door):
    told = rt.BuildOptions.__doc__ + (rt.AttachOptions.__doc__ if door == "attach" else "")
    options = (rt.AttachOptions if door == "attach" else rt.BuildOptions).__annotations__
    assert [name for name in options if name not in told] == []


@pytest.mark.parametrize("door", ["attach", "build"])
def test_the_generated_doors_pass_their_options_on(door, monkeypatch):
    seen = {}
    monkeypatch.setattr(rt, door, lambda *args, **given: seen.update(args=args, **given))
    options = {name: object() for name in rt.BuildOptions.__annotations__}
    getattr(llama, door)(1, 2, **options)
    assert seen == {"args": (llama.HOST, 1, 2), **options}
    assert list(inspect.signature(getattr(llama, door)).parameters)[:2] == ["model", "forward"]


@pytest.mark.parametrize(
    "door, name, fix",
    [
        ("attach", "shceme", "did you mean scheme=?"),
        ("build", "floors", "leave floors= out; it is an option of attach"),
        ("attach", "zzz", "leave zzz= out"),
    ],
)
def test_an_option_that_is_none_is_refused_with_the_nearest(door, name, fix):
    with pytest.raises(rt.Refusal) as refused:
        read(door, {name: 1})
    assert refused.value.code == "option.unknown" and refused.value.fix == fix

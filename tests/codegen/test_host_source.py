"""Bindings: config expressions, host paths, views and loops as Python on a live host."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from codegen_kit import ROOT, importable, program_of, written

from frtspec.codegen import configsrc
from frtspec.codegen.configsrc import Scope
from frtspec.codegen.pysrc import Py
from frtspec.diag.source import SourceFile
from frtspec.runtime import Refusal
from frtspec.runtime import spec as rt_spec
from frtspec.syntax import ast
from frtspec.syntax.parse import parse


def expression(text: str) -> ast.Expr:
    """The syntax tree of one config expression."""
    source = f"frt 1\nbinding b {{\n host t class C\n dims {{ X = {text} }}\n}}\n"
    result = parse(SourceFile.from_text("b.frt", source))
    assert result.diagnostics == (), result.diagnostics
    (binding,) = result.file.decls
    assert isinstance(binding, ast.BindingDecl)
    (dims,) = [member for member in binding.members if isinstance(member, ast.DimsDecl)]
    return dims.items[0][1]


SCOPE = Scope({"config": Py("config"), "D": Py('size["D"]'), "i": Py("i")})


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("config.hidden_size", "config.hidden_size"),
        ("config.vision.depth", "config.vision.depth"),
        ("config.layer_types[i]", "config.layer_types[i]"),
        ("D * 2 + 1", 'size["D"] * 2 + 1'),
        ("(D + 1) * 2", '(size["D"] + 1) * 2'),
        ("D - (1 - 2)", 'size["D"] - (1 - 2)'),
        ("D / 2", 'rt.exact_div(size["D"], 2)'),
        ("D // 2", 'size["D"] // 2'),
        ("-D % 3", '-size["D"] % 3'),
        (
            "config.head_dim ?? D / 4",
            'rt.first(rt.get(config, "head_dim"), lambda: rt.exact_div(size["D"], 4))',
        ),
        (
            "config.a ?? config.b ?? 1",
            'rt.first(rt.first(rt.get(config, "a"), lambda: config.b), lambda: 1)',
        ),
        ('config.kinds[i] == "full"', 'config.kinds[i] == "full"'),
        ('not config.kinds[i] == "full"', 'config.kinds[i] != "full"'),
        ("not i < 3", "i >= 3"),
        ("not config.flag", "not config.flag"),
        ("i > 0 and not config.flag or i == 7", "i > 0 and not config.flag or i == 7"),
        ("0 < i <= 3", "0 < i <= 3"),
        ("config.flag == true", "config.flag is True"),
        ("not config.flag == none", "config.flag is not None"),
    ],
)
def test_config_expressions(text: str, python: str) -> None:
    assert configsrc.value(expression(text), SCOPE).text == python


def test_a_choice_names_what_was_asked() -> None:
    text = 'match config.act { "silu" => 1, "gelu_tanh" => 2, else => refuse }'
    source = configsrc.value(expression(text), SCOPE).text
    assert source == 'rt.choose(config.act, {"silu": 1, "gelu_tanh": 2}, what="config.act")'
    env = {"rt": rt_spec, "config": SimpleNamespace(act="relu")}
    refused = eval(source, env)
    assert isinstance(refused, rt_spec.Refused)
    assert (refused.what, refused.value) == ("config.act", "relu")


def test_a_choice_with_an_else() -> None:
    source = configsrc.value(expression("match config.n { 1 => 10, else => D }"), SCOPE).text
    assert source == 'rt.choose(config.n, {1: 10}, what="config.n", otherwise=size["D"])'


# ---------------------------------------------------------------- a whole binding


@pytest.fixture(scope="module")
def towers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The golden host binding, imported."""
    folder = tmp_path_factory.mktemp("towers")
    text = (ROOT / "tests" / "codegen" / "golden" / "host" / "spec.frt").read_text()
    written(program_of(text), folder, package="made_towers")
    with importable(folder, "made_towers"):
        yield importlib.import_module("made_towers.towers")


def config(**changes: Any) -> SimpleNamespace:
    base = {
        "width": 8,
        "depth": 3,
        "kinds": ["a", "skip", "a"],
        "norms": True,
        "norm_bias": True,
        "eps": 1e-3,
    }
    return SimpleNamespace(**{**base, **changes})


def seats(towers: Any, **changes: Any) -> list[rt_spec.Seat]:
    return towers.seats(SimpleNamespace(config=config(**changes)))


def test_seats_of_a_live_host(towers: Any) -> None:
    found = seats(towers)
    assert [seat.name for seat in found] == ["inner[0]", "last"]
    inner, last = found
    assert inner.path == "tower.layers.0.norm" and last.path == "tower.final"
    assert inner.variants == {"bias": "add"} and last.variants == {"bias": "none"}
    assert inner.params == {"eps": 1e-3} and last.params == {}
    assert inner.dims == {"D": 8}
    assert inner.slots["b"] == rt_spec.Weight("tower.layers.0.norm.bias")
    assert last.slots["w"] == rt_spec.Weight(None, view="ones")
    assert last.points["x_in"] == rt_spec.InputOf("tower.final", "hidden")
    assert inner.boundary is not None and inner.boundary.path == "tower.layers.0"
    assert inner.expects[1].of == ("tower.layers.0.norm.norm",)


def test_conditions_choose_seats(towers: Any) -> None:
    every = seats(towers, kinds=["a", "a", "a"])
    assert [seat.name for seat in every] == ["inner[0]", "inner[1]", "last"]
    assert [seat.name for seat in seats(towers, norms=False)] == ["last"]


def test_a_missing_field_has_its_fallback(towers: Any) -> None:
    bare = config()
    del bare.width, bare.eps
    bare.vision = SimpleNamespace(hidden_size=6)
    found = towers.seats(SimpleNamespace(config=bare))
    assert found[0].dims == {"D": 6} and found[0].params == {"eps": 1e-5}


def test_a_size_that_does_not_divide_is_refused(towers: Any) -> None:
    with pytest.raises(Refusal, match="7 / 2 is not a whole number"):
        towers.dims(SimpleNamespace(config=config(width=7)))


def test_a_value_no_arm_serves_is_kept_for_the_report(towers: Any) -> None:
    refused = seats(towers, norm_bias="sometimes")[0].variants["bias"]
    assert isinstance(refused, rt_spec.Refused) and refused.known == (True, False)


def test_attach_and_build_take_what_the_runtime_takes(towers: Any) -> None:
    import inspect

    from frtspec import runtime as rt

    for door in ("attach", "build"):
        mine = inspect.signature(getattr(towers, door)).parameters
        theirs = inspect.signature(getattr(rt, door)).parameters
        assert list(mine) == list(theirs)[1:]
        for name, parameter in mine.items():
            assert parameter.default == theirs[name].default, name
            assert parameter.kind == theirs[name].kind, name


def test_an_index_called_like_a_local(tmp_path: Path) -> None:
    """``at`` is what the seat's path is called in the generated function."""
    text = (ROOT / "tests" / "codegen" / "golden" / "host" / "spec.frt").read_text()
    renamed = text.replace("each layer in", "each at in").replace("{layer}", "{at}")
    renamed = renamed.replace("[layer]", "[at]").replace("not layer ==", "not at ==")
    written(program_of(renamed), tmp_path, package="made_renamed")
    with importable(tmp_path, "made_renamed"):
        module = importlib.import_module("made_renamed.towers")
        assert [seat.path for seat in seats(module)] == ["tower.layers.0.norm", "tower.final"]

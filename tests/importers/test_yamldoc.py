"""YAML read with places: what a loader would make of it, and what a loader lets pass."""

from __future__ import annotations

import pytest
import yaml

from frtspec.diag.source import SourceFile
from frtspec.importers.flashrt.yamldoc import DEEPEST, LONGEST, Map, Scalar, plain, read
from importers import kit


def of(text: str) -> tuple[Map | None, list[str]]:
    held, found = read(SourceFile.from_text("x.yaml", text))
    return held, [f"{d.code}: {d.message}" for d in found]


def test_every_file_of_the_catalog_means_what_a_loader_makes_of_it() -> None:
    files = sorted(kit.folder().rglob("*.yaml"))
    assert len(files) == 44
    for path in files:
        text = path.read_text("utf-8")
        held, found = of(text)
        assert held is not None and not found
        assert plain(held) == yaml.safe_load(text)


@pytest.mark.parametrize(
    "text",
    ["1", "-7", "0x1f", "1_000", "1.5", "2.0e+8", ".inf", "yes", "off", "~", "null", "'1'", "a b"],
)
def test_scalars_are_what_a_loader_makes_of_them(text: str) -> None:
    held, found = of(f"key: {text}")
    assert held is not None and not found
    value = held.get("key")
    assert isinstance(value, Scalar) and value.value == yaml.safe_load(text)


def test_values_know_their_place() -> None:
    source = "é: 1\nkey:\n  - two words\n"
    held, _ = of(source)
    assert held is not None
    key = held.key("key")
    assert key is not None and source[key.span.start : key.span.end] == "key"
    value = held.get("key")
    assert value is not None and source[value.span.start :].startswith("- two words")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2\n", "FRT0882: the key `a` stands twice in one mapping"),
        ("a: {b: 1, b: 1}\n", "FRT0882: the key `b` stands twice in one mapping"),
        ("a: &x [1]\nb: *x\n", "FRT0881: an alias (`*name`) stands here"),
        ("a: &x {b: *x}\n", "FRT0881: an alias (`*name`) stands here"),
        ("[a]: 1\n", "FRT0881: a key has to be a text"),
        ("- a\n", "FRT0881: the file holds a list, not a mapping"),
        ("", "FRT0881: the file is empty"),
        ("a: 1\n---\nb: 2\n", "FRT0881: no YAML: but found another document"),
        (
            "a: 1:30\n",
            "FRT0881: `1:30` can't be read: invalid literal for int() with base 0: '1:30'",
        ),
        (
            "a: " + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1),
            f"FRT0881: nested more than {DEEPEST} levels deep",
        ),
        (
            "a: " + "x" * LONGEST,
            f"FRT0881: {LONGEST + 3} characters are no binding or structure: at most {LONGEST}",
        ),
    ],
)
def test_what_a_loader_lets_pass_is_a_finding(text: str, message: str) -> None:
    assert of(text)[1] == [message]

"""Nothing that a spec declares is ignored: the registry covers every field."""

from __future__ import annotations

import dataclasses

import pytest

from frtspec.ir.consumers import CONSUMERS, MISSING, NONE
from frtspec.syntax import ast

NODES = {
    name: value
    for name, value in vars(ast).items()
    if isinstance(value, type)
    and dataclasses.is_dataclass(value)
    and value.__module__.startswith(ast.__name__)
}


def fields(node: type) -> set[str]:
    return {f.name for f in dataclasses.fields(node)} - {"span"}


@pytest.mark.parametrize("name", NODES)
def test_every_field_has_a_row(name: str) -> None:
    assert set(CONSUMERS[name]) == fields(NODES[name])


def test_every_row_is_about_a_field() -> None:
    assert set(CONSUMERS) == set(NODES)


def test_a_field_without_a_consumer_is_reported() -> None:
    reported = {row.node.__name__ for row in MISSING}
    inside = {"TypeRef"}  # reported with the port that holds it
    without = {name for name, rows in CONSUMERS.items() if NONE in rows.values()}
    assert without - inside <= reported

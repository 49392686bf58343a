"""Facts about two versions of a pipeline."""

from __future__ import annotations

from functools import partial

from frtspec.diff import gates
from frtspec.diff.facts import Found, by_field, named, same
from frtspec.ir.decl import Pipeline

_NAMED = {
    "windows": "window",
    "buffers": "buffer",
    "states": "state",
    "stages": "stage",
    "loops": "loop",
    "substructures": "substructure",
    "conform": "conform",
}


def compare(old: Pipeline, new: Pipeline, found: Found) -> None:
    """Every fact between two pipelines."""
    table = {field: partial(_items, field, word) for field, word in _NAMED.items()}
    by_field(
        old,
        new,
        found,
        {
            "family": lambda old, new, found: found.add(
                "pipeline.changed", "family", f"`{old.family}` became `{new.family}`", old, new
            ),
            **table,
            "embeds": _embeds,
            "gates": lambda old, new, found: gates.compare(old.gates, new.gates, found),
        },
        "contract.changed",
    )


def _items(field: str, word: str, old: Pipeline, new: Pipeline, found: Found) -> None:
    mine, theirs = named(getattr(old, field)), named(getattr(new, field))
    for name in dict.fromkeys((*mine, *theirs)):
        a, b = mine.get(name), theirs.get(name)
        if same(a, b):
            continue
        if a is None and b is not None:
            free = word == "stage" and b.optional
            rule = "pipeline.stage.optional" if free else "pipeline.changed"
            found.add(rule, f"{word} {name}", f"{word} `{name}` is new", None, b)
        else:
            told = "is gone" if b is None else "is not what it was"
            found.add("pipeline.changed", f"{word} {name}", f"{word} `{name}` {told}", a, b)


def _embeds(old: Pipeline, new: Pipeline, found: Found) -> None:
    for name, version in new.embeds:
        if (name, version) not in old.embeds:
            told = f"`{name} version {version}` may make it up too"
            found.add("pipeline.embeds.added", f"embeds {name} v{version}", told, old, new)
    for name, version in old.embeds:
        if (name, version) not in new.embeds:
            told = f"`{name} version {version}` makes it up no more"
            found.add("pipeline.changed", f"embeds {name} v{version}", told, old, new)

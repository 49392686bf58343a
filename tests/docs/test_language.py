"""Every example of the language in the docs is what the compiler says it is."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from frtspec.closure import Purpose, head, needed
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile
from frtspec.sema import analyse
from frtspec.syntax.parse import parse
from tests.catalog.verdicts import SpecFile, World, unchanged
from tests.docs.fences import Example, example, fences

ROOT = Path(__file__).resolve().parents[2]
FRAMES = Path(__file__).parent / "frames"
PAGES = (ROOT / "docs/language.md", ROOT / "README.md")
EXAMPLES = [example(fence) for page in PAGES for fence in fences(page) if fence.language == "frt"]
NAMED = {found.name: found for found in EXAMPLES if found.name}


@cache
def catalog() -> World:
    """The catalog, without the devices' table, which a run has once."""
    files = World.of_catalog().files
    return World({name: file for name, file in files.items() if name != "schemes/auto.frt"})


def source(found: Example) -> SourceFile:
    """The example as a file: as it is, or inside its frame."""
    text = found.fence.text
    if found.frame:
        text = (FRAMES / f"{found.frame}.frt").read_text().replace("HERE", text.strip())
    return SourceFile.from_text(found.label, text)


def findings(found: Example) -> list[Diagnostic]:
    """What the compiler reports about the example, read with the files it asks for."""
    named = [source(NAMED[name]) for name in found.together if name != "catalog"]
    own = [source(found), *named]
    parsed = [(one, parse(one)) for one in own]
    reported = [d for _, result in parsed for d in result.diagnostics]
    world = catalog() if "catalog" in found.together else World()
    heads = {**world.heads, **{one.path: head(one.text) for one in own}}
    wanted = needed(heads, {one.path for one in own}, Purpose.CHECK)
    rest = [file for name, file in world.files.items() if name in wanted]
    files = [(one, result.file) for one, result in parsed]
    with unchanged(world, SpecFile(*files[0])):
        analysis = analyse([*files, *((file.source, file.tree) for file in rest)])
    return [d for d in [*reported, *analysis.diagnostics] if d.span.path == found.label]


@pytest.mark.parametrize("found", EXAMPLES, ids=lambda found: found.label)
def test_example(found: Example) -> None:
    reported = findings(found)
    shown = "\n".join(f"{d.code} {d.message}" for d in reported)
    assert sorted({d.code for d in reported}) == sorted(found.codes), shown


def test_there_are_examples_of_both_kinds() -> None:
    assert sum(bool(found.codes) for found in EXAMPLES) >= 3
    assert sum(not found.codes for found in EXAMPLES) >= 20

"""Every example of the language in the docs is what the compiler says it is."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile
from frtspec.sema import analyse
from frtspec.syntax.parse import parse
from tests.docs.fences import Example, example, fences

ROOT = Path(__file__).resolve().parents[2]
FRAMES = Path(__file__).parent / "frames"
PAGES = (ROOT / "docs/language.md", ROOT / "README.md")
EXAMPLES = [example(fence) for page in PAGES for fence in fences(page) if fence.language == "frt"]
NAMED = {found.name: found for found in EXAMPLES if found.name}


@cache
def catalog() -> tuple[SourceFile, ...]:
    """The catalog's files by path, without the devices' table, which a run has once."""
    paths = sorted((ROOT / "specs").rglob("*.frt"))
    return tuple(
        SourceFile.from_text(path.relative_to(ROOT / "specs").as_posix(), path.read_text())
        for path in paths
        if path.name != "auto.frt"
    )


def source(found: Example) -> SourceFile:
    """The example as a file: as it is, or inside its frame."""
    text = found.fence.text
    if found.frame:
        text = (FRAMES / f"{found.frame}.frt").read_text().replace("HERE", text.strip())
    return SourceFile.from_text(found.label, text)


def findings(found: Example) -> list[Diagnostic]:
    """What the compiler reports about the example, read with the files it asks for."""
    sources = [source(found)]
    for name in found.together:
        sources += catalog() if name == "catalog" else [source(NAMED[name])]
    parsed = [(one, parse(one)) for one in sources]
    reported = [d for _, result in parsed for d in result.diagnostics]
    reported += analyse([(one, result.file) for one, result in parsed]).diagnostics
    return [d for d in reported if d.span.path == found.label]


@pytest.mark.parametrize("found", EXAMPLES, ids=lambda found: found.label)
def test_example(found: Example) -> None:
    reported = [d.code for d in findings(found)]
    shown = "\n".join(f"{d.code} {d.message}" for d in findings(found))
    assert sorted(set(reported)) == sorted(found.codes), shown


def test_there_are_examples_of_both_kinds() -> None:
    assert sum(bool(found.codes) for found in EXAMPLES) >= 3
    assert sum(not found.codes for found in EXAMPLES) >= 20

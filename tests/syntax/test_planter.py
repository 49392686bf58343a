"""Over many planted files nearly every mistake is reported where it is, and none falsely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from frtspec import resources
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile
from frtspec.sema import analyse
from frtspec.syntax.parse import parse
from tests.catalog.verdicts import World, unchanged
from tests.syntax.planter import MEANING, SYNTAX, Kind, Planted, plant
from tests.syntax.support import catalog, source_of

FILES = 200
EACH = 8
LEAST = 0.92


def planted(
    kinds: dict[str, Kind], paths: list[Path], each: int = EACH, files: int = FILES
) -> Iterator[tuple[Path, int, Planted]]:
    """``files`` files with ``each`` mistakes; files too small for them are passed over."""
    texts = [(path, source_of(path).text) for path in paths]
    found = 0
    for seed in range(60):
        for path, text in texts:
            one = plant(text, seed, kinds, each)
            if len(one.mistakes) == each:
                yield path, seed, one
                found += 1
                if found == files:
                    return
    raise AssertionError(f"only {found} files could be planted")


class Tally:
    """What was reported where a mistake is, where none is, and which were missed."""

    def __init__(self) -> None:
        self.total: Counter[str] = Counter()
        self.missed: list[str] = []
        self.false: list[str] = []

    def count(self, name: str, one: Planted, source: SourceFile, found: list[Diagnostic]) -> None:
        lines = {source.position(d.span.start)[0]: d for d in found if d.severity == "error"}
        right = set().union(*(mistake.lines for mistake in one.mistakes))
        self.false += [
            f"{name}, line {at}: {d.code} {d.message}" for at, d in lines.items() if at not in right
        ]
        for mistake in one.mistakes:
            self.total[mistake.kind] += 1
            if not mistake.lines & lines.keys():
                self.missed.append(f"{name}: {mistake.kind}: {mistake.before!r} {mistake.after!r}")

    def judge(self) -> None:
        assert self.false == []
        assert len(self.missed) <= (1 - LEAST) * self.total.total(), self.missed


def test_there_are_kinds_enough() -> None:
    assert len(SYNTAX) + len(MEANING) >= 20


@pytest.mark.parametrize("files", [110, pytest.param(330, marks=pytest.mark.slow)])
def test_mistakes_of_syntax(files: int) -> None:
    tally = Tally()
    every = [
        planted(SYNTAX, catalog(), files=files),
        *(planted({name: kind}, catalog(), each=1, files=1) for name, kind in SYNTAX.items()),
    ]
    for path, seed, one in chain.from_iterable(every):
        source = SourceFile.from_text("a.frt", one.text)
        tally.count(f"{path.stem} {seed}", one, source, list(parse(source).diagnostics))
    tally.judge()
    assert set(tally.total) == set(SYNTAX)


@pytest.mark.parametrize(
    "kinds, each, files",
    [
        (MEANING, 5, 25),  # fewer lines can be wrong in meaning
        (SYNTAX | MEANING, EACH, 70),
        pytest.param(MEANING, 5, 50, marks=pytest.mark.slow),
        pytest.param(SYNTAX | MEANING, EACH, FILES, marks=pytest.mark.slow),
    ],
    ids=["meaning", "any", "meaning-all", "any-all"],
)
def test_mistakes_of_any_kind(kinds: dict[str, Kind], each: int, files: int) -> None:
    """Each planted file is analysed together with those of the catalog that it needs."""
    world = World.of_catalog()
    names = {resources.specs_dir() / name: name for name in world.files}
    tally = Tally()
    for path, seed, one in planted(kinds, list(names), each, files):
        own = world.files[names[path]]
        source = SourceFile.from_text(own.path, one.text)
        result = parse(source)
        others = [world.files[other] for other in world.needed(names[path])]
        with unchanged(world, own):
            analysis = analyse([*((f.source, f.tree) for f in others), (source, result.file)])
        found = [*result.diagnostics, *analysis.diagnostics]
        here = [d for d in found if d.span.path == source.path]
        tally.count(f"{path.parent.name}/{path.stem} {seed}", one, source, here)
    tally.judge()

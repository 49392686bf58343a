"""Over many planted files nearly every mistake is reported where it is, and none falsely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from frtspec.diag.source import SourceFile
from frtspec.syntax.parse import parse
from tests.syntax.planter import SYNTAX, Kind, Planted, plant
from tests.syntax.support import catalog, source_of

FILES = 200
EACH = 8


def planted(kinds: dict[str, Kind]) -> Iterator[tuple[str, Planted]]:
    """``FILES`` files with ``EACH`` mistakes; files too small for them are passed over."""
    texts = [(path.stem, source_of(path).text) for path in catalog()]
    found = 0
    for seed in range(40):
        for name, text in texts:
            one = plant(text, seed, kinds, EACH)
            if len(one.mistakes) == EACH:
                yield f"{name} {seed}", one
                found += 1
                if found == FILES:
                    return
    raise AssertionError(f"only {found} files could be planted")


def test_mistakes_of_syntax() -> None:
    missed, false = [], []
    for name, one in planted(SYNTAX):
        source = SourceFile.from_text("a.frt", one.text)
        lines = Counter(source.position(d.span.start)[0] for d in parse(source).diagnostics)
        right = set().union(*(mistake.lines for mistake in one.mistakes))
        false += [f"{name}: line {line}" for line in lines if line not in right]
        missed += [f"{name}: {m.kind}: {m.after}" for m in one.mistakes if not m.lines & set(lines)]
    hits = 1 - len(missed) / (FILES * EACH)
    assert false == []
    assert hits >= 0.92, missed

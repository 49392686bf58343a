"""Triplets: ``a/``, ``b/`` and the ``events`` that comparing them gives, both ways.

python -m tests.diff.triplets    writes every ``events`` anew
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from frtspec.diag.source import SourceFile
from frtspec.diff.compare import Comparison, Event, compare
from frtspec.diff.consequences import rungs_lost
from frtspec.diff.sides import Texts, keys_of
from frtspec.lock import read_lock, read_ops

GOLDEN = Path(__file__).parent / "golden"


def texts(folder: Path) -> Texts:
    """One side: its specs and its lock; a locked declaration that no file has is unread."""
    paths = sorted(folder.rglob("*.frt"))
    files = {f"{folder.name}/{p.name}": p.read_text(encoding="utf-8") for p in paths}
    sources = {path: SourceFile.from_text(path, text) for path, text in files.items()}
    lock = folder / "spec.lock"
    if not lock.exists():
        return Texts(folder.name, sources)
    source = SourceFile.from_text("spec.lock", lock.read_text(encoding="utf-8"))
    rows, problems = read_lock(source)
    assert problems == ()
    names = {groups[1] for s in sources.values() for groups in keys_of(s.text)}
    unread = tuple(r for r in rows if r.name not in names and r.status == "released")
    return Texts(folder.name, sources, {}, {r.key: r for r in rows}, read_ops(source), unread)


def compared(old: Texts, new: Texts) -> Comparison:
    found = compare(old, new)
    assert isinstance(found, Comparison), [
        f"{d.span.path}: {d}" for side in found for d in side.diagnostics
    ]
    return found


def lines(events: tuple[Event, ...] | list[Event]) -> list[str]:
    return [f"{e.verdict} {e.fact.id}\n    {e.fact.detail}" for e in events]


@cache
def both_ways(folder: Path) -> tuple[Comparison, Comparison]:
    old, new = texts(folder / "a"), texts(folder / "b")
    return compared(old, new), compared(new, old)


def told(folder: Path) -> str:
    """What a triplet's ``events`` has to hold."""
    forth, back = both_ways(folder)
    receipts = [
        {"file": p.name, "receipt": json.loads(p.read_text(encoding="utf-8")), "problems": ()}
        for p in sorted(folder.glob("receipts/*.json"))
    ]
    there = [*forth.events, *rungs_lost(forth, receipts)]
    again = [*back.events, *rungs_lost(back, receipts)]
    return "\n".join(["a -> b", *lines(there), "", "b -> a", *lines(again), ""])


if __name__ == "__main__":
    for case in sorted(GOLDEN.iterdir()):
        (case / "events").write_text(told(case), encoding="utf-8")

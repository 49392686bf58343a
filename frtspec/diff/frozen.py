"""What became of a released version whose bytes moved, in a few words for the lock."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from frtspec.diag.source import SourceFile
from frtspec.diff.compare import Comparison, compare
from frtspec.diff.rules import Level
from frtspec.diff.sides import Texts
from frtspec.diff.sources import old_text
from frtspec.lock import Row

EDITORIAL = "an editorial change, which can ride with the next version"
_WORDS = {
    Level.EDITORIAL: EDITORIAL,
    Level.COMPATIBLE: "a compatible change, of frozen bytes all the same",
    Level.VERSION: "a change of the contract",
    Level.BREAKING: "a change of the contract",
}


def told(
    before: Row, now: SourceFile, beside: dict[str, SourceFile], roots: Sequence[Path], here: Path
) -> str:
    """Editorial, compatible or a contract change, with the facts that make it one.

    beside  the other files of the project and the catalog, for names
    """
    old = old_text(before, roots, here)
    if old is None:
        return "a change of the contract, as far as can be told without the released text"
    found = compare(
        Texts("released", {old.path: old}, beside, single=True),
        Texts("now", {now.path: now}, beside, single=True),
        drafts=True,
    )
    if not isinstance(found, Comparison):
        return _WORDS[Level.VERSION]
    mine = [e for e in found.events if e.fact.rule != "version.missing"]
    level = max((e.rule.level for e in mine), default=Level.EDITORIAL)
    named = [e for e in mine if e.rule.level == level and level > Level.EDITORIAL]
    rules = ", ".join(dict.fromkeys(e.fact.rule for e in named))
    return _WORDS[level] + (f" ({rules})" if rules else "")

"""Facts about rules on sizes: tightened, loosened, rewritten, or not to be told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from frtspec.diff.dimrules import Known
from frtspec.diff.facts import Found
from frtspec.dims import Constraint
from frtspec.ir.canon import canonical, dump

Stated = tuple[str, Any, Constraint | Any, Any]
"""Where it counts (``require``, or ``qualify for …``), condition, the rule, where it stands."""


def rules(old: Iterable[Any], new: Iterable[Any], found: Found) -> None:
    """``old`` and ``new``: rules of two structures."""
    compare(map(_stated, old), map(_stated, new), found)


def _stated(rule: Any) -> Stated:
    head = rule.kind + (f" for {rule.form}" if rule.form else "")
    return head, rule.when, rule.test, rule


def compare(old: Iterable[Stated], new: Iterable[Stated], found: Found) -> None:
    """Facts by place and condition; a rule counts as kept where the others imply it."""
    before, after = _grouped(old), _grouped(new)
    for key in dict.fromkeys((*before, *after)):
        _group(key[0], before.get(key, []), after.get(key, []), found)


def _grouped(stated: Iterable[Stated]) -> dict[tuple[str, str], list[Stated]]:
    out: dict[tuple[str, str], list[Stated]] = {}
    for item in stated:
        out.setdefault((item[0], dump(canonical(item[1]))), []).append(item)
    return out


def _group(head: str, old: list[Stated], new: list[Stated], found: Found) -> None:
    mine, theirs = {dump(canonical(s[2])): s for s in old}, {dump(canonical(s[2])): s for s in new}
    gone = [s for key, s in mine.items() if key not in theirs]
    come = [s for key, s in theirs.items() if key not in mine]
    now, then = _known(new), _known(old)
    weaker = [s for s in gone if not _follows(s[2], now)]
    stronger = [s for s in come if not _follows(s[2], then)]
    if (gone or come) and not weaker and not stronger:
        texts = [" and ".join(s[2].text for s in side) or "nothing" for side in (gone, come)]
        place = (gone[0][3] if gone else None, come[0][3] if come else None)
        found.add("dim.equivalent", head, f"`{texts[0]}` became `{texts[1]}`, the same", *place)
        return
    for item in stronger:
        twin = next((s for s in weaker if _subject(s[2]) == _subject(item[2])), None)
        if twin is not None:
            weaker.remove(twin)
            told = f"`{twin[2].text}` became `{item[2].text}`; neither implies the other"
            found.add("dim.changed", f"{head} {_subject(item[2])}", told, twin[3], item[3])
            continue
        near = next((s for s in gone if _subject(s[2]) == _subject(item[2])), None)
        told = f"`{near[2].text}` became `{item[2].text}`" if near else f"`{item[2].text}` is new"
        place = (near[3] if near else None, item[3])
        found.add("dim.tightened", f"{head} {_subject(item[2])}", told, *place)
    for item in weaker:
        near = next((s for s in come if _subject(s[2]) == _subject(item[2])), None)
        told = f"`{item[2].text}` became `{near[2].text}`" if near else f"`{item[2].text}` is gone"
        place = (item[3], near[3] if near else None)
        found.add("dim.loosened", f"{head} {_subject(item[2])}", told, *place)


def _known(stated: list[Stated]) -> Known:
    return Known.of(s[2] for s in stated if isinstance(s[2], Constraint))


def _follows(rule: Any, known: Known) -> bool:
    return isinstance(rule, Constraint) and known.implies(rule)


def _subject(rule: Any) -> str:
    return str(rule.subject)

"""Did-you-mean: the one candidate that a misspelt name most likely stands for."""

from __future__ import annotations

from collections.abc import Iterable

LONGEST_NAME = 80
"""Longer names get no suggestion; the distance below is quadratic."""


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate nearest to ``name``, or None when none is near enough.

    Near enough: equal but for case and ``-``/``_``, or at most one edit per three
    letters (insert, delete, replace, swap of neighbours). Ties go to the candidate
    that sorts first, so the answer does not depend on the order of ``candidates``.
    """
    if not name or len(name) > LONGEST_NAME:
        return None
    folded = _fold(name)
    limit = max(1, (len(name) + 1) // 3)
    best: tuple[int, str] | None = None
    for candidate in sorted(set(candidates)):
        if candidate == name or not candidate:
            continue
        if abs(len(candidate) - len(name)) > limit:
            continue
        found = _distance(folded, _fold(candidate), limit)
        if found <= limit and found < len(name) and (best is None or found < best[0]):
            best = (found, candidate)
    return best[1] if best else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """``did you mean `x`?`` or None: the text for a diagnostic's ``help``."""
    near = closest(name, candidates)
    return None if near is None else f"did you mean `{near}`?"


def _fold(name: str) -> str:
    return name.casefold().replace("-", "_")


def _distance(a: str, b: str, limit: int) -> int:
    """Optimal string alignment distance; any value above ``limit`` means "too far"."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        older, before, row = before, row, [i] + [0] * len(b)
        for j, y in enumerate(b, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, older[j - 2] + 1)
            row[j] = cost
        if min(row) > limit:
            return limit + 1
    return row[-1]

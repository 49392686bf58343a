"""Facts about two texts of a scheme, and of ``auto``."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from frtspec.diff.facts import Found, same
from frtspec.ir.decl import AutoTable, Route, Scheme


def compare(old: Scheme, new: Scheme, found: Found, known: Collection[tuple[str, int]]) -> None:
    """``known``: the structures that the older side has; a route of another one changes
    nothing that anybody runs."""
    mine, theirs = _keyed(old.routes), _keyed(new.routes)
    for key in dict.fromkeys((*mine, *theirs)):
        a, b = mine.get(key), theirs.get(key)
        if same(a, b):
            continue
        route = b or a
        assert route is not None
        if a is None and (route.structure, route.structure_version) not in known:
            told = f"{key} is new, and so is its structure"
            found.add("scheme.route.added", key, told, None, b)
        elif a is not None and b is not None and same(_plain(a), _plain(b)):
            found.add("scheme.reason", key, "the reason to keep is told otherwise", a, b)
        else:
            told = (
                f"`{_does(a)}` became `{_does(b)}`"
                if a and b
                else (f"`{_does(b)}` is new" if a is None else f"`{_does(a)}` is gone")
            )
            found.add("scheme.route", key, told, a, b)
    if old.otherwise != new.otherwise:
        found.add("scheme.reason", "otherwise", "the reason to keep is told otherwise", old, new)
    order = [k for k in mine if k in theirs], [k for k in theirs if k in mine]
    if order[0] != order[1]:
        found.add("scheme.route", "routes", "routes stand in another order", old, new)


def _keyed(routes: tuple[Route, ...]) -> dict[str, Route]:
    out: dict[str, Route] = {}
    for route in routes:
        seam = f".{route.seam}" if route.seam else ""
        key = base = f"at {route.structure}{seam} version {route.structure_version}"
        number = 2
        while key in out:
            key, number = f"{base} ({number})", number + 1
        out[key] = route
    return out


def _plain(route: Route) -> Any:
    """All but the words of why."""
    return (route.stats, route.use, route.params, route.keep is None, route.keep_when)


def _does(route: Route | None) -> str:
    if route is None or route.use is None:
        return "keep"
    given = ", ".join(f"{name} = {value}" for name, value in route.params)
    stats = ", ".join(f"{s.point}: {s.stat or 'at run time'}" for s in route.stats)
    measured = f"{{ {stats} }} " if stats else ""
    unless = "keep when … " if route.keep_when is not None else ""
    return f"{measured}{unless}use {route.use}" + (f" with ({given})" if given else "")


def auto(old: AutoTable, new: AutoTable, found: Found) -> None:
    """What ``scheme="auto"`` stands for."""
    mine, theirs = dict(old.rows), dict(new.rows)
    for limit in dict.fromkeys((*mine, *theirs)):
        a, b = mine.get(limit), theirs.get(limit)
        if a != b:
            where = "else" if limit is None else f"capability >= {limit}"
            told = f"`{a or 'nothing of its own'}` became `{b or 'nothing of its own'}`"
            found.add("scheme.auto", where, told, old, new)

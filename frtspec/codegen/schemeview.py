"""What the scheme templates need: routes to impl classes, and the table of all schemes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from frtspec.codegen.names import free
from frtspec.codegen.pysrc import Py, call, natural, pyrepr, text_literal, told_lines, tuple_of
from frtspec.codegen.pysrc import imports as import_lines
from frtspec.ir.decl import Amount, AutoTable, Condition, Impl, Route, Scheme, Stat, Together

FindImpl = Callable[[Route], Impl]


@dataclass(frozen=True)
class SchemeView:
    """``routes``: finished ``Route(…)`` calls; ``assertions``: digest checks of what is
    imported from another package."""

    name: str
    path: str
    doc: tuple[str, ...]
    imports: tuple[str, ...]
    assertions: tuple[str, ...]
    source_digest: str
    contract_digest: str
    routes: tuple[str, ...]
    otherwise: str
    imported: str | None


@dataclass(frozen=True)
class SchemesView:
    """``rows``: scheme name and the module it is imported as; ``auto``: the rows of AUTO."""

    imports: tuple[str, ...]
    assertions: tuple[str, ...]
    rows: tuple[tuple[str, str], ...]
    auto: tuple[tuple[Py | None, str], ...]


def scheme_view(
    scheme: Scheme,
    classes: Mapping[int, str],
    find: FindImpl,
    imports: Sequence[str],
    assertions: Sequence[str],
) -> SchemeView:
    """The view of a scheme. ``classes``: the class of each impl, by the impl's identity."""
    routes = [
        _route(route, None if route.use is None else classes[id(find(route))])
        for route in scheme.routes
    ]
    runtime = ["Route", "SchemeSpec", "check_abi"]
    runtime += ["decisions"] if any(route.keep_when for route in scheme.routes) else []
    runtime += ["Stat"] if any(route.stats for route in scheme.routes) else []
    runtime += ["require_digest"] if assertions else []
    names = ", ".join(sorted(runtime, key=lambda name: (name[0].islower(), name)))
    return SchemeView(
        name=scheme.name,
        path=scheme.origin.path,
        doc=tuple(told_lines(scheme.doc, scheme.evidence)),
        imports=import_lines([f"from frtspec.runtime import {names}", *imports]),
        assertions=tuple(assertions),
        source_digest=scheme.origin.source_digest,
        contract_digest=scheme.origin.contract_digest,
        routes=tuple(routes),
        otherwise=scheme.otherwise,
        imported=scheme.status.reason if scheme.status.name == "imported" else None,
    )


def _route(route: Route, impl: str | None) -> str:
    named: dict[str, Py | str] = {"stats": _stats(route.stats), "impl": impl or "None"}
    if route.keep is not None:
        named["keep"] = text_literal(route.keep)
    if route.params:
        named["params"] = pyrepr(dict(route.params))
    if route.keep_when is not None:
        named["keep_when"] = _condition(route.keep_when)
    named["version"] = pyrepr(route.structure_version)
    return call("Route", pyrepr(route.structure), pyrepr(route.seam), **named).text


def _stats(stats: Sequence[Stat]) -> str:
    """Point -> what is measured there; a tuple where there are several."""
    by_point: dict[str, list[str]] = {}
    for stat in stats:
        args = [pyrepr(stat.stat)]
        named: dict[str, Py | str] = {}
        if stat.granularity is not None:
            args.append(pyrepr(stat.granularity[0]))
            if stat.granularity[1] is not None:
                named["size"] = pyrepr(stat.granularity[1])
        if stat.bins is not None:
            named["bins"] = pyrepr(stat.bins)
        by_point.setdefault(stat.point, []).append(call("Stat", *args, **named).text)
    rows = [
        f"{pyrepr(point)}: {items[0] if len(items) == 1 else tuple_of(items)}"
        for point, items in by_point.items()
    ]
    return "{" + ", ".join(rows) + "}"


# ---------------------------------------------------------------- conditions

_FUNCTIONS = {
    "median": "median_amax",
    "max": "most_rows",
    "min": "least_rows",
}
"""Amount -> the function that makes it, where it is not called the same."""

_RANK = {"+": 1, "-": 1, "*": 2, "/": 2}


def _condition(condition: Condition) -> str:
    """``decisions.amax() > 20 * decisions.median_amax()``"""
    if isinstance(condition, Together):
        word = {"and": "all_of", "or": "any_of"}[condition.word]
        return call(f"decisions.{word}", *map(_condition, condition.parts)).text
    left, right = _amount(condition.left), _amount(condition.right)
    return f"{left} {condition.op} {right}"


def _amount(amount: Amount, rank: int = 0) -> str:
    if amount.kind == "number":
        return pyrepr(amount.value)
    if amount.parts:
        mine = _RANK[amount.kind]
        left, right = _amount(amount.parts[0], mine - 1), _amount(amount.parts[1], mine)
        text = f"{left} {amount.kind} {right}"
        return f"({text})" if mine <= rank else text
    args = [pyrepr(amount.name)] if amount.name is not None and amount.kind != "median" else []
    args += [pyrepr(amount.value)] if amount.value is not None else []
    return call(f"decisions.{_FUNCTIONS.get(amount.kind, amount.kind)}", *args).text


def schemes_view(
    modules: Mapping[str, str],
    homes: Mapping[str, str],
    auto: AutoTable | None,
    assertions: Sequence[str],
) -> SchemesView:
    """The view of ``schemes/__init__.py``.

    ``modules``: module of each scheme; ``homes``: the package that holds it.
    """
    lines = [
        "from frtspec.runtime import "
        + ("SchemeSpec, require_digest" if assertions else "SchemeSpec")
    ]
    grouped: dict[str, list[str]] = {}
    aliases = {name: free(module, suffix="_scheme") for name, module in modules.items()}
    for name, module in modules.items():
        shown = module if aliases[name] == module else f"{module} as {aliases[name]}"
        grouped.setdefault(f"{homes[name]}.schemes", []).append(shown)
    lines += [
        f"from {home} import {', '.join(sorted(names, key=natural))}"
        for home, names in grouped.items()
    ]
    rows = () if auto is None else auto.rows
    return SchemesView(
        imports=import_lines(lines),
        assertions=tuple(assertions),
        rows=tuple((name, alias) for name, alias in sorted(aliases.items())),
        auto=tuple((None if least is None else Py(pyrepr(least)), name) for least, name in rows),
    )

"""What the scheme templates need: routes to impl classes, and the table of all schemes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from frtspec.codegen.names import free
from frtspec.codegen.pysrc import Py, call, pyrepr, text_literal, told_lines
from frtspec.codegen.pysrc import imports as import_lines
from frtspec.codegen.unsupported import Unsupported
from frtspec.ir.decl import AutoTable, Impl, Route, Scheme, Stat

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
    seen: set[tuple[str, str | None]] = set()
    routes = []
    for route in scheme.routes:
        if (route.structure, route.seam) in seen:
            raise Unsupported(f"routes for two versions of `{route.structure}`", route.span)
        seen.add((route.structure, route.seam))
        routes.append(_route(route, None if route.use is None else classes[id(find(route))]))
    runtime = ["Route", "SchemeSpec", "check_abi"]
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
    return call("Route", pyrepr(route.structure), pyrepr(route.seam), **named).text


def _stats(stats: Sequence[Stat]) -> str:
    rows = []
    for stat in stats:
        args = [pyrepr(stat.stat)]
        if stat.granularity is not None:
            args.append(pyrepr(stat.granularity[0]))
        rows.append(f"{pyrepr(stat.point)}: {call('Stat', *args)}")
    return "{" + ", ".join(rows) + "}"


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
    lines += [f"from {home} import {', '.join(sorted(names))}" for home, names in grouped.items()]
    rows = () if auto is None else auto.rows
    return SchemesView(
        imports=import_lines(lines),
        assertions=tuple(assertions),
        rows=tuple((name, alias) for name, alias in sorted(aliases.items())),
        auto=tuple((None if least is None else Py(pyrepr(least)), name) for least, name in rows),
    )

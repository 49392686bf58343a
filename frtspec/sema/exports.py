"""``export CATALOG { … }``: what another catalog's document needs and nothing else says."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from frtspec.diag.source import Span
from frtspec.ir import decl as ir
from frtspec.ir import words
from frtspec.sema.common import one_of
from frtspec.sema.context import Context
from frtspec.syntax import ast

ENTRY = "FRT0893"
PER_HOST = "versions"
"""The entry that is about a host of the binding; phases are the other catalog's own words."""


def exports(
    context: Context, nodes: Sequence[ast.ExportDecl], hosts: Collection[str]
) -> tuple[ir.Export, ...]:
    """One block for each catalog, its keys known and each once; ``hosts``: the binding's."""
    found: dict[str, ir.Export] = {}
    for node in nodes:
        target = one_of(context, "catalog", node.target, words.EXPORTS)
        if target is None:
            continue
        if target in found:
            _twice(context, f"export {target}", node.target.span, found[target].span)
            continue
        entries = _entries(context, target, node, hosts)
        found[target] = ir.Export(target, entries, node.target.span)
    return tuple(found.values())


def _entries(
    context: Context, target: str, node: ast.ExportDecl, hosts: Collection[str]
) -> tuple[ir.ExportEntry, ...]:
    known = words.EXPORTS[target]
    found: dict[tuple[str, str | None], ir.ExportEntry] = {}
    for item in node.items:
        key = one_of(context, f"entry of `export {target}`", item.key, known)
        if key is None:
            continue
        about_one, what = known[key]
        sub = None if item.sub is None else item.sub.id
        if about_one != (sub is not None):
            how = f"say of which: `{key}[name] = …`" if about_one else f"write `{key} = …`"
            said = "is about one thing" if about_one else "is about the whole binding"
            context.error(ENTRY, f"`{key}` {said}: {what}", item.key.span, help=how)
            continue
        if key == PER_HOST and item.sub is not None and sub not in hosts:
            context.unknown("host of this binding", item.sub, hosts)
            continue
        if not item.value.value.strip():
            context.error(ENTRY, f"`{key}` is empty", item.value.span, help="leave it out")
        if (key, sub) in found:
            shown = key if sub is None else f"{key}[{sub}]"
            _twice(context, shown, item.key.span, found[key, sub].span)
            continue
        found[key, sub] = ir.ExportEntry(key, sub, item.value.value, item.key.span)
    return tuple(found.values())


def _twice(context: Context, what: str, span: Span, first: Span) -> None:
    context.error(
        "FRT0208",
        f"`{what}` is given twice",
        span,
        notes=((first, "first here"),),
        help="leave one of the two out",
    )

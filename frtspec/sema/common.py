"""Small checks that every kind of declaration needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from frtspec.diag.source import SourceFile, Span
from frtspec.ir import decl as ir
from frtspec.ir import words
from frtspec.sema.context import Context
from frtspec.sema.sizes import short, whole
from frtspec.syntax import ast


class _Spanned(Protocol):
    @property
    def span(self) -> Span: ...


def origin(source: SourceFile, span: Span) -> ir.Origin:
    return ir.Origin(source.path, source.digest, span)


def version(context: Context, number: ast.Number | None, what: str = "version") -> int:
    """A version as a whole number from 1; reports others and gives 1."""
    if number is None:
        return 1
    value = whole(number.value)
    if value is None or value < 1 or "." in number.text or "e" in number.text.lower():
        message = f"a {what} is a whole number from 1, not {short(number.text)}"
        context.error("FRT0317", message, number.span)
        return 1
    return value


def status(context: Context, decls: Sequence[ast.StatusDecl]) -> ir.Status:
    """The status of a declaration; ``draft`` where none is given."""
    if not decls:
        return ir.Status("draft")
    node = decls[0]
    name = one_of(context, "status", node.name, words.STATUSES) or "draft"
    if name == "imported" and node.reason is None:
        context.error(
            "FRT0209",
            "`status imported` has no reason",
            node.span,
            help='say what was not verified: status imported "…"',
        )
    if node.name.id == "draft" and node.reason is not None:
        context.error("FRT0314", "`status draft` takes no reason", node.reason.span)
    return ir.Status(name, None if node.reason is None else node.reason.value)


def one_of(context: Context, what: str, name: ast.Name, table: Iterable[str]) -> str | None:
    """A word of a closed list, or None when it was reported."""
    known = list(table)
    if name.id in known:
        return name.id
    context.unknown(what, name, known, code="FRT0207")
    return None


def only_one(context: Context, members: Sequence[_Spanned], what: str) -> None:
    """Report every member after the first of a kind that stands once."""
    for extra in members[1:]:
        context.error(
            "FRT0208",
            f"`{what}` is given twice",
            extra.span,
            notes=((members[0].span, "first here"),),
            help="leave one of the two out",
        )


def named_once(context: Context, what: str, names: Iterable[ast.Name]) -> None:
    """Report names that stand twice in one list."""
    first: dict[str, Span] = {}
    for name in names:
        if name.id in first:
            context.error(
                "FRT0202",
                f"{what} `{name.id}` is given twice",
                name.span,
                notes=((first[name.id], "first here"),),
                help="leave one of the two out",
            )
        first.setdefault(name.id, name.span)


def metrics(
    context: Context, nodes: Sequence[ast.Metric], known: Iterable[str], where: str
) -> tuple[ir.MetricBound, ...]:
    """Metrics of a gate, their bounds checked for sense."""
    named_once(context, "metric", [n.name for n in nodes])
    out = []
    for node in nodes:
        name = one_of(context, "metric", node.name, known)
        if name is None:
            continue
        bound = None if node.bound is None else node.bound.value
        if node.op is not None and node.bound is not None:
            _check_bound(context, name, node, where)
        out.append(ir.MetricBound(name, node.op, bound, node.span))
    return tuple(out)


def _check_bound(context: Context, name: str, node: ast.Metric, where: str) -> None:
    assert node.bound is not None
    if name not in words.METRICS:
        context.error("FRT0316", f"`{name}` takes no bound", node.span)
        return
    way = words.METRICS[name][0]
    if node.op != way:
        better = "larger" if way == ">=" else "smaller"
        context.error(
            "FRT0316",
            f"{where} bounds `{name}` the wrong way: {better} is better",
            node.span,
            help=f"write {name} {way} {short(node.bound.text)}",
        )
    elif way == ">=" and not 0 < node.bound.value <= 1:
        context.error(
            "FRT0316",
            f"`{name}` lies between 0 and 1, not at {short(node.bound.text)}",
            node.bound.span,
        )


def granularity(
    context: Context, node: ast.Granularity, known: tuple[str, ...], code: str
) -> tuple[str, int | None] | None:
    """``per tensor``, ``per block 16`` as data, or None when it was reported."""
    if node.kind not in known:
        name = ast.Name(node.kind, node.span)
        context.unknown("granularity", name, known, code="FRT0207")
        return None
    sized = node.kind in words.SIZED_GRANULARITIES
    if sized != (node.size is not None):
        message = f"`per {node.kind}` {'needs' if sized else 'takes no'} size"
        help = f"per {node.kind} 16" if sized else f"per {node.kind}"
        context.error(code, message, node.span, help=help)
        return None
    return node.kind, node.size

"""Schemes and the ``auto`` table: routes against impls, statistics against scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from frtspec.diag.source import SourceFile
from frtspec.ir import decl as ir
from frtspec.ir import words
from frtspec.sema.common import granularity, one_of, only_one, origin, status
from frtspec.sema.context import Context
from frtspec.sema.target import Built, Target, resolve
from frtspec.syntax import ast

T = TypeVar("T")

NO_IMPL, STATISTIC, TWICE, NEEDS, AUTO = "FRT0501", "FRT0503", "FRT0504", "FRT0505", "FRT0506"


@dataclass
class Schemes:
    """Builds schemes against the structures and impls of the run.

    ``impls``: target -> impl name -> the impl, None where it has errors of its own.
    """

    structures: Mapping[str, Mapping[int, Built]]
    impls: Mapping[tuple[str, int, str | None], Mapping[str, ir.Impl | None]]

    def build(self, source: SourceFile, node: ast.SchemeDecl, context: Context) -> ir.Scheme:
        ats = _all(node, ast.AtDecl)
        otherwise = _all(node, ast.OtherwiseKeepDecl)
        only_one(context, otherwise, "otherwise")
        only_one(context, _all(node, ast.StatusDecl), "status")
        if not otherwise and "otherwise" not in context.dropped:
            context.error(
                "FRT0209",
                f"scheme `{node.name.id}` does not say what becomes of everything else",
                node.name.span,
                help='add: otherwise keep "the reason, as reports show it"',
            )
        first: dict[tuple[str, int, str | None], ast.AtDecl] = {}
        routes = []
        for at in ats:
            target = resolve(context, at.target, self.structures)
            if target is None:
                continue
            before = first.setdefault(target.key, at)
            if before is not at:
                context.error(
                    TWICE,
                    f"{target.text} version {target.structure.version} has two routes",
                    at.target.span,
                    notes=((before.target.span, "first here"),),
                    help="leave one of the two out",
                )
            routes.append(self.route(context, at, target))
        return ir.Scheme(
            name=node.name.id,
            doc=node.doc.text if node.doc else "",
            status=status(context, _all(node, ast.StatusDecl)),
            routes=tuple(routes),
            otherwise=otherwise[0].reason.value if otherwise else "",
            origin=origin(source, node.span),
            evidence=tuple(m.text.text for m in _all(node, ast.EvidenceDecl)),
        )

    def route(self, context: Context, node: ast.AtDecl, target: Target) -> ir.Route:
        stats = [self.stat(context, item, target) for item in node.stats]
        known = tuple(s for s in stats if s is not None)
        seen: set[str] = set()
        for item in node.stats:
            if item.point.id in seen:
                message = f"the statistic of `{item.point.id}` is given twice"
                context.error("FRT0208", message, item.point.span)
            seen.add(item.point.id)
        if node.use is not None:
            self.use(context, node, node.use, target, known, None in stats)
        elif any(s.stat is not None for s in known):
            message = "nothing uses what is measured here: the host is kept"
            context.error(NEEDS, message, node.stats[0].span, help="leave the statistics out")
        return ir.Route(
            structure=target.structure.name,
            seam=target.seam.name if target.seam else None,
            stats=known,
            use=None if node.use is None else node.use.id,
            params=(),
            keep=None if node.keep is None else node.keep.value,
            span=node.span,
            structure_version=target.structure.version,
        )

    def stat(self, context: Context, node: ast.StatRequest, target: Target) -> ir.Stat | None:
        points = [p.name for p in target.points]
        if node.point.id not in points:
            context.unknown("point", node.point, points)
            return None
        name = one_of(context, "statistic", node.stat, words.STATISTICS)
        if name is None:
            return None
        allowed = words.STATISTICS[name][0]
        if node.granularity is None:
            return ir.Stat(node.point.id, None if name == "none" else name, _default(allowed))
        if not allowed:
            message = f"statistic `{name}` measures nothing: it has no granularity"
            context.error(STATISTIC, message, node.granularity.span)
            return None
        grain = granularity(context, node.granularity, words.GRANULARITIES, STATISTIC)
        if grain is not None and grain[0] not in allowed:
            context.error(
                STATISTIC,
                f"`{name} per {grain[0]}` cannot be measured",
                node.granularity.span,
                help=f"there is {' and '.join(f'{name} per {a}' for a in allowed)}",
            )
            return None
        return None if grain is None else ir.Stat(node.point.id, name, grain)

    def use(
        self,
        context: Context,
        node: ast.AtDecl,
        name: ast.Name,
        target: Target,
        stats: Sequence[ir.Stat],
        broken: bool,
    ) -> None:
        """The impl has to exist, and its static scales and the statistics to match."""
        offered = self.impls.get(target.key, {})
        if name.id not in offered:
            context.unknown(f"impl for {target.text}", name, offered, code=NO_IMPL)
            return
        impl = offered[name.id]
        if impl is None or broken:
            return
        asked = {s.point: s for s in stats if s.stat is not None}
        for scale in impl.scales:
            wanted = f"{scale.point}: amax per {scale.granularity[0]}"
            stat = asked.pop(scale.point, None) if scale.kind == "static" else None
            if scale.kind != "static":
                continue
            if stat is None:
                context.error(
                    NEEDS,
                    f"impl `{impl.name}` scales `{scale.point}` by what was measured, "
                    "and nothing is measured there",
                    name.span,
                    help=f"add {wanted}",
                )
            elif stat.granularity != scale.granularity:
                message = f"impl `{impl.name}` needs {wanted}"
                context.error(NEEDS, message, name.span)
        for point in asked:
            item = next(i for i in node.stats if i.point.id == point)
            context.error(
                NEEDS,
                f"impl `{impl.name}` has no use for the statistic of `{point}`",
                item.span,
                help=f"leave it out, or write {point}: none",
            )


def build_auto(
    source: SourceFile, node: ast.AutoDecl, schemes: Sequence[str], context: Context
) -> ir.AutoTable:
    """The table of ``auto``: rows from high to low, the last for every device."""
    rows: list[tuple[Decimal | None, str]] = []
    for pattern, name in node.arms:
        if name.id not in schemes:
            context.unknown("scheme", name, schemes)
        bound = None if isinstance(pattern, ast.Else) else _capability(context, pattern)
        if rows and rows[-1][0] is None:
            message = "a row after `else` is never reached"
            context.error(AUTO, message, pattern.span.to(name.span))
        elif rows and bound is not None and bound >= (rows[-1][0] or bound):
            message = f"this row is never reached: the one before serves {rows[-1][0]} and above"
            context.error(AUTO, message, pattern.span, help="write rows from high to low")
        if isinstance(pattern, ast.Else) or bound is not None:
            rows.append((bound, name.id))
    if (not rows or rows[-1][0] is not None) and "else" not in context.dropped:
        message = "`auto` does not say what older devices get"
        context.error(AUTO, message, node.span, help="add `else => none` at the end")
    return ir.AutoTable(tuple(rows), origin(source, node.span))


def _capability(context: Context, node: ast.Expr) -> Decimal | None:
    match node:
        case ast.Compare(first=ast.Name(id="capability"), links=((">=", ast.Number() as bound),)):
            return bound.value
        case ast.ErrorNode():
            return None
        case _:
            message = "a row of `auto` asks for a compute capability"
            context.error(AUTO, message, node.span, help="write capability >= 8.9")
            return None


def _default(allowed: tuple[str, ...]) -> tuple[str, int | None] | None:
    return (allowed[0], None) if allowed else None


def _all(node: ast.SchemeDecl, kind: type[T]) -> list[T]:
    return [m for m in node.members if isinstance(m, kind)]

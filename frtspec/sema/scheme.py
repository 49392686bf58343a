"""Schemes and the ``auto`` table: routes against impls, statistics against scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from frtspec.diag.source import SourceFile
from frtspec.ir import decl as ir
from frtspec.ir import words
from frtspec.sema.common import granularity, one_of, only_one, origin, status
from frtspec.sema.context import Context, listing
from frtspec.sema.decisions import Decisions
from frtspec.sema.sizes import whole
from frtspec.sema.target import Built, Target, resolve
from frtspec.syntax import ast

T = TypeVar("T")

NO_IMPL, STATISTIC, TWICE, NEEDS, AUTO = "FRT0501", "FRT0503", "FRT0504", "FRT0505", "FRT0506"
PARAM, CHAINED = "FRT0508", "FRT0417"


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
        first: dict[tuple[str, int, str | None], list[ast.AtDecl]] = {}
        routes = []
        for at in ats:
            target = resolve(context, at.target, self.structures)
            if target is None:
                continue
            before = self.beside(first.setdefault(target.key, []), at, target)
            if before is not None:
                context.error(
                    TWICE,
                    f"{target.text} version {target.structure.version} has two routes",
                    at.target.span,
                    notes=((before.target.span, "first here"),),
                    help="leave one of the two out; two stand beside each other where their "
                    "impls say by `only` that they serve different variants",
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

    def beside(
        self, others: list[ast.AtDecl], node: ast.AtDecl, target: Target
    ) -> ast.AtDecl | None:
        """An earlier route to the target that serves what this one serves; adds this one."""
        mine = self.only(node, target)
        clash = next((at for at in others if not _apart(mine, self.only(at, target))), None)
        others.append(node)
        return clash

    def only(self, node: ast.AtDecl, target: Target) -> Mapping[str, tuple[str, ...]]:
        """The variants that a route's impl is for, by axis."""
        name = node.use.id if node.use is not None else ""
        impl = self.impls.get(target.key, {}).get(name)
        return {} if impl is None else dict(impl.only)

    def route(self, context: Context, node: ast.AtDecl, target: Target) -> ir.Route:
        stats = [self.stat(context, item, target) for item in node.stats]
        known = tuple(s for s in stats if s is not None)
        self.twice(context, node, stats)
        params: tuple[tuple[str, Decimal], ...] = ()
        keep_when: ir.Condition | None = None
        if node.use is not None:
            decisions = Decisions(context, target, known)
            if node.keep_when is not None:
                keep_when = decisions.condition(node.keep_when)
            impl = self.impl(context, node.use, target)
            if impl is not None and None not in stats:
                measured = [(i, s) for i, s in zip(node.stats, stats, strict=True) if s is not None]
                self.match(context, node.use, impl, measured, decisions.used)
            if impl is not None:
                params = route_params(context, node, impl)
        elif any(s.stat is not None for s in known):
            message = "nothing uses what is measured here: the host is kept"
            context.error(NEEDS, message, node.stats[0].span, help="leave the statistics out")
        return ir.Route(
            structure=target.structure.name,
            seam=target.seam.name if target.seam else None,
            stats=known,
            use=None if node.use is None else node.use.id,
            params=params,
            keep=None if node.keep is None else node.keep.value,
            span=node.span,
            structure_version=target.structure.version,
            keep_when=keep_when,
        )

    def twice(self, context: Context, node: ast.AtDecl, stats: Sequence[ir.Stat | None]) -> None:
        """A statistic given twice, and ``none`` beside another one at a point."""
        first: dict[object, ast.StatRequest] = {}
        for item, stat in zip(node.stats, stats, strict=True):
            if stat is None:
                continue
            before = first.setdefault((stat.point, stat.stat, stat.granularity), item)
            message = None
            if before is not item:
                message = f"this statistic of `{stat.point}` is given twice"
            elif first.get((stat.point, None, None), item) is not item:
                message = f"`{stat.point}: none` says that nothing is measured there"
            if message is not None:
                context.error("FRT0208", message, item.point.span)

    def stat(self, context: Context, node: ast.StatRequest, target: Target) -> ir.Stat | None:
        points = [p.name for p in target.points]
        if node.point.id not in points:
            context.unknown("point", node.point, points)
            return None
        kind = next(p.kind for p in target.points if p.name == node.point.id)
        if kind != "statistic" and node.stat.id != "none":
            message = f"`{node.point.id}` is {_KEPT[kind]}: it has no statistic"
            context.error("FRT0325", message, node.point.span, help="leave the point out")
            return None
        name = one_of(context, "statistic", node.stat, words.STATISTICS)
        if name is None:
            return None
        bins = _bins(context, node) if name == "histogram" else None
        if node.args and name != "histogram":
            context.error(STATISTIC, f"`{name}` takes no arguments", node.args[0].span)
            return None
        allowed = words.STATISTICS[name][0]
        if node.granularity is None:
            default = _default(allowed)
            return ir.Stat(node.point.id, None if name == "none" else name, default, bins)
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
        return None if grain is None else ir.Stat(node.point.id, name, grain, bins)

    def impl(self, context: Context, name: ast.Name, target: Target) -> ir.Impl | None:
        """The impl that is used; None where there is none, or none that is right."""
        offered = self.impls.get(target.key, {})
        if name.id not in offered:
            what = f"impl for {target.text}"
            context.unknown(what, name, offered, code=NO_IMPL, everywhere=True)
            return None
        found = offered[name.id]
        if found is not None and found.wire is not None:
            context.error(
                CHAINED,
                f"impl `{found.name}` writes what a chain carries: no route leads to it",
                name.span,
                help=f"a `chain … wire {found.wire}` in a binding finds it by itself",
            )
            return None
        return found

    def match(
        self,
        context: Context,
        name: ast.Name,
        impl: ir.Impl,
        measured: Sequence[tuple[ast.StatRequest, ir.Stat]],
        decided: AbstractSet[ir.Stat],
    ) -> None:
        """What is measured against what the impl needs, and what a decision asks about."""
        used = set(decided)
        for point, grain in impl.measured().items():
            wanted = f"{point}: amax per {_grain(grain)}"
            amaxes = [s for _, s in measured if s.point == point and s.stat == "amax"]
            fitting = [s for s in amaxes if s.granularity == grain]
            used |= set(fitting)
            if not amaxes:
                context.error(
                    NEEDS,
                    f"impl `{impl.name}` scales `{point}` by what was measured, "
                    "and nothing is measured there",
                    name.span,
                    help=f"add {wanted}",
                )
            elif not fitting:
                used |= set(amaxes)
                context.error(NEEDS, f"impl `{impl.name}` needs {wanted}", name.span)
        for item, stat in measured:
            if stat.stat is not None and stat not in used:
                context.error(
                    NEEDS,
                    f"impl `{impl.name}` has no use for the statistic of `{stat.point}`",
                    item.span,
                    help=f"leave it out, or write {stat.point}: none",
                )


def build_auto(
    source: SourceFile, node: ast.AutoDecl, schemes: Sequence[str], context: Context
) -> ir.AutoTable:
    """The table of ``auto``: rows from high to low, the last for every device."""
    rows: list[tuple[Decimal | None, str]] = []
    for pattern, name in node.arms:
        if name.id not in schemes:
            context.unknown("scheme", name, schemes, everywhere=True)
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


def route_params(
    context: Context, node: ast.AtDecl, impl: ir.Impl
) -> tuple[tuple[str, Decimal], ...]:
    """A number for every param of the impl: what the route sets, else the default."""
    declared = {param.name: param for param in impl.params}
    values = {param.name: param.default for param in impl.params}
    given: dict[str, ast.Arg] = {}
    for arg in node.params:
        if arg.name is None:
            message = "a parameter is given by name"
            names = f"impl `{impl.name}` has {listing(declared)}" if declared else None
            context.error(PARAM, message, arg.span, help=names)
            continue
        name = arg.name.id
        if not declared:
            message = f"impl `{impl.name}` takes no parameters"
            context.error(PARAM, message, arg.span, help="leave `with (…)` out")
            continue
        if name not in declared:
            context.unknown(f"parameter of impl {impl.name}", arg.name, declared)
            continue
        if name in given:
            notes = ((given[name].span, "first here"),)
            context.error("FRT0208", f"`{name}` is given twice", arg.span, notes=notes)
            continue
        given[name] = arg
        number = _number(arg.value)
        if number is None:
            if not isinstance(arg.value, ast.ErrorNode):
                context.error(PARAM, f"`{name}` is a number", arg.value.span)
        elif _inside(context, declared[name], number, arg):
            values[name] = number
    return tuple(values.items())


def _inside(context: Context, param: ir.ImplParam, number: Decimal, arg: ast.Arg) -> bool:
    """Whether a number lies in the range that the impl's param has; reports it if not."""
    if param.holds(number):
        return True
    lo, hi = ("" if end is None else str(end) for end in (param.lo, param.hi))
    context.error(
        PARAM,
        f"`{param.name}` is {number}, outside its limits",
        arg.value.span,
        help=f"it goes from {lo} to {hi}" if hi else f"it is {lo} or more",
    )
    return False


def _number(node: object) -> Decimal | None:
    match node:
        case ast.Number(value=value):
            return value
        case ast.Unary(op="-", operand=ast.Number(value=value)):
            return -value
        case _:
            return None


def _bins(context: Context, node: ast.StatRequest) -> int | None:
    """The bins of a histogram, stated in the spec."""
    least, most = words.HISTOGRAM_BINS
    how = f"write histogram(bins = 2048): a power of two, {least} to {most}"
    args = {arg.name.id if arg.name else None: arg for arg in node.args}
    if len(node.args) != 1 or "bins" not in args:
        at = node.args[0].span if node.args else node.stat.span
        context.error(STATISTIC, "a histogram states its bins", at, help=how)
        return None
    number = _number(args["bins"].value)
    bins = whole(number) if number is not None else None
    if bins is None or not least <= bins <= most or bins & (bins - 1):
        context.error(STATISTIC, "these are no bins of a histogram", node.args[0].span, help=how)
        return None
    return bins


def _grain(grain: tuple[str, int | None]) -> str:
    return grain[0] if grain[1] is None else f"{grain[0]} {grain[1]}"


def _default(allowed: tuple[str, ...]) -> tuple[str, int | None] | None:
    return (allowed[0], None) if allowed else None


def _all(node: ast.SchemeDecl, kind: type[T]) -> list[T]:
    return [m for m in node.members if isinstance(m, kind)]


_KEPT = {"content": "content, kept as it is", "observation": "an observation of the call"}


def _apart(one: Mapping[str, tuple[str, ...]], other: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether no variants are served by both."""
    return any(not {*values} & {*other.get(axis, values)} for axis, values in one.items())

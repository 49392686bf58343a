"""How a seat stands in its host: its form, a route's function, an update's cadence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from frtspec.ir import decl as ir
from frtspec.ir import words
from frtspec.sema.common import named_once, one_of
from frtspec.sema.context import Context, listing
from frtspec.syntax import ast

SIBLINGS, FORM, ROUTE = "FRT0608", "FRT0640", "FRT0641"


@dataclass(frozen=True)
class SeatForm:
    """``route`` is there for a route, ``cadence`` for an update."""

    name: str
    route: ir.RouteRef | None = None
    cadence: str | None = None


def seat_form(context: Context, node: ast.FormDecl | None, siblings: bool) -> SeatForm:
    """The form of a seat; without a word about it ``siblings`` or ``swap``, by its members."""
    default = "siblings" if siblings else "swap"
    if node is None:
        return SeatForm(default)
    name = one_of(context, "form", node.name, words.FORMS)
    if name is None:
        return SeatForm(default)
    if (name == "siblings") != siblings:
        problem = "has no `siblings`" if name == "siblings" else "has `siblings`"
        context.error(SIBLINGS, f"the form is {name}, but the seat {problem}", node.span)
        return SeatForm(default)
    return _BUILDERS.get(name, _plain)(context, node)


def _plain(context: Context, node: ast.FormDecl) -> SeatForm:
    if node.params:
        message = f"the form {node.name.id} takes no parameter"
        context.error(FORM, message, node.span, help=f"write `form {node.name.id}`")
    return SeatForm(node.name.id)


# ---------------------------------------------------------------- update


def _update(context: Context, node: ast.FormDecl) -> SeatForm:
    given = _named(context, node, ("cadence",))
    cadence = given.get("cadence")
    if cadence is None and any(param.name is None for param in node.params):
        return SeatForm("update")
    if cadence is None:
        context.error(
            FORM,
            "an update has a cadence: how often its caller runs it",
            node.span,
            help=f"write `form update (cadence = …)`: one of {listing(tuple(words.CADENCES))}",
        )
        return SeatForm("update")
    if not isinstance(cadence, ast.Name):
        context.error(FORM, "the cadence is a word", cadence.span, help=_cadences())
        return SeatForm("update")
    return SeatForm("update", cadence=one_of(context, "cadence", cadence, words.CADENCES))


def _cadences() -> str:
    return f"one of {listing(tuple(words.CADENCES))}"


# ---------------------------------------------------------------- route


def _route(context: Context, node: ast.FormDecl) -> SeatForm:
    """``form route (attention)``, or a function of the host's own with how it is found and
    what it is handed."""
    first = node.params[0] if node.params else None
    if first is None or first.name is not None or not isinstance(first.value, ast.Name):
        context.error(
            ROUTE,
            "a route says first which function the host looks up",
            node.span,
            help=f"write `form route (attention)`; there is {listing(tuple(words.ROUTES))}",
        )
        return SeatForm("route")
    given = _named(context, node, ("via", "args", *_CALLS))
    calls = _calls(context, given)
    known = words.ROUTES.get(first.value.id)
    if known is not None:
        for value in given.values():
            message = f"how `{first.value.id}` is found and called is known"
            context.error(ROUTE, message, value.span, help=f"write `form route ({first.value.id})`")
        via, function, args, _ = known
        rows = tuple(args.items())
        route = ir.RouteRef(first.value.id, via, function, rows, node.span, calls)
        return SeatForm("route", route)
    return SeatForm("route", _own_route(context, node, first.value, given, calls))


_CALLS = {"called_with": True, "called_without": False}


def _calls(context: Context, given: dict[str, ast.Expr]) -> tuple[tuple[str, bool], ...]:
    """Which calls are the seat's: arguments of the function that are true in them, or not."""
    found: dict[str, bool] = {}
    for word, wanted in _CALLS.items():
        value = given.pop(word, None)
        if value is None:
            continue
        names = value.items if isinstance(value, ast.Tuple_) else (value,)
        for name in names:
            if not isinstance(name, ast.Name):
                help = f"write `{word} = is_causal`, or several: `{word} = (is_causal, dense)`"
                context.error(ROUTE, "an argument is named by a word", name.span, help=help)
            elif name.id in found:
                help = "leave one of the two out"
                context.error(ROUTE, f"`{name.id}` is named twice", name.span, help=help)
            else:
                found[name.id] = wanted
    return tuple(found.items())


def _own_route(
    context: Context,
    node: ast.FormDecl,
    function: ast.Name,
    given: Mapping[str, ast.Expr],
    calls: tuple[tuple[str, bool], ...],
) -> ir.RouteRef | None:
    """A function that no table knows: the seat says how it is found and what it is handed."""
    example = f"form route ({function.id}, via = global, args = (query, key))"
    if not given:
        context.unknown("function of a route", function, words.ROUTES, code=ROUTE)
        return None
    via, args = given.get("via"), given.get("args")
    found = None
    if isinstance(via, ast.Name):
        found = one_of(context, "lookup", via, words.DECLARED_LOOKUPS)
    else:
        message = f"the seat does not say how the host finds `{function.id}`"
        context.error(ROUTE, message, node.span, help=f"write `{example}`")
    names: tuple[ast.Expr, ...] = ()
    if args is not None:
        names = args.items if isinstance(args, ast.Tuple_) else (args,)
    words_ = [name for name in names if isinstance(name, ast.Name)]
    if not words_ or len(words_) != len(names):
        message = f"the seat does not say what `{function.id}` is handed"
        span = node.span if args is None else args.span
        context.error(ROUTE, message, span, help=f"its parameters by name: `{example}`")
        return None
    named_once(context, "argument", words_)
    if found is None:
        return None
    rows = tuple((name.id, name.id) for name in words_)
    return ir.RouteRef(function.id, found, function.id, rows, node.span, calls)


def _named(context: Context, node: ast.FormDecl, known: tuple[str, ...]) -> dict[str, ast.Expr]:
    """The named parameters of a form; others are reported."""
    found: dict[str, ast.Expr] = {}
    for place, param in enumerate(node.params):
        if isinstance(param.value, ast.Granularity | ast.OverDim | ast.EachExpr):
            context.error(FORM, "this is no parameter of a form", param.span)
        elif param.name is None:
            if node.name.id != "route" or place:
                help = f"write {known[0]} = …"
                context.error(FORM, "a parameter has a name", param.span, help=help)
        elif param.name.id not in known:
            context.unknown("parameter of the form", param.name, known, code=FORM)
        elif param.name.id in found:
            context.error("FRT0208", f"`{param.name.id}` is given twice", param.span)
        else:
            found[param.name.id] = param.value
    return found


_BUILDERS: Mapping[str, Callable[[Context, ast.FormDecl], SeatForm]] = {
    "route": _route,
    "update": _update,
}

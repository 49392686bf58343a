"""The patterns of a structure's `discover` blocks as Python source."""

from __future__ import annotations

import re

from frtspec.codegen.condsrc import condition
from frtspec.codegen.pysrc import Py, call, pyrepr, tuple_of
from frtspec.ir.decl import Discover, Role, RolePlace, RoleSlots, RouteRef, Structure
from frtspec.ir.expr import AnyOf, AxisIs, Cond
from frtspec.ir.walk import conditions


def pattern_rows(structure: Structure) -> tuple[str, ...]:
    """One ``Pattern(…)`` a `discover` block, in order."""
    return tuple(_pattern(found, structure).text for found in structure.discover)


def names_used(rows: tuple[str, ...]) -> set[str]:
    """What of ``frtspec.runtime`` the rows mention."""
    text = "\n".join(rows)
    known = ("Held", "Pattern", "Role", "RoleAt", "Routed")
    return {name for name in known if re.search(rf"\b{name}\(", text)}


def _pattern(found: Discover, structure: Structure) -> Py:
    named: dict[str, Py | str] = {
        "seam": pyrepr(found.seam),
        "roles": tuple_of([_role(role) for role in found.roles]),
    }
    if found.points:
        named["points"] = _places(found.points)
    if found.variants:
        named["variants"] = pyrepr(dict(found.variants))
    if found.around:
        named["around"] = pyrepr(True)
    if found.ports:
        named["ports"] = _places(found.ports)
    if structure.excluded:
        named["excluded"] = _test(AnyOf(structure.excluded))
    if found.placeless:
        named["placeless"] = pyrepr(dict(found.placeless))
    if found.dims:
        named["dims"] = pyrepr(found.dims)
    if found.route is not None:
        named["route"] = _route(found.route)
    if found.called:
        named["called"] = pyrepr(dict(found.called))
    if found.update:
        named["update"] = pyrepr(True)
    if found.block:
        named["block"] = pyrepr(True)
    return _spread("Pattern", named)


def _role(role: Role) -> Py:
    args: list[Py | str] = [pyrepr(role.name), pyrepr(role.kind)]
    named: dict[str, Py | str] = {}
    if role.where != "below":
        named["where"] = pyrepr(role.where)
    if role.index is not None:
        named["repeated"] = pyrepr(True)
    if role.parameters:
        named["holds"] = tuple_of([_held(held) for held in role.parameters])
    if role.called:
        named["called"] = pyrepr(role.called)
    if role.tells:
        named["tells"] = pyrepr({axis: dict(facts) for axis, facts in role.tells})
    if role.gives is not None:
        named["gives"] = pyrepr(role.gives)
    return call("Role", *args, **named)


def _held(held: RoleSlots) -> Py:
    named: dict[str, Py | str] = {}
    if held.optional:
        named["optional"] = pyrepr(True)
    if held.when is not None:
        named["when"] = _test(held.when)
    return call("Held", pyrepr(held.slots), **named)


def _places(rows: tuple[tuple[str, RolePlace], ...]) -> str:
    inner = ", ".join(f"{pyrepr(name)}: {_place(place)}" for name, place in rows)
    return f"{{{inner}}}"


def _place(place: RolePlace) -> Py:
    args = [pyrepr(place.kind)]
    if place.role is not None:
        args.append(pyrepr(place.role))
    named = {
        name: Py(pyrepr(value))
        for name, value in (("arg", place.arg), ("item", place.item), ("layout", place.layout))
        if value is not None
    }
    if place.routed:
        named["routed"] = Py(pyrepr(True))
    return call("RoleAt", *args, **named)


def _route(route: RouteRef) -> Py:
    calls = {"calls": pyrepr(dict(route.calls))} if route.calls else {}
    return call(
        "Routed",
        pyrepr(route.name),
        via=pyrepr(route.via),
        function=pyrepr(route.function),
        args=pyrepr(dict(route.args)),
        **calls,
    )


def _test(cond: Cond) -> Py:
    """A condition on variants as a function of them."""
    axes = sorted({t.axis for t in conditions(cond) if isinstance(t, AxisIs)})
    return Py(f"lambda v: {condition(cond, {axis: f'v[{pyrepr(axis)}]' for axis in axes})}")


def _spread(function: str, named: dict[str, Py | str]) -> Py:
    """A call whose last comma makes the formatter give each argument a line."""
    return Py(f"{function}({', '.join(f'{key}={value}' for key, value in named.items())},)")

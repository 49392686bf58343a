"""Conditions of a dataflow as Python source, and which optional values they prove present."""

from __future__ import annotations

from collections.abc import Mapping

from frtspec.codegen.pysrc import AND, NOT, OR, Py, binary, pyrepr
from frtspec.ir.expr import AllOf, AnyOf, AxisIs, Cond, IsPresent, Not


def negated(cond: Cond) -> Cond:
    """The opposite of a condition."""
    return cond.cond if isinstance(cond, Not) else Not(cond)


def condition(cond: Cond, names: Mapping[str, str]) -> Py:
    """``norm_rounding == "before_weight"``, ``cond_scale is not None``."""
    match cond:
        case AxisIs(axis=axis, values=values):
            return _axis(axis, values, names, negated=False)
        case IsPresent(name=name):
            return binary("is not", Py(names.get(name, name)), Py("None"))
        case Not(cond=AxisIs(axis=axis, values=values)):
            return _axis(axis, values, names, negated=True)
        case Not(cond=IsPresent(name=name)):
            return binary("is", Py(names.get(name, name)), Py("None"))
        case Not(cond=inner):
            return Py(f"not {condition(inner, names).at(NOT)}", NOT)
        case AllOf(conds=conds):
            return _joined("and", AND, [condition(c, names) for c in conds])
        case AnyOf(conds=conds):
            return _joined("or", OR, [condition(c, names) for c in conds])


def _axis(axis: str, values: tuple[str, ...], names: Mapping[str, str], negated: bool) -> Py:
    subject = Py(names.get(axis, axis))
    if len(values) == 1:
        return binary("!=" if negated else "==", subject, Py(pyrepr(values[0])))
    return binary("not in" if negated else "in", subject, Py(pyrepr(values)))


def _joined(word: str, level: int, parts: list[Py]) -> Py:
    return Py(f" {word} ".join(part.at(level + 1) for part in parts), level)


def spoken(cond: Cond) -> str:
    """The condition as the spec would write it, for messages."""
    match cond:
        case AxisIs(axis=axis, values=values):
            shown = values[0] if len(values) == 1 else f"({', '.join(values)})"
            return f"{axis} is {shown}"
        case IsPresent(name=name):
            return f"{name} is given"
        case Not(cond=inner):
            return f"not ({spoken(inner)})"
        case AllOf(conds=conds):
            return " and ".join(spoken(c) for c in conds)
        case AnyOf(conds=conds):
            return " or ".join(spoken(c) for c in conds)


def proves(cond: Cond) -> frozenset[str]:
    """Names that are certainly present where the condition holds."""
    match cond:
        case IsPresent(name=name):
            return frozenset({name})
        case AllOf(conds=conds):
            return frozenset().union(*(proves(c) for c in conds))
        case _:
            return frozenset()


def axes(cond: Cond) -> frozenset[str]:
    """Variant axes that the condition asks about."""
    match cond:
        case AxisIs(axis=axis):
            return frozenset({axis})
        case Not(cond=inner):
            return axes(inner)
        case AllOf(conds=conds) | AnyOf(conds=conds):
            return frozenset().union(*(axes(c) for c in conds))
        case _:
            return frozenset()


def holds(cond: Cond, combo: Mapping[str, str]) -> bool | None:
    """Whether the condition holds for a choice of variants; None where that depends on
    what is given."""
    match cond:
        case AxisIs(axis=axis, values=values):
            return combo[axis] in values if axis in combo else None
        case IsPresent():
            return None
        case Not(cond=inner):
            known = holds(inner, combo)
            return None if known is None else not known
        case AllOf(conds=conds):
            found = [holds(c, combo) for c in conds]
            return False if False in found else None if None in found else True
        case AnyOf(conds=conds):
            found = [holds(c, combo) for c in conds]
            return True if True in found else None if None in found else False

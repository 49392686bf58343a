"""Sizes under other names: the renaming that makes two structures agree, if there is one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from frtspec.diag.source import Span
from frtspec.dims import Axis, Constraint, Poly
from frtspec.ir.decl import Structure

T = TypeVar("T")


def renaming(old: Structure, new: Structure) -> dict[str, str]:
    """Old dim -> new dim, of those that only one side has: found where slots and ports of the
    same name have them in the same places, and never by guess."""
    gone = [d for d in old.dims if d not in new.dims]
    come = [d for d in new.dims if d not in old.dims]
    if not gone or not come:
        return {}
    candidates: dict[str, set[str]] = {}
    theirs = {item.name: item for item in _shaped(new)}
    for item in _shaped(old):
        other = theirs.get(item.name)
        if other is None or len(other.shape or ()) != len(item.shape or ()):
            continue
        for mine, its in zip(item.shape or (), other.shape or (), strict=True):
            for name in set(mine.symbols()) & set(gone):
                fit = {o for o in come if str(mine.subs({name: Poly.symbol(o)})) == str(its)}
                candidates[name] = candidates.get(name, fit) & fit
    out = {name: next(iter(fit)) for name, fit in candidates.items() if len(fit) == 1}
    return out if len(set(out.values())) == len(out) else {}


def _shaped(structure: Structure) -> list[Any]:
    items: tuple[Any, ...] = (*structure.inputs, *structure.outputs, *structure.slots)
    return [item for item in items if item.shape is not None]


def renamed(value: T, names: Mapping[str, str]) -> T:
    """The IR with other names for its dims."""
    env = {old: Poly.symbol(new) for old, new in names.items()}
    return _mapped(value, env, names)  # type: ignore[no-any-return]


def _mapped(value: Any, env: Mapping[str, Poly], names: Mapping[str, str]) -> Any:
    match value:
        case Axis():
            return value.subs(env)
        case Constraint(kind=kind, args=args):
            return Constraint(kind, tuple(arg.subs(env) for arg in args))
        case tuple():
            return tuple(_mapped(item, env, names) for item in value)
        case Structure():
            changed = {
                field.name: _mapped(getattr(value, field.name), env, names)
                for field in dataclasses.fields(value)
                if field.name not in ("origin", "dims", "evidence", "discover")
            }
            dims = tuple(names.get(dim, dim) for dim in value.dims)
            return dataclasses.replace(value, dims=dims, **changed)
        case Span():
            return value
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            changed = {
                field.name: _mapped(getattr(value, field.name), env, names)
                for field in dataclasses.fields(value)
                if field.name != "whole"
            }
            return dataclasses.replace(value, **changed)
        case _:
            return value

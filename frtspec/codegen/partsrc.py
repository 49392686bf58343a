"""The parts of the host that a seat's form calls, as generated code states them."""

from __future__ import annotations

from collections.abc import Callable

from frtspec.codegen import configsrc
from frtspec.codegen.configsrc import Scope
from frtspec.codegen.pysrc import Py, call, pyrepr, tuple_of
from frtspec.ir.decl import PartRef, PlaceRef


def parts_text(parts: tuple[PartRef, ...], scope: Scope, place: Callable[[PlaceRef], Py]) -> str:
    """``{"attend": rt.HostPart((f"{at}.attn",), given=("rotary",), …)}``"""
    return "{" + ", ".join(f"{pyrepr(p.part)}: {_part(p, scope, place)}" for p in parts) + "}"


def _part(part: PartRef, scope: Scope, place: Callable[[PlaceRef], Py]) -> Py:
    modules = tuple_of([configsrc.path(path, scope, "at") for path in part.paths])
    named: dict[str, Py | str] = {}
    if part.given:
        named["given"] = pyrepr(part.given)
    if part.places:
        rows = ", ".join(f"{pyrepr(name)}: {place(at)}" for name, at in part.places)
        named["places"] = "{" + rows + "}"
    if part.result is not None:
        named["result"] = place(part.result)
    return call("rt.HostPart", modules, **named)

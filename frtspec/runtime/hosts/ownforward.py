"""A forward, or an attention processor, of one module's own: the same code, with some global
names standing for something else, or with something done about it.

The class, its file and every other module stay as they are, and what was made is kept on the
module itself, so that it goes when the module goes.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from torch import nn

from frtspec.runtime.errors import Refusal
from frtspec.runtime.spec import Routed

Undo = Callable[[], None]


def own_forward(module: nn.Module, routed: Routed) -> FunctionType:
    """The forward of the module's class. Raises Refusal where it has one of its own."""
    if "forward" in module.__dict__ and "forward" not in module.__dict__.get(_ANEW, {}):
        raise refused(module, routed, "its forward was replaced by something else already")
    forward = type(module).forward
    if not isinstance(forward, FunctionType):
        raise refused(module, routed, "its forward is no Python function")
    return forward


def innermost(function: FunctionType) -> FunctionType:
    """The function below its decorators."""
    inner = getattr(function, "__wrapped__", None)
    return innermost(inner) if isinstance(inner, FunctionType) else function


def named(function: FunctionType, routed: Routed, owner: object) -> Any:
    """What the function's code calls by the routed name."""
    inner, name = innermost(function), routed.function
    if name not in _names(inner.__code__) or name not in inner.__globals__:
        raise refused(owner, routed, f"{inner.__qualname__} does not name {name}")
    return inner.__globals__[name]


def _names(code: CodeType) -> Iterator[str]:
    """Global names that some code reads, also in functions defined inside."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


Around = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Makes a forward out of a forward, with something done about it."""


class _Anew:
    """A module's forward, or its attention processor, with some global names of its code
    standing for something else; several at once where several functions are listened to.

    ``arounds`` go about the forward that comes of it, the last one outermost.
    """

    def __init__(self, module: nn.Module, what: str) -> None:
        self.module, self.what = module, what
        self.original: Any = type(module).forward if what == "forward" else module.processor
        self.layers: list[dict[str, Any]] = []
        self.arounds: list[Around] = []
        self.entry: tuple[dict[str, Any], str, Any] | None = None
        self._undo: Undo | None = None

    def apply(self, routed: Routed) -> None:
        """Puts what holds now in place; what stood there before, when nothing is left."""
        if self._undo is not None:
            self._undo()
            self._undo = self.entry = None
        overlay = {name: value for layer in self.layers for name, value in layer.items()}
        if not overlay and not self.arounds:
            forget(self.module, _ANEW, self.what)
            return
        made = self._made(overlay, routed)
        self._undo = put(self.module, self.what, made)
        self.entry = _entries(self.module, self.what), self.what, made

    def _made(self, overlay: dict[str, Any], routed: Routed) -> Any:
        if self.what == "forward":
            function = self.original
            if overlay:
                function = _overlaid(function, overlay, routed, self.module)
            forward: Callable[..., Any] = MethodType(function, self.module)
            for around in self.arounds:
                forward = functools.wraps(forward)(around(forward))
            return forward
        kind: Any = type(self.original)
        call = _overlaid(kind.__call__, overlay, routed, self.original)
        twin = copy.copy(self.original)
        names = {"__call__": call, "__module__": kind.__module__}
        twin.__class__ = type(kind.__name__, (kind,), names)
        return twin


_ANEW = "_frt_anew"
"""On a module, while something stands there: ``forward`` or ``processor`` -> what does."""


def named_anew(module: nn.Module, what: str, layer: dict[str, Any], routed: Routed) -> Undo:
    return _anew(module, what, routed, layer=layer)


def _anew(
    module: nn.Module,
    what: str,
    routed: Routed,
    *,
    layer: dict[str, Any] | None = None,
    around: Around | None = None,
) -> Undo:
    anew: _Anew = module.__dict__.setdefault(_ANEW, {}).setdefault(what, _Anew(module, what))
    if layer is not None:
        anew.layers.append(layer)
    if around is not None:
        anew.arounds.append(around)

    def undo() -> None:
        anew.layers = [other for other in anew.layers if other is not layer]
        anew.arounds = [other for other in anew.arounds if other is not around]
        anew.apply(routed)

    try:
        anew.apply(routed)
    except Refusal:
        undo()
        raise
    return undo


def _overlaid(
    function: FunctionType, overlay: dict[str, Any], routed: Routed, owner: object
) -> FunctionType:
    """The same function where some global names stand for something else. Its decorators
    are built anew around it."""
    inner = getattr(function, "__wrapped__", None)
    if inner is None:
        names = {**function.__globals__, **overlay}
        # With a module's name, a tracer would guard on what that module holds by these names.
        names.pop("__name__", None)
        return _copied(function, names, function.__closure__)
    cells = function.__closure__ or ()
    if not isinstance(inner, FunctionType) or not any(c.cell_contents is inner for c in cells):
        raise refused(owner, routed, f"a decorator of {function.__qualname__} hides what it calls")
    rebuilt = _overlaid(inner, overlay, routed, owner)
    closure = tuple([CellType(rebuilt) if c.cell_contents is inner else c for c in cells])
    made = _copied(function, function.__globals__, closure)
    made.__dict__["__wrapped__"] = rebuilt
    return made


def _copied(
    function: FunctionType, names: dict[str, Any], closure: tuple[CellType, ...] | None
) -> FunctionType:
    made = FunctionType(function.__code__, names, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    made.__dict__.update(function.__dict__)
    return made


def put(module: nn.Module, name: str, value: Any) -> Undo:
    """Set an attribute of a module; the undoing puts back exactly what was there."""
    entries = _entries(module, name)
    before, held = name in entries, entries.get(name)
    entries[name] = value

    def undo() -> None:
        if before:
            entries[name] = held
        else:
            entries.pop(name, None)

    return undo


def _entries(module: nn.Module, name: str) -> dict[str, Any]:
    """The dict of a module that an attribute is in, or goes into."""
    children: dict[str, Any] = module._modules
    return children if name in children else module.__dict__


def own_processor(module: nn.Module) -> Any:
    """The attention processor that the host gave the module; None where it has none."""
    anew = module.__dict__.get(_ANEW, {}).get("processor")
    return getattr(module, "processor", None) if anew is None else anew.original


def forget(module: nn.Module, what: str, key: str) -> None:
    """Take an entry out of a dict that is kept on a module, and the dict when it is empty."""
    held = module.__dict__.get(what, {})
    held.pop(key, None)
    if not held:
        module.__dict__.pop(what, None)


def enclose(module: nn.Module, around: Around, routed: Routed) -> Undo:
    """Give one module a forward with ``around`` about it; the undoing takes just that off.

    Raises Refusal ``host.route`` where its forward was replaced by something else.
    """
    own_forward(module, routed)
    return _anew(module, "forward", routed, around=around)


def placed(module: nn.Module) -> tuple[tuple[dict[str, Any], str, Any], ...]:
    """What stands on a module now in place of its own: the dict, the name, and the value."""
    found = []
    for what in ("forward", "processor"):
        anew = module.__dict__.get(_ANEW, {}).get(what)
        if anew is not None and anew.entry is not None:
            found.append(anew.entry)
    return tuple(found)


def refused(owner: object, routed: Routed, why: str) -> Refusal:
    return Refusal(
        "host.route",
        f"{type(owner).__name__} does not look up {routed.name} ({routed.via}): {why}",
        fix="use a binding for this version of the host, or leave this seat out",
    )

"""Functions that a host looks up when it runs: finding them, and listening to their calls.

Nothing process-wide changes. A function that a module's forward names is reached by giving
this one module a forward of its own: the same code, with one name standing for our wrapper.
A function that a module holds, or its attention processor names, is reached through that
attribute. Every way is undone when the last listener leaves.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from torch import nn

from frtspec.runtime.errors import Refusal
from frtspec.runtime.spec import Routed

SeeCall = Callable[[Mapping[str, Any], Any], None]
"""Sees one call: what was handed (by the names in ``Routed.args``), what came back."""

CACHE_NAMES = ("cache", "past_key_values", "past_key_value")
"""What transformers has called the cache that a module is handed."""

Undo = Callable[[], None]


class Tap:
    """One routed function of one module, with everybody who listens to it."""

    def __init__(self, module: nn.Module, routed: Routed) -> None:
        self.routed = routed
        self.listeners: list[SeeCall] = []
        self._undo = INSTALL[routed.via](self, module)

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function``, with the listeners told of each call; a wrapped one stays as it is."""
        if getattr(function, "_frt_tap", None) is self:
            return function

        @functools.wraps(function)
        def heard(*args: Any, **kwargs: Any) -> Any:
            output = function(*args, **kwargs)
            given = self.arguments(function, args, kwargs)
            for see in tuple(self.listeners):
                see(given, output)
            return output

        heard._frt_tap = self  # type: ignore[attr-defined]
        return heard

    def arguments(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What the call was handed, by our names; None for what it was not."""
        names = _parameters(function)
        found = {}
        for ours, own in self.routed.args.items():
            place = names.index(own) if own in names else len(args)
            given = args[place] if place < len(args) else None
            found[ours] = kwargs.get(own, given)
        return found

    def close(self) -> None:
        self._undo()


class Listener:
    """A listener that is on; ``remove`` takes it off."""

    def __init__(self, key: tuple[int, str], tap: Tap, see: SeeCall) -> None:
        self._key, self._tap, self._see = key, tap, see

    def remove(self) -> None:
        with suppress(ValueError):
            self._tap.listeners.remove(self._see)
        if not self._tap.listeners and _TAPS.get(self._key) is self._tap:
            del _TAPS[self._key]
            self._tap.close()


_TAPS: dict[tuple[int, str], Tap] = {}
"""(module's id, name of the function) -> its tap, while somebody listens."""


def listen(module: nn.Module, routed: Routed, see: SeeCall) -> Listener:
    """Have ``see`` told of every call of the routed function by this module.

    Raises Refusal ``host.route`` where the module does not look the function up so.
    """
    key = id(module), routed.name
    tap = _TAPS.get(key)
    if tap is None:
        tap = _TAPS[key] = Tap(module, routed)
    tap.listeners.append(see)
    return Listener(key, tap, see)


def check(module: nn.Module, routed: Routed) -> None:
    """Whether the module looks the function up as the binding says, and hands it what the
    binding names. Raises Refusal ``host.route``."""
    Tap(module, routed).close()


# ---------------------------------------------------------------- ways to find a function


def _registry(tap: Tap, module: nn.Module) -> Undo:
    """The forward reads a registry by the name in the module's config."""
    forward = _forward(module, tap.routed)
    real = _named(forward, tap.routed, module)
    overlay: dict[str, Any] = {tap.routed.function: _Registry(real, tap.wrap)}
    eager = _innermost(forward).__globals__.get("eager_attention_forward")
    if eager is not None:
        overlay["eager_attention_forward"] = tap.wrap(eager)
    return _named_anew(module, "forward", overlay, tap.routed)


class _Registry:
    """A registry whose functions are wrapped on their way out."""

    def __init__(self, real: Any, wrap: Callable[[Callable[..., Any]], Any]) -> None:
        self._real, self._wrap = real, wrap

    def get_interface(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrap(self._real.get_interface(*args, **kwargs))

    def get(self, *args: Any, **kwargs: Any) -> Any:
        found = self._real.get(*args, **kwargs)
        return None if found is None else self._wrap(found)

    def __getitem__(self, key: Any) -> Any:
        return self._wrap(self._real[key])

    def __contains__(self, key: Any) -> bool:
        return key in self._real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _global(tap: Tap, module: nn.Module) -> Undo:
    """The forward names a function of its file."""
    forward = _forward(module, tap.routed)
    function = _named(forward, tap.routed, module)
    _check_handed(function, tap.routed, module)
    return _named_anew(module, "forward", {tap.routed.function: tap.wrap(function)}, tap.routed)


def _attribute(tap: Tap, module: nn.Module) -> Undo:
    """The module holds the function."""
    name = tap.routed.function
    held = getattr(module, name, None)
    if not callable(held) or isinstance(held, nn.Module):
        raise _refused(module, tap.routed, f"it holds no function {name}")
    _check_handed(held, tap.routed, module)
    return _put(module, name, tap.wrap(held))


def _processor(tap: Tap, module: nn.Module) -> Undo:
    """The module's attention processor names the function in its file."""
    anew = _ANEW.get((id(module), "processor"))
    processor = getattr(module, "processor", None) if anew is None else anew.original
    call = getattr(type(processor), "__call__", None)  # noqa: B004 - the function is wanted
    if processor is None or not isinstance(call, FunctionType):
        raise _refused(module, tap.routed, "it has no attention processor in Python")
    function = _named(call, tap.routed, processor)
    _check_handed(function, tap.routed, module)
    return _named_anew(module, "processor", {tap.routed.function: tap.wrap(function)}, tap.routed)


def _cache(tap: Tap, module: nn.Module) -> Undo:
    """The module is handed a cache and calls a method of it; the method is wrapped while
    the module runs."""
    name = tap.routed.function
    wrapped: list[Any] = []

    def before(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = [*args, *(kwargs.get(known) for known in CACHE_NAMES)]
        caches = [item for item in given if callable(getattr(item, name, None))]
        for cache in caches:
            if not isinstance(cache, nn.Module) and name not in cache.__dict__:
                cache.__dict__[name] = tap.wrap(getattr(cache, name))
                wrapped.append(cache)

    def after(*_: Any) -> None:
        while wrapped:
            wrapped.pop().__dict__.pop(name, None)

    known = inspect.signature(module.forward).parameters
    if not set(known) & set(CACHE_NAMES):
        raise _refused(module, tap.routed, f"its forward takes none of {', '.join(CACHE_NAMES)}")
    handles = (
        module.register_forward_pre_hook(before, with_kwargs=True),
        module.register_forward_hook(after, always_call=True),
    )

    def undo() -> None:
        for handle in handles:
            handle.remove()
        after()

    return undo


INSTALL: Mapping[str, Callable[[Tap, nn.Module], Undo]] = {
    "registry": _registry,
    "global": _global,
    "attribute": _attribute,
    "processor": _processor,
    "cache": _cache,
}


# ---------------------------------------------------------------- functions with other globals


def _forward(module: nn.Module, routed: Routed) -> FunctionType:
    """The forward of the module's class. Raises Refusal where it has one of its own."""
    if "forward" in module.__dict__ and (id(module), "forward") not in _ANEW:
        raise _refused(module, routed, "its forward was replaced by something else already")
    forward = type(module).forward
    if not isinstance(forward, FunctionType):
        raise _refused(module, routed, "its forward is no Python function")
    return forward


def _innermost(function: FunctionType) -> FunctionType:
    """The function below its decorators."""
    inner = getattr(function, "__wrapped__", None)
    return _innermost(inner) if isinstance(inner, FunctionType) else function


def _named(function: FunctionType, routed: Routed, owner: object) -> Any:
    """What the function's code calls by the routed name."""
    inner, name = _innermost(function), routed.function
    if name not in _names(inner.__code__) or name not in inner.__globals__:
        raise _refused(owner, routed, f"{inner.__qualname__} does not name {name}")
    return inner.__globals__[name]


def _names(code: CodeType) -> Iterator[str]:
    """Global names that some code reads, also in functions defined inside."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


class _Anew:
    """A module's forward, or its attention processor, with some global names of its code
    standing for something else; several at once where several functions are listened to."""

    def __init__(self, module: nn.Module, what: str) -> None:
        self.module, self.what = module, what
        self.original: Any = type(module).forward if what == "forward" else module.processor
        self.layers: list[dict[str, Any]] = []
        self._undo: Undo | None = None

    def apply(self, routed: Routed) -> None:
        """Puts what holds now in place; what stood there before, when nothing is left."""
        if self._undo is not None:
            self._undo()
            self._undo = None
        overlay = {name: value for layer in self.layers for name, value in layer.items()}
        if not overlay:
            _ANEW.pop((id(self.module), self.what), None)
            return
        self._undo = _put(self.module, self.what, self._made(overlay, routed))

    def _made(self, overlay: dict[str, Any], routed: Routed) -> Any:
        if self.what == "forward":
            return MethodType(_overlaid(self.original, overlay, routed, self.module), self.module)
        kind: Any = type(self.original)
        call = _overlaid(kind.__call__, overlay, routed, self.original)
        twin = copy.copy(self.original)
        names = {"__call__": call, "__module__": kind.__module__}
        twin.__class__ = type(kind.__name__, (kind,), names)
        return twin


_ANEW: dict[tuple[int, str], _Anew] = {}
"""(module's id, ``forward`` or ``processor``) -> what stands there in its place."""


def _named_anew(module: nn.Module, what: str, layer: dict[str, Any], routed: Routed) -> Undo:
    anew = _ANEW.setdefault((id(module), what), _Anew(module, what))
    anew.layers.append(layer)

    def undo() -> None:
        anew.layers = [other for other in anew.layers if other is not layer]
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
        return _copied(function, {**function.__globals__, **overlay}, function.__closure__)
    cells = function.__closure__ or ()
    if not isinstance(inner, FunctionType) or not any(c.cell_contents is inner for c in cells):
        raise _refused(owner, routed, f"a decorator of {function.__qualname__} hides what it calls")
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


def _put(module: nn.Module, name: str, value: Any) -> Undo:
    """Set an attribute of a module; the undoing puts back exactly what was there."""
    entries = module._modules if name in module._modules else module.__dict__
    before, held = name in entries, entries.get(name)
    entries[name] = value

    def undo() -> None:
        if before:
            entries[name] = held
        else:
            entries.pop(name, None)

    return undo


@functools.lru_cache(maxsize=512)
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _check_handed(function: Callable[..., Any], routed: Routed, owner: object) -> None:
    """Whether the function has the parameters that the binding names."""
    found = inspect.signature(function).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in found.values()):
        return
    missing = [own for own in routed.args.values() if own not in found]
    if missing:
        raise _refused(owner, routed, f"it takes {', '.join(found)}, and not {', '.join(missing)}")


def _refused(owner: object, routed: Routed, why: str) -> Refusal:
    return Refusal(
        "host.route",
        f"{type(owner).__name__} does not look up {routed.name} ({routed.via}): {why}",
        fix="use a binding for this version of the host, or leave this seat out",
    )

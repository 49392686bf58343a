"""Functions that a host looks up when it runs: finding them, listening to their calls, and
serving them.

Nothing process-wide changes. A function that a module's forward names is reached by giving
this one module a forward of its own: the same code, with one name standing for our wrapper.
A function that a module holds, or its attention processor names, is reached through that
attribute. Every way is undone when the last listener and the last stand leave.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FunctionType
from typing import Any, Protocol

import torch
from torch import nn

from frtspec.runtime.hosts.ownforward import (
    Undo,
    forget,
    innermost,
    named,
    named_anew,
    own_forward,
    own_processor,
    put,
    refused,
)
from frtspec.runtime.spec import Routed

SeeCall = Callable[[Mapping[str, Any], Any], None]
"""Sees one call: what was handed (by the names in ``Routed.args``), what came back."""

CACHE_NAMES = ("cache", "past_key_values", "past_key_value")
"""What transformers has called the cache that a module is handed."""


class Given(dict[str, Any]):
    """What a call was handed, by the names in ``Routed.args``; None for what it was not.

    ``extra``: everything else that it was handed, by the function's own names. The module
    itself, which functions of a registry get, is left out.
    """

    extra: dict[str, Any]


class Stand(Protocol):
    """Something that serves the calls of a routed function in its place.

    ``outer``: it changes what is handed on, so it comes before those that compute.
    ``calls``: which calls are its own, as ``Routed.calls``; others go past it.
    """

    outer: bool

    @property
    def calls(self) -> Mapping[str, bool]: ...

    def serve(
        self,
        tap: Tap,
        names: tuple[str, ...],
        inner: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """The call's result. ``names``: the host's function's parameters; ``inner``: what else
        there is to ask."""


class Tap:
    """One routed function of one module, with everybody who listens to it or serves it."""

    def __init__(self, module: nn.Module, routed: Routed) -> None:
        self.routed = routed
        self.listeners: list[tuple[Mapping[str, bool], SeeCall]] = []
        self.stands: list[Stand] = []
        self._wrapped: list[tuple[Callable[..., Any], Callable[..., Any]]] = []
        self._undo = INSTALL[routed.via](self, module)

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function``, with the stands asked and the listeners told of each call; a wrapped
        one stays as it is."""
        if getattr(function, "_frt_tap", None) is self:
            return function
        for known, wrapper in self._wrapped:
            if known is function:
                return wrapper
        if torch.compiler.is_compiling():  # looked up for the first time by a trace
            return function
        names = _parameters(function)

        @functools.wraps(function)
        def heard(*args: Any, **kwargs: Any) -> Any:
            if self.stands:
                output = self._served(function, names, args, kwargs)
            else:
                output = function(*args, **kwargs)
            if self.listeners:
                given = self.arguments(names, args, kwargs)
                for calls, see in tuple(self.listeners):
                    if is_of(calls, names, args, kwargs):
                        see(given, output)
            return output

        heard._frt_tap = self  # type: ignore[attr-defined]
        self._wrapped.append((function, heard))
        return heard

    def _served(
        self,
        function: Callable[..., Any],
        names: tuple[str, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        call = function
        for stand in tuple(self.stands):  # those that compute come first, so they are inside
            if is_of(stand.calls, names, args, kwargs):
                call = _asking(stand, self, names, call)
        return call(*args, **kwargs)

    def arguments(
        self, names: tuple[str, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Given:
        """What a call of a function with these parameters was handed."""
        own = set(self.routed.args.values())
        found = dict(zip(names, args, strict=False)) | dict(kwargs)
        given = Given((ours, found.get(theirs)) for ours, theirs in self.routed.args.items())
        given.extra = {
            name: value
            for name, value in found.items()
            if name not in own and not isinstance(value, nn.Module)
        }
        return given

    def handing(
        self,
        names: tuple[str, ...],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        instead: Mapping[str, Any],
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call with other values for some of our names."""
        given, named = list(args), dict(kwargs)
        for ours, value in instead.items():
            theirs = self.routed.args[ours]
            place = names.index(theirs) if theirs in names else len(given)
            if theirs in named or place >= len(given):
                named[theirs] = value
            else:
                given[place] = value
        return tuple(given), named

    def close(self) -> None:
        self._undo()


def is_of(
    calls: Mapping[str, bool],
    names: tuple[str, ...],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> bool:
    """Whether a call of a function with these parameters is among those that are told by
    arguments which are true in them, or are not (as one that isn't given)."""
    if not calls:
        return True
    found = dict(zip(names, args, strict=False)) | dict(kwargs)
    return all((found.get(name) is True) == wanted for name, wanted in calls.items())


def _asking(
    stand: Stand, tap: Tap, names: tuple[str, ...], inner: Callable[..., Any]
) -> Callable[..., Any]:
    def ask(*args: Any, **kwargs: Any) -> Any:
        return stand.serve(tap, names, inner, args, kwargs)

    return ask


class Listener:
    """A listener or a stand that is on; ``remove`` takes it off."""

    def __init__(self, module: nn.Module, tap: Tap, those: list[Any], who: Any) -> None:
        self._module, self._tap, self._those, self._who = module, tap, those, who

    def remove(self) -> None:
        with suppress(ValueError):
            self._those.remove(self._who)
        tap, taps = self._tap, self._module.__dict__.get(_TAPS, {})
        if not tap.listeners and not tap.stands and taps.get(tap.routed.name) is tap:
            forget(self._module, _TAPS, tap.routed.name)
            tap.close()


_TAPS = "_frt_taps"
"""On a module, while somebody listens or serves: name of a function -> its tap."""


def listen(module: nn.Module, routed: Routed, see: SeeCall) -> Listener:
    """Have ``see`` told of every call of the routed function by this module, of those that
    ``routed.calls`` tells.

    Raises Refusal ``host.route`` where the module does not look the function up so.
    """
    tap, who = _tap(module, routed), (routed.calls, see)
    tap.listeners.append(who)
    return Listener(module, tap, tap.listeners, who)


def serve(module: nn.Module, routed: Routed, stand: Stand) -> Listener:
    """Have ``stand`` serve every call of the routed function by this module, and by no other.

    Raises Refusal ``host.route`` where the module does not look the function up so.
    """
    tap = _tap(module, routed)
    tap.stands.insert(len(tap.stands) if stand.outer else 0, stand)
    return Listener(module, tap, tap.stands, stand)


def stands(module: nn.Module, routed: Routed) -> tuple[Stand, ...]:
    """What serves the routed function of this module now."""
    tap = module.__dict__.get(_TAPS, {}).get(routed.name)
    return () if tap is None else tuple(tap.stands)


def _tap(module: nn.Module, routed: Routed) -> Tap:
    tap: Tap | None = module.__dict__.get(_TAPS, {}).get(routed.name)
    if tap is None:
        tap = Tap(module, routed)
        module.__dict__.setdefault(_TAPS, {})[routed.name] = tap
    return tap


def check(module: nn.Module, routed: Routed) -> None:
    """Whether the module looks the function up as the binding says, and hands it what the
    binding names. Raises Refusal ``host.route``."""
    Tap(module, routed).close()


# ---------------------------------------------------------------- ways to find a function


def _registry(tap: Tap, module: nn.Module) -> Undo:
    """The forward reads a registry by the name in the module's config."""
    forward = own_forward(module, tap.routed)
    real = named(forward, tap.routed, module)
    overlay: dict[str, Any] = {tap.routed.function: _Registry(real, tap.wrap)}
    eager = innermost(forward).__globals__.get("eager_attention_forward")
    if eager is not None:
        overlay["eager_attention_forward"] = tap.wrap(eager)
    named_now = getattr(getattr(module, "config", None), "_attn_implementation", None)
    if named_now is not None and named_now in real:  # a trace finds it wrapped
        tap.wrap(real[named_now])
    return named_anew(module, "forward", overlay, tap.routed)


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
    forward = own_forward(module, tap.routed)
    function = named(forward, tap.routed, module)
    _check_handed(function, tap.routed, module)
    return named_anew(module, "forward", {tap.routed.function: tap.wrap(function)}, tap.routed)


def _attribute(tap: Tap, module: nn.Module) -> Undo:
    """The module holds the function."""
    name = tap.routed.function
    held = getattr(module, name, None)
    if not callable(held) or isinstance(held, nn.Module):
        raise refused(module, tap.routed, f"it holds no function {name}")
    _check_handed(held, tap.routed, module)
    return put(module, name, tap.wrap(held))


def _processor(tap: Tap, module: nn.Module) -> Undo:
    """The module's attention processor names the function in its file."""
    processor = own_processor(module)
    call = getattr(type(processor), "__call__", None)  # noqa: B004 - the function is wanted
    if processor is None or not isinstance(call, FunctionType):
        raise refused(module, tap.routed, "it has no attention processor in Python")
    function = named(call, tap.routed, processor)
    _check_handed(function, tap.routed, module)
    return named_anew(module, "processor", {tap.routed.function: tap.wrap(function)}, tap.routed)


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
        raise refused(module, tap.routed, f"its forward takes none of {', '.join(CACHE_NAMES)}")
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


@functools.lru_cache(maxsize=512)
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _check_handed(function: Callable[..., Any], routed: Routed, owner: object) -> None:
    """Whether the function has the parameters that the binding names, those that tell the
    seat's calls too."""
    found = inspect.signature(function).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in found.values()):
        return
    missing = [own for own in (*routed.args.values(), *routed.calls) if own not in found]
    if missing:
        raise refused(owner, routed, f"it takes {', '.join(found)}, and not {', '.join(missing)}")

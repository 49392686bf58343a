"""``MODULE:FACTORY`` of a command line: the function that gives a live model.

A factory takes nothing and returns ``(model, forward)`` or ``(model, forward,
observations)``: what ``attach`` takes of the same names.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from frtspec.diag.suggest import did_you_mean


class BadFactory(Exception):
    """The factory can't be found, raised, or returned something else; the text says what
    to do about it. The exception it raised is the cause."""


@dataclass(frozen=True)
class Live:
    """A model and how to run it."""

    model: nn.Module
    forward: Any
    observations: Iterable[Any] | None = None


def live(target: str, *, alone: bool = False) -> Live:
    """Calls the factory that ``target`` names.

    target   ``package.module:function`` (the current folder is searched too), or
             ``path/to/file.py:function``
    alone    whether a model alone will do; ``forward`` is then None

    Raises ``BadFactory``.
    """
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise BadFactory(
            f"`{target}` names no factory; write MODULE:FUNCTION, for example my_hosts:qwen3"
        )
    module = _module(place)
    factory = getattr(module, name, None)
    if factory is None:
        near = did_you_mean(name, [n for n, value in vars(module).items() if callable(value)])
        raise BadFactory(f"{place} has no {name}" + (f"; {near}" if near else ""))
    if not callable(factory):
        raise BadFactory(f"{target} is a {type(factory).__name__}, not a function")
    return _called(target, factory, alone)


def _module(place: str) -> ModuleType:
    if place.endswith(".py"):
        return _from_file(Path(place))
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(place)
    except Exception as error:
        raise BadFactory(f"{place} can't be imported: {_told(error)}") from error


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"frtspec_factory_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise BadFactory(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadFactory(f"{path} can't be run: {_told(error)}") from error
    return module


def _called(target: str, factory: Callable[[], Any], alone: bool) -> Live:
    try:
        made = factory()
    except Exception as error:
        raise BadFactory(f"{target} raised {_told(error)}") from error
    if alone and isinstance(made, nn.Module):
        return Live(made, None)
    if not (isinstance(made, tuple | list) and len(made) in (2, 3)):
        found = f"{len(made)} values" if isinstance(made, tuple | list) else type(made).__name__
        raise BadFactory(
            f"{target} returned {found}; it returns {'model, ' if alone else ''}(model, forward) "
            "or (model, forward, observations)"
        )
    if not isinstance(made[0], nn.Module):
        raise BadFactory(f"{target} returned a {type(made[0]).__name__} as the model")
    return Live(*made)


def _told(error: BaseException) -> str:
    """An exception in one line, with the place in the caller's code that raised it."""
    text = f"{type(error).__name__}: {error}".strip().rstrip(":")
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f" ({frame.tb_frame.f_code.co_filename}:{frame.tb_lineno})" if frame else ""
    return f"{text}{where}"

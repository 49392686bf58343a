"""Where a value lies on a host: a parameter, what a module or a routed function takes or gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Weight:
    """A weight slot on the host: an absolute parameter path and its layout.

    ``layout``: ``in_out`` or ``out_in`` for matrices (``out_in`` is transposed
    on reading), None for vectors. ``view``: param, zeros, ones, transpose,
    chunks (``args`` = (chunk wanted, all chunk names in order)), part (which, of how
    many), expert (which), flat, squeeze.
    """

    path: str | None
    layout: str | None = None
    view: str = "param"
    args: tuple[Any, ...] = ()


@dataclass(frozen=True)
class InputOf:
    """The input of a module (absolute path): first positional, or the keyword ``arg``.

    Here and below, ``item`` is the place in a tuple, None for the value itself (of an
    output that is a tuple, its first tensor); ``layout`` how the host lays it out where
    that differs from the structure (see ``runtime.places``).
    """

    path: str
    arg: str | None = None
    item: int | None = None
    layout: str | None = None


@dataclass(frozen=True)
class OutputOf:
    """The output of a module (absolute path)."""

    path: str
    item: int | None = None
    layout: str | None = None


@dataclass(frozen=True)
class RoutedInput:
    """What the seat's routed function is handed as ``arg`` (the name in ``Routed.args``)."""

    function: str
    arg: str
    item: int | None = None
    layout: str | None = None


@dataclass(frozen=True)
class RoutedOutput:
    """What the seat's routed function returns."""

    function: str
    item: int | None = None
    layout: str | None = None


Place = InputOf | OutputOf | RoutedInput | RoutedOutput

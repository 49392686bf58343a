"""Places of values on a host: whose they are, how they read, and how the host lays them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from frtspec.dims import DimError, Shape
from frtspec.runtime.seats.calls import first_tensor
from frtspec.runtime.spec import InputOf, OutputOf, Place, RoutedInput, RoutedOutput


def owner(at: str, place: Place) -> str:
    """The path of the module at which a place of the seat ``at`` is seen."""
    return at if isinstance(place, RoutedInput | RoutedOutput) else place.path


def place_text(place: Place) -> str:
    """A place as the language writes it: ``input of layers.0.mlp``."""
    item = "" if place.item is None else f"[{place.item}]"
    match place:
        case OutputOf(path=of):
            return f"output{item} of {of}"
        case RoutedOutput(function=of):
            return f"output{item} of {of}"
        case RoutedInput(function=of, arg=arg):
            return f"arg {arg}{item} of {of}"
        case InputOf(path=of, arg=arg):
            return f"arg {arg}{item} of {of}" if arg else f"input of {of}"


def item_of(value: Any, item: int | None) -> Any:
    """The item of a tuple; without one the value, of several tensors the first."""
    if item is None:
        return first_tensor(value)
    if isinstance(value, tuple | list) and item < len(value):
        return value[item]
    return None


# ---------------------------------------------------------------- layouts


def laid_out(value: Tensor, layout: str | None, shape: Shape, dims: Mapping[str, int]) -> Tensor:
    """A value of the host as the structure has it: ``shape`` is the port's, ``dims`` what is
    known of it. A view where torch can give one."""
    return value if layout is None else LAYOUTS[layout](value, shape, dims)


def _flat_heads(value: Tensor, shape: Shape, dims: Mapping[str, int]) -> Tensor:
    try:
        split = -1, shape[-1].alternatives[0].value(dims)
    except DimError:
        split = shape[-2].alternatives[0].value(dims), -1
    return value.reshape(*value.shape[:-1], *split)


def _table(value: Tensor, shape: Shape) -> Tensor:
    """A table of positions with as many axes as the port: axes of size 1 come and go."""
    while value.dim() > len(shape) and 1 in value.shape[1:-1]:
        value = value.squeeze(1 + list(value.shape[1:-1]).index(1))
    while value.dim() < len(shape):
        value = value.unsqueeze(0)
    return value


LAYOUTS: Mapping[str, Callable[[Tensor, Shape, Mapping[str, int]], Tensor]] = {
    "heads_first": lambda value, shape, dims: value.transpose(1, 2),
    "tokens_first": lambda value, shape, dims: value.transpose(1, 2),
    "flat_heads": _flat_heads,
    "one_token": lambda value, shape, dims: value.squeeze(1),
    "half": lambda value, shape, dims: _table(value, shape)[..., : value.shape[-1] // 2],
    "every_other": lambda value, shape, dims: _table(value, shape)[..., ::2],
}
"""Layout of a port -> what makes the structure's shape of it."""

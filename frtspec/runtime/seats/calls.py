"""Reading a call of a module: its arguments, its dtypes, what it gave back."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn


class Context(NamedTuple):
    """A dtype situation of a call: the input's dtype, and autocast's (None: off)."""

    dtype: torch.dtype
    autocast: torch.dtype | None


@dataclass(frozen=True)
class Signature:
    """The parameters of a module's ``forward`` that a caller can give by name.

    ``wanted``: the names of a seat's inputs, where they are not the first arguments in
    order; None stands for the first one.
    """

    names: tuple[str, ...]
    defaults: Mapping[str, Any]
    wanted: tuple[str | None, ...] = ()

    @classmethod
    def of(cls, module: nn.Module, wanted: tuple[str | None, ...] = ()) -> Self:
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        found = inspect.signature(module.forward).parameters.values()
        named = [p for p in found if p.kind in kinds]
        return cls(
            tuple(p.name for p in named),
            {p.name: p.default for p in named if p.default is not inspect.Parameter.empty},
            wanted,
        )

    def argument(self, name: str | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The argument ``name`` of a call, or the first one; None where it is not there."""
        if name is None:
            return self._leading(1, args, kwargs)[0]
        if name in kwargs:
            return kwargs[name]
        place = self.names.index(name) if name in self.names else len(args)
        return args[place] if place < len(args) else None

    def inputs(
        self, count: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """The first ``count`` arguments, or those wanted; None for each not given."""
        if self.wanted:
            return tuple([self.argument(name, args, kwargs) for name in self.wanted])
        return self._leading(count, args, kwargs)

    def _leading(
        self, count: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        if len(args) >= count:
            return args[:count]
        names = self.names[len(args) : count]
        named = tuple([kwargs.get(name) for name in names])
        return args + named + (None,) * (count - len(args) - len(named))

    def extra(self, count: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str]:
        """The names of arguments that are no inputs and differ from their default."""
        if not self.wanted and len(args) <= count and not kwargs:
            return []
        inputs: Collection[str | None] = self.names[:count]
        if self.wanted:
            inputs = {self.names[0] if name is None else name for name in self.wanted}
        given = [
            (self.names[place] if place < len(self.names) else f"argument {place}", value)
            for place, value in enumerate(args)
        ]
        given += list(kwargs.items())
        given = [(name, value) for name, value in given if name not in inputs]
        return [name for name, value in given if not self._is_default(name, value)]

    def _is_default(self, name: str, value: Any) -> bool:
        if name not in self.defaults:
            return False
        default = self.defaults[name]
        if value is default:
            return True
        plain = (bool, int, float, str)
        return isinstance(value, plain) and isinstance(default, plain) and value == default


def autocast_dtype(device_type: str) -> torch.dtype | None:
    """The dtype autocast computes in on this kind of device, None where it is off."""
    if not torch.is_autocast_enabled(device_type):
        return None
    return torch.get_autocast_dtype(device_type)


def first_tensor(value: Any) -> Tensor | None:
    """The tensor that a module gave back, the first one where it gave several."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, tuple | list):
        return next((item for item in value if isinstance(item, Tensor)), None)
    if isinstance(value, Mapping):
        return next((item for item in value.values() if isinstance(item, Tensor)), None)
    return None


def row_count(x: Tensor) -> int:
    """Rows of a tensor: the product of its leading axes."""
    rows = 1
    for size in x.shape[:-1]:
        rows *= size
    return rows


def version_of(x: Tensor) -> int | None:
    """The version counter; None for inference tensors, which have none."""
    return None if x.is_inference() else x._version


def stream_of(x: Tensor) -> int | None:
    """The stream that work on this tensor is queued on now; None where there are none."""
    return torch.cuda.current_stream(x.device).cuda_stream if x.is_cuda else None

"""The bound form of a whole block, and the module that stands in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from frtspec.runtime.seats.calls import autocast_dtype, row_count
from frtspec.runtime.seats.forms import Forms
from frtspec.runtime.seats.guard import Check, Failed
from frtspec.runtime.seats.seatmodule import SeatModule

AXES = Check("axes", lambda guard, inputs, extra: None)
"""What a call fails whose inputs have other axes; its forms ask, after the guard."""


@dataclass(frozen=True)
class BlockForms(Forms):
    """The form of a block: it takes the host's shapes as they are, and behind the structure's
    inputs what its parts are handed. ``axes``: how many each input has; they tell a table with
    a row a token from one with a row a batch."""

    axes: tuple[int, ...] = ()

    def failed(self, inputs: tuple[Any, ...]) -> Failed | None:
        """The first input that has other axes than the form was bound for."""
        for x, count in zip(inputs, self.axes, strict=True):
            if x.dim() != count:
                reason = f"input of shape {list(x.shape)}; bound for {count} axes"
                return Failed(AXES, reason)
        return None

    def __call__(self, *inputs: Any) -> Any:
        x = inputs[0]
        impl = self.form_for(row_count(x)).impl
        out_dtype = self.contract.out_dtype(x)
        kind = x.device.type
        if autocast_dtype(kind) is None:
            return _as_host(impl.run(*inputs), out_dtype)
        with torch.autocast(kind, enabled=False):
            return _as_host(impl.run(*inputs), out_dtype)


def _as_host(result: Any, dtype: torch.dtype) -> Any:
    if isinstance(result, Tensor):
        return result.to(dtype).contiguous()
    return tuple([item.to(dtype).contiguous() for item in result])


class BlockModule(SeatModule):
    """A block of one seat. The guard asks about the structure's inputs; what the parts are
    handed is for the host's code, which runs on it as ever."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The bound form where the call is one it was bound for, else the host's forward."""
        parts = self.__dict__["_frt"]
        signature, own = parts.signature, parts.count
        inputs = signature.inputs(len(signature.wanted), args, kwargs)
        extra = signature.extra(len(signature.wanted), args, kwargs)
        if torch.compiler.is_compiling():
            other = parts.guard.failed_traced(inputs[:own], extra)
            if other or parts.forms.failed(inputs[:own]) is not None:
                return parts.host.forward(*args, **kwargs)
            return parts.forms(*inputs)
        failed = parts.guard.failed(inputs[:own], extra) or parts.forms.failed(inputs[:own])
        if failed is not None:
            parts.counter.fell_back(failed)
            return parts.host.forward(*args, **kwargs)
        try:
            result = parts.forms(*inputs)
        except Exception as error:
            error.add_note(f"in seat {parts.counter.seat} ({parts.counter.form})")
            raise
        parts.counter.ran()
        return result

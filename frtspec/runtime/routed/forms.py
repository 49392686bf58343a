"""A bound impl on whole tensors: what a routed function is handed, as the structure has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from frtspec.runtime.dtypes import DTYPES
from frtspec.runtime.routed import masks
from frtspec.runtime.rungs.impl import BoundImpl
from frtspec.runtime.seats.calls import autocast_dtype
from frtspec.runtime.seats.forms import Forms

PACKED = "packed_kv"
"""The mechanism that answers a mask by packing the keys that it leaves."""


@dataclass(frozen=True)
class RoutedForms(Forms):
    """The form of a routed seat. Takes the structure's inputs in order, in its shapes, None
    for an optional one that is not there; gives its outputs in the host's dtype.

    names    the structure's inputs
    outputs  its outputs on this host, each with the dtype that is its own (None: the host's)
    packs    whether keys are packed by the mask
    """

    names: tuple[str, ...] = ()
    outputs: Mapping[str, str | None] = field(default_factory=dict)
    packs: bool = False

    def __call__(self, *inputs: Tensor | None) -> Any:
        given = (*inputs, *[None] * (len(self.names) - len(inputs)))
        values = self._packed(given) if self.packs else given
        x = next(value for value in values if value is not None)
        impl = self.forms[0].impl
        out_dtype = self.contract.out_dtype(x)
        if autocast_dtype(x.device.type) is None:
            result = _run(impl, values, x)
        else:
            with torch.autocast(x.device.type, enabled=False):
                result = _run(impl, values, x)
        items = (result,) if isinstance(result, Tensor) else result
        done = tuple(
            [
                item.to(DTYPES[own] if own else out_dtype)
                for item, own in zip(items, self.outputs.values(), strict=True)
            ]
        )
        return done[0] if len(done) == 1 else done

    def _packed(self, given: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        named = dict(zip(self.names, given, strict=True))
        mask = named["mask"]
        if mask is not None:
            ranges = masks.seen(mask).ranges
            for name in ("k", "v"):
                value = named[name]
                assert value is not None
                named[name] = masks.packed(value, ranges)
            named["mask"] = None
        return tuple(named.values())


def _run(impl: BoundImpl, values: tuple[Tensor | None, ...], x: Tensor) -> Any:
    """On the device of the values. Kernels want them contiguous; torch's ops take views."""
    if impl.kernel is None:
        return impl.run(*values)  # type: ignore[arg-type]
    own = tuple([None if value is None else value.contiguous() for value in values])
    if x.device.type != "cuda":
        return impl.run(*own)  # type: ignore[arg-type]
    with torch.cuda.device(x.device):
        return impl.run(*own)  # type: ignore[arg-type]

"""What goes over a chain: a tensor of codes that looks like the host's own tensor.

Shape, dtype and device are those that the host expects. Its consumer reads the codes; whoever
else computes with it gets the values they stand for, in the host's dtype, and the chain is told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from frtspec.runtime import numerics

FORMATS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"fp8_e4m3": numerics.to_fp8}
"""Formats that a wire can have -> codes of a tensor under a given scale."""

Report = Callable[[str], None]
"""``report(op)``: an op other than the consumer computed with what is on the wire."""


class Wire(Tensor):
    """Codes under a scale, shown as a tensor of ``dtype``.

    ``plain``: what other readers were given. It is one tensor for all of them, so that one
    that writes is seen by the next; from then on it is also what the consumer reads.
    """

    codes: Tensor
    scale: Tensor
    plain: Tensor | None
    report: Report

    @staticmethod
    def __new__(cls, codes: Tensor, scale: Tensor, dtype: torch.dtype, report: Report) -> Self:
        wire: Self = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, codes.shape, dtype=dtype, device=codes.device
        )
        wire.codes, wire.scale, wire.report, wire.plain = codes, scale, report, None
        return wire

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        def opened(value: Any) -> Any:
            return value.open(str(func)) if isinstance(value, Wire) else value

        return func(*tree_map(opened, args), **tree_map(opened, kwargs or {}))

    def open(self, op: str) -> Tensor:
        """The values for a reader that is not the consumer."""
        if self.plain is None:
            self.plain = self.values()
            self.report(op)
        return self.plain

    def values(self) -> Tensor:
        """What the codes stand for, in the host's dtype."""
        return numerics.dequantize(self.codes, self.scale).to(self.dtype)

    def __repr__(self, **_: Any) -> str:  # a print is no reader
        return f"Wire({list(self.shape)}, {self.codes.dtype} for {self.dtype})"

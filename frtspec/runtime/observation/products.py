"""Whether a stretch of torch code multiplies matrices, seen from what it dispatches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

PRODUCTS = frozenset(
    {
        "addbmm",
        "addmm",
        "addmv",
        "baddbmm",
        "bmm",
        "convolution",
        "dot",
        "mm",
        "mv",
        "_int_mm",
        "_scaled_mm",
    }
)
"""What ``@``, ``linear``, ``einsum`` and convolutions come down to."""


class Products(TorchDispatchMode):
    """A with-block; ``seen`` says afterwards whether a product of matrices ran in it.

    Sums behind such a product may run in any order, so its last bits are nobody's promise.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        self.seen |= func.overloadpacket.__name__ in PRODUCTS
        return func(*args, **(kwargs or {}))

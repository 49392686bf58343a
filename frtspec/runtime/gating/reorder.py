"""A host whose arithmetic is the same and whose sums run in another order.

What any other right kernel would do to the host: every matrix product adds up the same
terms, in reverse. How far the output moves is the host's own sensitivity to rounding, and
no form of ours can be asked to be closer than that. Nothing is changed on the host or in
the process: a dispatch mode is of one thread.
"""

from __future__ import annotations

from typing import Any, Self

from torch import ops
from torch.utils._python_dispatch import TorchDispatchMode

REVERSED = "every matrix product summed in reverse"

_AXES = {
    ops.aten.mm.default: ((0, -1), (1, -2)),
    ops.aten.bmm.default: ((0, -1), (1, -2)),
    ops.aten.addmm.default: ((1, -1), (2, -2)),
    ops.aten.baddbmm.default: ((1, -1), (2, -2)),
    ops.aten.linear.default: ((0, -1), (1, -1)),
}
"""Product -> (argument, axis) of the axis that is summed over, on both sides."""


class ReversedSums(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While entered, matrix products of this thread sum in reverse; ``count``: how many."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __enter__(self) -> Self:
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        axes = _AXES.get(func)
        if axes is not None:
            self.count += 1
            args = list(args)
            for place, axis in axes:
                args[place] = args[place].flip(axis)
        elif func is not ops.prim.device.default:
            with self:  # in inference mode composites come whole: their parts are looked at
                found = func.decompose(*args, **(kwargs or {}))
            if found is not NotImplemented:
                return found
        return func(*args, **(kwargs or {}))

"""Checks of arguments and registration of ops, shared by the contract packages.

A package that stands for a Hub package has to refuse whatever the real one can't take, and to
say which argument it is. Ops are registered as the real ones are: outputs are mutated arguments,
nothing is returned, and a fake does nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

FP8 = torch.float8_e4m3fn
BF16 = torch.bfloat16
FP16 = torch.float16
F32 = torch.float32
U8 = torch.uint8
I8 = torch.int8
I32 = torch.int32

Dtypes = torch.dtype | tuple[torch.dtype, ...]
Shape = Sequence[int | str]

INT32_MAX = 2**31 - 1


class ContractError(RuntimeError):
    """A call that breaks the ABI. The text begins with the op and names the argument."""


def require(op: str, name: str, holds: bool, what: str) -> None:
    """Raise ContractError ``op: name: what`` unless ``holds``."""
    if not holds:
        raise ContractError(f"{op}: {name}: {what}")


def is_tensor(op: str, **values: Any) -> None:
    """For a wrapper, before it reads shapes: each value is a tensor."""
    for name, value in values.items():
        require(op, name, isinstance(value, Tensor), f"not a tensor: {type(value).__name__}")


def has_rank(op: str, rank: int, **values: Any) -> None:
    """For a wrapper, before it reads shapes: each value is a tensor with ``rank`` axes."""
    is_tensor(op, **values)
    for name, value in values.items():
        require(op, name, value.dim() == rank, f"{value.dim()} axes, not {rank}")


def is_count(op: str, **values: Any) -> None:
    """For a wrapper, before it makes shapes of them: each value is an int of the host, 1 or more."""
    for name, value in values.items():
        known = isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool)
        require(op, name, known, f"not a whole number: {type(value).__name__}")
        require(op, name, value >= 1, f"{value}: less than 1")


class Check:
    """The checks of one call: sizes are bound by name at their first use and compared later.

    All tensors lie on the device of the first. Sizes fit int32, no tensor is empty.
    """

    def __init__(self, op: str) -> None:
        self.op = op
        self.sizes: dict[str, int] = {}
        self.device: torch.device | None = None

    def fail(self, name: str, what: str) -> None:
        raise ContractError(f"{self.op}: {name}: {what}")

    def require(self, name: str, holds: bool, what: str) -> None:
        require(self.op, name, holds, what)

    def tensor(
        self,
        name: str,
        value: Any,
        dtype: Dtypes,
        shape: Shape | None = None,
        *,
        contiguous: bool = True,
        align: int = 16,
    ) -> tuple[int, ...]:
        """Check one tensor and return its shape.

        dtype       one or several
        shape       a number is that size, a name is bound or compared; None is any shape
        contiguous  as torch counts it
        align       bytes its address is a multiple of (1: any)

        Raises ContractError that names the argument and the axis.
        """
        is_tensor(self.op, **{name: value})
        wanted = dtype if isinstance(dtype, tuple) else (dtype,)
        names = " or ".join(str(one).removeprefix("torch.") for one in wanted)
        self.require(
            name, value.dtype in wanted, f"{str(value.dtype).removeprefix('torch.')}, not {names}"
        )
        if self.device is None:
            self.device = value.device
        self.require(name, value.device == self.device, f"on {value.device}, not {self.device}")
        if shape is not None:
            self._shape(name, tuple(value.shape), shape)
        self.require(name, value.numel() > 0, "empty")
        self.require(name, max(value.shape, default=1) <= INT32_MAX, "a size exceeds int32")
        if contiguous:
            self.require(
                name, value.is_contiguous(), f"not contiguous: strides {tuple(value.stride())}"
            )
        if align > 1:
            self.require(
                name, value.data_ptr() % align == 0, f"its address is no multiple of {align} bytes"
            )
        return tuple(value.shape)

    def _shape(self, name: str, found: tuple[int, ...], shape: Shape) -> None:
        told = ", ".join(
            str(one if isinstance(one, int) else self.sizes.get(one, one)) for one in shape
        )
        self.require(name, len(found) == len(shape), f"shape {list(found)}, not [{told}]")
        for axis, (size, wanted) in enumerate(zip(found, shape, strict=True)):
            if isinstance(wanted, str):
                wanted = self.sizes.setdefault(wanted, size)
            self.require(name, size == wanted, f"axis {axis} is {size}, not {wanted}")

    def scale(self, name: str, value: Any) -> None:
        """A scale: one float32 value on the device, read when the op runs."""
        self.tensor(name, value, F32, align=4)
        self.require(name, value.numel() == 1, f"{value.numel()} values, not one")
        number = float(value.reshape(()))
        self.require(name, math.isfinite(number) and number > 0, f"{number}: not a scale")

    def multiple(self, name: str, size: int, of: int) -> None:
        """``size`` of ``name`` is a multiple of ``of``."""
        self.require(name, size % of == 0, f"{size} is no multiple of {of}")

    def eps(self, value: float) -> None:
        """What a norm adds to a variance."""
        self.require("eps", math.isfinite(value) and value > 0, f"{value}: not a positive number")

    def arch(self, played: str | None, *allowed: str) -> None:
        """The device that the package plays is one that the op runs on (None: it is)."""
        ran = played is None or played in allowed
        self.require("device", ran, f"sm {played}; runs on {', '.join(allowed)} only")

    def apart(self, name: str, out: Tensor, /, **inputs: Tensor) -> None:
        """``out`` shares no memory with an input that is read while it is written."""
        for other, value in inputs.items():
            same = out.untyped_storage().data_ptr() == value.untyped_storage().data_ptr()
            self.require(name, not (same and _overlap(out, value)), f"shares memory with {other}")


def _span(value: Tensor) -> tuple[int, int]:
    last = sum(
        (size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True)
    )
    start = value.data_ptr()
    return start, start + (last + 1) * value.element_size()


def _overlap(one: Tensor, other: Tensor) -> bool:
    (a, b), (c, d) = _span(one), _span(other)
    return a < d and c < b


class Ops:
    """The ops of one package, in a namespace that is the id of the package.

    Like the real bindings: outputs are ``Tensor!`` arguments and an op returns ``()``.
    """

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self._library = torch.library.Library(namespace, "FRAGMENT")

    def op(self, schema: str, *, fake: bool = True) -> Callable[[Callable[..., None]], Any]:
        """Register a function under ``schema``; gives back what a wrapper calls.

        A fake is thin, as the real ones are: it does nothing, for all outputs are handed in.
        Without one (``fake=False``) the op can't be traced.
        """

        def register(function: Callable[..., None]) -> Any:
            name = schema.partition("(")[0]
            self._library.define(f"{schema} -> ()")
            for backend in ("CPU", "CUDA"):
                self._library.impl(name, function, backend)
            if fake:
                torch.library.register_fake(
                    f"{self.namespace}::{name}", _nothing, lib=self._library
                )
            return getattr(getattr(torch.ops, self.namespace), name)

        return register


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None

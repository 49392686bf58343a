"""Random tensors for what a structure takes, at given sizes: for cases without a host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch import Tensor

from frtspec.dims import Axis, Shape, instance
from frtspec.runtime import numerics, ops
from frtspec.runtime.dtypes import DTYPES
from frtspec.runtime.spec import InnerSpec, StructureSpec

Value = Tensor | list[Tensor]

_AMAX = 6.0
"""About the largest of the random values: what a wire's scale is made for."""

_LARGEST = {"fp8_e4m3": numerics.FP8_MAX, "int8": numerics.INT8_MAX}


@dataclass(frozen=True)
class InnerCase:
    """How an inner structure is set in a case: variants and the optional slots given."""

    variants: Mapping[str, str]
    given: tuple[str, ...]


@dataclass
class Synthetic:
    """Values for one structure in one case. ``given``: optional values that are there."""

    spec: StructureSpec
    given: tuple[str, ...]
    sizes: Mapping[str, int]
    generator: torch.Generator
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def values(
        self, names: Sequence[str], dtype: torch.dtype, *, weights: bool
    ) -> Iterator[tuple[str, Value]]:
        """Random tensors for what exists in this case; a repeated value is a list. Wires and
        slots that are structures are left to ``wires`` and ``groups``."""
        for name in names:
            if name in self.spec.optional and name not in self.given:
                continue
            if name in self.spec.wires or name in self.spec.inner:
                continue
            shape = self.spec.shapes[name]
            count = self._repeats(shape)
            own = self.spec.dtypes.get(name)
            kind = dtype if own is None else DTYPES[own]
            if count is None:
                yield name, self.tensor(shape, kind, weights)
            else:
                shapes = [instance(shape, position) for position in range(count)]
                yield name, [self.tensor(each, kind, weights) for each in shapes]

    def wires(self) -> dict[str, Any]:
        """Codes of the inputs that carry some, and the scale of every wire."""
        found: dict[str, Any] = {}
        for name, wire in self.spec.wires.items():
            found[wire.scale] = _AMAX / _LARGEST[wire.format]
            if name in self.spec.inputs:
                value = self.tensor(self.spec.shapes[name], torch.float32, False)
                found[name] = ops.quantize(value, wire.format, found[wire.scale])
        return found

    def groups(self, cases: Mapping[str, InnerCase], dtype: torch.dtype) -> dict[str, Any]:
        """What each inner structure takes by keyword."""
        return {
            slot: self._group(inner, cases[slot], dtype)
            for slot, inner in self.spec.inner.items()
            if slot not in self.spec.optional or slot in self.given
        }

    def _group(self, inner: InnerSpec, case: InnerCase, dtype: torch.dtype) -> dict[str, Any]:
        sizes = {name: size.value(self.sizes) for name, size in inner.dims.items()}
        spec, seam = inner.spec, inner.spec.seams[inner.seam] if inner.seam else None
        slots = seam.slots if seam else spec.slots
        axes = seam.variants if seam else tuple(spec.variants)
        own = Synthetic(spec, case.given, sizes, self.generator, self.device)
        return {
            **dict(own.values(slots, dtype, weights=True)),
            **{axis: case.variants[axis] for axis in axes if axis not in inner.pins},
        }

    def parts(self, dtype: torch.dtype) -> dict[str, Callable[..., Any]]:
        """Something in the place of each part of the host: half of an argument, with something
        of every other one that has its rows, or what an output looks like."""
        return {name: self._part(results, dtype) for name, results in self.spec.parts.items()}

    def _part(self, results: tuple[int | str, ...], dtype: torch.dtype) -> Callable[..., Any]:
        fixed = {
            result: self.tensor(self.spec.shapes[result], dtype, False)
            for result in results
            if isinstance(result, str)
        }

        def part(*values: Tensor) -> Any:
            made = tuple(mixed(values, r) if isinstance(r, int) else fixed[r] for r in results)
            return made[0] if len(made) == 1 else made

        return part

    def tensor(self, shape: Shape, dtype: torch.dtype, weights: bool) -> Tensor:
        if dtype == torch.bool:
            return self.truth(shape)
        sizes = [self.size(axis) for axis in shape]
        value = torch.randn(sizes, generator=self.generator)
        if weights and len(sizes) == 1:
            value = 0.5 + 0.1 * value
        elif weights:  # half a unit of gain: a trained block adds little to its residual
            value = 0.5 * value * prod(sizes[:-1]) ** -0.5
        return value.to(self.device, dtype)

    def truth(self, shape: Shape) -> Tensor:
        """Three of four hold, the first along the last axis always: a mask leaves something."""
        sizes = [self.size(axis) for axis in shape]
        value = torch.rand(sizes, generator=self.generator) < 0.75
        value[..., :1] = True
        return value.to(self.device)

    def size(self, axis: Axis) -> int:
        return axis.alternatives[-1].value(self.sizes) if axis.alternatives else 1

    def _repeats(self, shape: Shape) -> int | None:
        """How many tensors a repeated value has; None for one that is not repeated."""
        for symbol in (s for axis in shape for s in axis.symbols()):
            if symbol.endswith("]"):
                head = f"{symbol.partition('[')[0]}["
                return sum(key.startswith(head) for key in self.sizes)
        return None


def mixed(values: Sequence[Tensor], which: int) -> Tensor:
    """Half of one argument, and half of what each other one begins its rows with: a result that
    tells when any of them is wrong."""
    like = values[which]
    out = 0.5 * like
    for place, other in enumerate(values):
        if place != which and other.shape[:-1] == like.shape[:-1]:
            out = out + 0.5 * torch.tanh(other[..., :1].to(like.dtype))
    return out

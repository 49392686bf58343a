"""The base of generated impls: packed weights, scales, and the rung they run on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from frtspec.runtime.numerics import Quantized
from frtspec.runtime.spec import ImplSpec, RungSpec


class BoundImpl(nn.Module):
    """Packed weights of one seat and the arithmetic that runs on them.

    A subclass packs in ``__init__``, which takes by keyword what it needs of: weight
    slots (in_out), scales (float32, [1]), variants and params. Each rung is a method
    that takes the inputs as rows ([M, K], contiguous, in the host's dtype) and
    returns rows in any float dtype (a tuple where the structure has several
    outputs); leading axes and the host's dtype are the caller's matter.

    ``kernel`` is the loaded kernel package of the rung, None where it needs none; ``given``
    are weights that a rung prepares something from, until it is bound. ``hosted``
    makes the parts of a live host from what follows the inputs of a call (``blocks.parts``);
    without it they are given to ``run`` by keyword.
    """

    SPEC: ClassVar[ImplSpec]

    def __init__(self) -> None:
        super().__init__()
        self.rung: RungSpec | None = None
        self.kernel: Any = None
        self.hosted: Any = None
        self.given: Mapping[str, Any] = {}

    @property
    def device(self) -> torch.device:
        """Where the weights are: those that were packed, or those given."""
        held = [b for b in self.buffers() if b is not None]
        held += [w for w in self.given.values() if isinstance(w, Tensor)]
        return held[0].device if held else torch.get_default_device()

    def pack(self, name: str, value: Quantized | Tensor | None) -> None:
        """Keep a weight as ``self.<name>``; a quantised one with ``self.<name>_scale``, and
        with ``self.<name>_tensor_scale`` where its format has two levels.

        The pack is contiguous and owns its memory. None keeps an absent weight absent.
        """
        if isinstance(value, Quantized):
            self._own(name, value.data)
            self._own(f"{name}_scale", value.scale)
            if value.tensor_scale is not None:
                self._own(f"{name}_tensor_scale", value.tensor_scale)
        elif value is None:
            self.register_buffer(name, None, persistent=False)
        else:
            self._own(name, value)

    def keep_scale(self, name: str, value: Tensor) -> None:
        """Keep what an activation is scaled by as ``self.<name>``: float32, [1] or one per
        channel."""
        self._own(name, value.float() if value.dim() else value.float().reshape(1))

    def keep(self, name: str, value: Tensor | float | None) -> None:
        """Keep what a rung prepared as ``self.<name>``: a tensor as a buffer, which is counted
        and moved with the packs; a number, or None, as it is.

        Raises TypeError for anything else: it could be neither moved nor stored.
        """
        if isinstance(value, Tensor):
            self._own(name, value)
        elif value is None or isinstance(value, int | float):
            setattr(self, name, value)
        else:
            raise TypeError(f"{name} is a {type(value).__name__}, no tensor and no number")

    def _own(self, name: str, value: Tensor) -> None:
        own = value.detach().clone(memory_format=torch.contiguous_format)
        self.register_buffer(name, own, persistent=False)

    def on(self, rung: RungSpec, kernel: ModuleType | None = None) -> Self:
        """This impl bound to a rung: a view that shares the packs and copies nothing.

        What the rung prepares is made here, from the weights as they were given; the view lets
        go of those.
        """
        view = type(self).__new__(type(self))
        view.__dict__.update(self.__dict__)
        view.rung, view.kernel = rung, kernel
        if rung.prepare is not None:
            view._buffers = dict(self._buffers)
            with torch.no_grad():
                getattr(view, rung.prepare)()
        view.given = {}
        return view

    def member(self, position: int) -> Self:
        """This impl for one member of a repeated output: a view that copies nothing.

        Packs that hold the members' rows one after the other say so in ``<pack>_rows``
        (rows of each member); the view sees its own rows of them, and ``run`` returns a
        tuple of one.
        """
        view = type(self).__new__(type(self))
        view.__dict__.update(self.__dict__, _buffers=dict(self._buffers))
        for name, buffer in self._buffers.items():
            rows = self.__dict__.get(f"{name}_rows")
            if buffer is None or not rows:
                continue
            view.__dict__[f"{name}_rows"] = [rows[position]]
            for own in (name, f"{name}_scale"):
                held = self._buffers.get(own)
                if held is not None and held.shape[0] == sum(rows):
                    start = sum(rows[:position])
                    view._buffers[own] = held[start : start + rows[position]]
        return view

    def run(self, *inputs: Tensor | None, **parts: Callable[..., Any]) -> Any:
        """Run the bound rung on rows, with what it calls of the host. Outputs that this seat's
        variants do not have are left out, and one that is left alone is no tuple."""
        if self.rung is None:
            raise RuntimeError(f"{type(self).__name__} is bound to no rung; call on(rung) first")
        if self.hosted is not None and not parts:
            inputs, parts = self.hosted.split(inputs)
        result = getattr(self, self.rung.run)(*inputs, **parts)
        return _there(result)

    forward = run

    def bytes(self) -> int:
        """Bytes that the packs and scales hold."""
        return sum(buffer.nbytes for buffer in self.buffers())


def _there(result: Any) -> Any:
    if not isinstance(result, tuple):
        return result
    there = tuple([item for item in result if item is not None])
    if len(there) == len(result):
        return result
    return there[0] if len(there) == 1 else there

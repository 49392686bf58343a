"""How the host calls a routed function: what is there, in which dtypes, with what besides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.runtime.hosts.host import submodule
from frtspec.runtime.hosts.places import laid_out, owner
from frtspec.runtime.hosts.routes import Given
from frtspec.runtime.observation.recorders import Recorder
from frtspec.runtime.seats.calls import Context, autocast_dtype
from frtspec.runtime.spec import Seat

ABSENT = "<not given>"
"""What a further argument is said to be in a call that does not hand it."""

KEPT_BYTES = 1 << 26
"""One call is kept whole up to this size, for the probe of a rung."""

Dtypes = tuple[torch.dtype | None, ...]
"""Of each input of the structure in order; None where it is not there."""


def described(value: Any) -> Any:
    """A further argument as it is compared: plain values by themselves, others by kind."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return f"<{type(value).__name__}>"


@dataclass
class RouteSeen:
    """What calibration saw at a routed function.

    names     the structure's inputs
    dtypes    of the inputs, for each way they came
    extras    further argument -> what it was seen to be
    returns   positions of the tensors in what came back, and how many items there are (None:
              a tensor by itself), for each way
    contexts  autocast states
    first     the first call's inputs by port, where they are not too large; ``shapes`` else
    """

    names: tuple[str, ...]
    dtypes: set[Dtypes] = field(default_factory=set)
    extras: dict[str, set[Any]] = field(default_factory=dict)
    returns: set[tuple[int | None, tuple[int, ...]]] = field(default_factory=set)
    contexts: dict[Context, torch.dtype] = field(default_factory=dict)
    first: dict[str, Tensor] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    calls: int = 0

    def saw(self, port: str) -> bool:
        """Whether the input was there in some call."""
        place = self.names.index(port)
        return any(dtypes[place] is not None for dtypes in self.dtypes)


class RouteRecorder(Recorder):
    """The calls of one routed seat. The values at its ports belong to the call of the
    function that comes after them."""

    def __init__(self, seat: Seat, model: nn.Module, modules: Mapping[str, nn.Module]) -> None:
        super().__init__(seat)
        self.model, self.modules = model, modules
        self.seen = RouteSeen(seat.structure.inputs)
        self._values: dict[str, Tensor] = {}

    def attach(self) -> None:
        boundary, shapes = self.seat.boundary, self.seat.structure.shapes
        for port, place in (boundary.inputs if boundary else {}).items():
            module = submodule(self.model, owner(self.seat.path, place))
            shape = shapes.get(port, ())

            def see(value: Tensor, port: str = port, at: Any = place, shape: Any = shape) -> None:
                self._values[port] = laid_out(value, at.layout, shape, self.seat.dims)

            self.at(module, place, see)
        for module in self.modules.values():  # last, so that the values have passed by then
            self.routed(module, self._called)

    def _called(self, given: Mapping[str, Any], output: Any) -> None:
        values, self._values = self._values, {}
        seen = self.seen
        seen.calls += 1
        seen.dtypes.add(tuple(values[n].dtype if n in values else None for n in seen.names))
        extra = given.extra if isinstance(given, Given) else {}
        for name in {*seen.extras, *extra}:
            before = {ABSENT} if name not in seen.extras and seen.calls > 1 else set()
            found = seen.extras.setdefault(name, before)
            found.add(described(extra[name]) if name in extra else ABSENT)
        seen.returns.add(_returned(output))
        tensors = output if isinstance(output, tuple | list) else (output,)
        y = next((item for item in tensors if isinstance(item, Tensor)), None)
        x = next((values[n] for n in seen.names if n in values), None)
        if x is not None and y is not None:
            context = Context(x.dtype, autocast_dtype(x.device.type))
            seen.contexts[context] = y.dtype
        if not seen.shapes:
            seen.shapes = {name: tuple(value.shape) for name, value in values.items()}
            if sum(value.nbytes for value in values.values()) <= KEPT_BYTES:
                seen.first = {name: value.clone() for name, value in values.items()}

    def end_sample(self) -> None:
        self._values.clear()


def _returned(output: Any) -> tuple[int | None, tuple[int, ...]]:
    if not isinstance(output, tuple | list):
        return None, (0,) if isinstance(output, Tensor) else ()
    return len(output), tuple(i for i, item in enumerate(output) if isinstance(item, Tensor))

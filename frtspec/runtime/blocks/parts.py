"""Parts of a block that its host computes: callables that run the host's own modules.

A part is some modules called in turn. Where it begins and ends inside the last of them, a
copy of that module is called, in which what stands before the part gives what it is handed
and what stands behind keeps its result. The copy shares every parameter, buffer and child
with the host's module but those; nothing on the host changes.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.host import submodule
from frtspec.runtime.seats.calls import first_tensor
from frtspec.runtime.spec import HostPart, Seat

Part = Callable[..., Tensor]


@dataclass(frozen=True)
class Hosted:
    """The parts of one seat. ``inputs``: how many tensors of a call are the structure's; what
    follows them are the arguments ``given`` of the host's call, in order."""

    inputs: int
    given: tuple[str, ...]
    parts: Mapping[str, Callable[[Mapping[str, Any]], Part]]

    def split(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Part]]:
        """The structure's inputs of a call, and the parts as this call has them."""
        rest = dict(zip(self.given, values[self.inputs :], strict=True))
        parts = {name: make(rest) for name, make in self.parts.items()}
        return tuple(values[: self.inputs]), parts


def given_names(seat: Seat) -> tuple[str, ...]:
    """The arguments of the seat's call that its parts are handed."""
    names = [name for part in seat.parts.values() for name in part.given]
    return tuple(dict.fromkeys(names))


def hosted(model: nn.Module, seat: Seat) -> Hosted | None:
    """The seat's parts on a live host; None where its structure has none.

    Raises Refusal ``host.path``, or ``host.part`` for an argument that a module does not take
    or a place that lies outside of it.
    """
    if not seat.structure.parts or not seat.parts:
        return None
    count = len(seat.boundary.inputs) if seat.boundary is not None else 1
    made = {name: _maker(model, seat, name, part) for name, part in seat.parts.items()}
    return Hosted(count, given_names(seat), made)


def _maker(
    model: nn.Module, seat: Seat, name: str, part: HostPart
) -> Callable[[Mapping[str, Any]], Part]:
    *before, last = [submodule(model, path) for path in part.modules]
    for path, module in ((seat.path, submodule(model, seat.path)), (part.modules[-1], last)):
        unknown = _unknown(module, part.given)
        if unknown:
            raise _refusal(seat, name, f"{path} takes no argument {', '.join(unknown)}")
    if not part.places:
        return lambda rest: _Called(before, last, {arg: rest[arg] for arg in part.given})
    cut = Cut(last, part, seat, name)
    return lambda rest: _Within(cut, {arg: rest[arg] for arg in part.given})


def _unknown(module: nn.Module, names: Sequence[str]) -> list[str]:
    taken = inspect.signature(module.forward).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken.values()):
        return []
    return [name for name in names if name not in taken]


@dataclass(frozen=True)
class _Called:
    before: Sequence[nn.Module]
    last: nn.Module
    named: Mapping[str, Any]

    def __call__(self, value: Tensor) -> Tensor:
        for module in self.before:
            value = module(value)
        result = first_tensor(self.last(value, **self.named))
        assert result is not None
        return result


@dataclass(frozen=True)
class _Within:
    cut: Cut
    named: Mapping[str, Any]

    def __call__(self, *values: Tensor) -> Tensor:
        return self.cut.run(values, self.named)


class Cut:
    """A copy of a module that runs between the places where a part begins and ends.

    Several threads may run it: what is handed in lies with the thread that called.
    """

    def __init__(self, module: nn.Module, part: HostPart, seat: Seat, name: str) -> None:
        self.held = threading.local()
        root = part.modules[-1]
        inside: dict[str, nn.Module] = {}
        for place, at in enumerate(part.places.values()):
            inside[_below(seat, name, root, at.path)] = Given(self.held, place)
        assert part.result is not None
        inside[_below(seat, name, root, part.result.path)] = Kept(self.held)
        self.module = _copied(module, inside)

    def run(self, values: Sequence[Tensor], named: Mapping[str, Any]) -> Tensor:
        """What the part makes of ``values``; the module's own result is not looked at."""
        self.held.values, self.held.result = values, None
        try:
            self.module(values[0], **named)
            result = self.held.result
        finally:
            self.held.values = self.held.result = None
        if result is None:
            raise RuntimeError("the host's code did not reach the place where the part ends")
        kept: Tensor = result
        return kept


class Given(nn.Module):
    """Stands where a part begins: gives what the part was handed."""

    def __init__(self, held: threading.local, place: int) -> None:
        super().__init__()
        self.held, self.place = held, place

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        value: Tensor = self.held.values[self.place]
        return value


class Kept(nn.Module):
    """Stands where a part ends: keeps its result and hands it on."""

    def __init__(self, held: threading.local) -> None:
        super().__init__()
        self.held = held

    def forward(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        self.held.result = value
        return value


def _copied(module: nn.Module, inside: Mapping[str, nn.Module]) -> nn.Module:
    """The module with others in some places below it; all else is shared."""
    copy: nn.Module = type(module).__new__(type(module))
    copy.__dict__.update(module.__dict__)
    copy.__dict__["_modules"] = children = dict(module._modules)
    for head in dict.fromkeys(path.partition(".")[0] for path in inside):
        if head in inside:
            children[head] = inside[head]
            continue
        child = children[head]
        assert child is not None
        below = {
            path.removeprefix(f"{head}."): stand
            for path, stand in inside.items()
            if path.startswith(f"{head}.")
        }
        children[head] = _copied(child, below)
    return copy


def _below(seat: Seat, name: str, root: str, path: str) -> str:
    if not path.startswith(f"{root}."):
        raise _refusal(seat, name, f"{path} lies outside of {root}, the last module called")
    return path.removeprefix(f"{root}.")


def _refusal(seat: Seat, name: str, what: str) -> Refusal:
    return Refusal(
        "host.part",
        f"the part {name} of {seat.structure.key} can't be called here: {what}",
        fix="check the part in the binding against this version of the host",
        seat=seat.name,
    )

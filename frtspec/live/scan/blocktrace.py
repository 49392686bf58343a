"""What the modules of a copied block take and give, and its parts of the host given back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.live.scan.prove import CLOSE, Twin

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments by place and by name."""


class Differs(Exception):
    """Where the block computes something else than the structure."""


@dataclass
class Trace:
    """Values at the modules of a copy, in the order of time: (path, ``in`` or ``out``, value)."""

    events: list[tuple[str, str, Any]] = field(default_factory=list)

    def run(self, twin: Twin, call: Call) -> Any:
        handles = []
        for name, module in twin.module.named_modules():
            if name:
                handles += self._hooks(name, module)
        try:
            with torch.no_grad():
                return twin.module(*call[0], **call[1])
        finally:
            for handle in handles:
                handle.remove()

    def _hooks(self, name: str, module: nn.Module) -> list[Any]:
        def enter(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            given = [*args, *kwargs.values()]
            self.events.append((name, "in", given[0] if given else None))

        def leave(_: nn.Module, args: Any, output: Any) -> None:
            self.events.append((name, "out", output))

        return [
            module.register_forward_pre_hook(enter, with_kwargs=True),
            module.register_forward_hook(leave),
        ]

    def entered(self) -> dict[str, int]:
        """Path -> when it was first called."""
        out: dict[str, int] = {}
        for time, (name, end, _) in enumerate(self.events):
            if end == "in":
                out.setdefault(name, time)
        return out

    def when(self, value: Tensor, since: int) -> int | None:
        """The first time from ``since`` on at which a module took or gave this value."""
        for time in range(since, len(self.events)):
            if apart(value, self.events[time][2]) <= CLOSE:
                return time
        return None


def apart(mine: Tensor, theirs: Any) -> float:
    """Relative L2 between two tensors; infinite where one is none, or has another shape."""
    if not isinstance(theirs, Tensor) or theirs.shape != mine.shape:
        return float("inf")
    found = float((mine - theirs).norm() / theirs.norm().clamp_min(1e-30))
    return found if math.isfinite(found) else float("inf")


@dataclass
class Parts:
    """Parts of the host, given back as they were recorded. ``inside``: modules with a role."""

    trace: Trace
    times: Mapping[str, int]
    inside: set[str]
    now: int = 0

    def part(self, name: str) -> Callable[..., Tensor]:
        def recorded(*args: Tensor) -> Tensor:
            begins = [self.trace.when(value, self.now) for value in args]
            if not all(begin is not None for begin in begins):
                raise Differs(f"no module takes or gives what `{name}` is called with")
            begin = max(begin for begin in begins if begin is not None)
            later = [time for m, time in self.times.items() if m in self.inside and time > begin]
            if not later:
                raise Differs(f"nothing of the structure is called after `{name}`")
            self.now = min(later)
            return self._result(name, begin, self.now)

        return recorded

    def _result(self, name: str, begin: int, end: int) -> Tensor:
        """What the last module between gives that has no role below it; else what the next role
        takes, where the part lies inside a module that has."""
        between = [
            value
            for module, kind, value in self.trace.events[begin:end]
            if kind == "out" and "." not in module and not self._holds(module)
        ]
        value = between[-1] if between else self.trace.events[end][2]
        if not isinstance(value, Tensor):
            raise Differs(f"what `{name}` gives is no tensor")
        return value

    def _holds(self, module: str) -> bool:
        return any(m == module or m.startswith(f"{module}.") for m in self.inside)

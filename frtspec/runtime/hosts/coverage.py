"""How much of a host its bound seats cover, counted in parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from frtspec.runtime.records import SeatRecord
from frtspec.runtime.spec import Weight

_INDEX = re.compile(r"(?<=\.)\d+(?=\.)")


@dataclass(frozen=True)
class Coverage:
    """Parameters of the host, of the seats by state, and of what no seat stands for.

    rest: (parameter path with indices as {i}, parameters), largest first: everything
    that stays on the host.
    """

    total: int
    by_state: dict[str, int]
    rest: tuple[tuple[str, int], ...]

    @property
    def share(self) -> float:
        """Bound parameters over all parameters, 0 to 1."""
        return self.by_state.get("bound", 0) / self.total if self.total else 0.0


def inventory(model: torch.nn.Module) -> dict[str, tuple[int, torch.dtype]]:
    """Size and dtype of each parameter, tied ones once, under their first name."""
    return {name: (param.numel(), param.dtype) for name, param in model.named_parameters()}


def coverage(
    parameters: Mapping[str, tuple[int, torch.dtype]], records: Sequence[SeatRecord]
) -> Coverage:
    """Counts ``parameters`` (the untouched host's inventory) by what became of their seats."""
    sizes = {name: size for name, (size, _) in parameters.items()}
    bound: set[str] = set()
    by_state: dict[str, int] = {}
    for record in records:
        paths = {path for path in weight_paths(record) if path in sizes}
        record.parameters = sum(sizes[path] for path in paths)
        by_state[record.state] = by_state.get(record.state, 0) + record.parameters
        if record.state == "bound":
            bound |= paths
    rest: dict[str, int] = {}
    for name, size in sizes.items():
        if name not in bound:
            family = _INDEX.sub("{i}", name)
            rest[family] = rest.get(family, 0) + size
    ordered = sorted(rest.items(), key=lambda item: (-item[1], item[0]))
    return Coverage(sum(sizes.values()), by_state, tuple(ordered))


def weight_paths(record: SeatRecord) -> list[str]:
    """Paths of the host parameters that the seat stands for."""
    found = []
    for weight in record.seat.slots.values():
        for item in (weight,) if isinstance(weight, Weight) else weight:
            if item.path is not None:
                found.append(item.path)
    return found

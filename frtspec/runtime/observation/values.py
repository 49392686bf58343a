"""Content and observation points: values kept as they are, and facts about calls.

Kept apart from statistics, which reduce by percentile: a table of steps or a prefix is
content, and what a call looked like (dtypes, shapes) is an observation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from frtspec.dims import Measured
from frtspec.runtime.hosts.host import submodule
from frtspec.runtime.hosts.places import laid_out, owner
from frtspec.runtime.observation.recorders import Recorder
from frtspec.runtime.spec import InputOf, OutputOf, Place, RoutedInput, RoutedOutput, Seat

KEPT_SAMPLES = 2
KEPT_CALLS = 256
KEPT_BYTES = 1 << 26
"""Of one point: contents of the first samples, so many calls and bytes of each."""


_COUNTS_TOKENS = ("table", "prefix_drift")
"""Facts that ask how many tokens the first input has."""


@dataclass
class Passed:
    """What passed at one place in one sample. ``contents`` is None where it was not kept
    whole: too much, or the point keeps none."""

    dtypes: list[torch.dtype] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    contents: list[Tensor] | None = None
    size: int = 0


class ValueRecorder(Recorder):
    """Every tensor that passes at one place of a seat, as the structure lays it out.

    ``content``: whether the values themselves are kept.
    """

    def __init__(
        self, seat: Seat, name: str, module: nn.Module, place: Place, content: bool
    ) -> None:
        super().__init__(seat)
        self.name, self.module, self.place, self.content = name, module, place, content
        self.samples: list[Passed] = []
        self._open = self._fresh()

    def _fresh(self) -> Passed:
        keep = self.content and len(self.samples) < KEPT_SAMPLES
        return Passed(contents=[] if keep else None)

    def attach(self) -> None:
        self.at(self.module, self.place, self._see)

    def _see(self, value: Tensor) -> None:
        shape = self.seat.structure.shapes.get(self.name, ())
        value = laid_out(value, self.place.layout, shape, self.seat.dims)
        now = self._open
        now.dtypes.append(value.dtype)
        now.shapes.append(tuple(value.shape))
        now.size += value.numel() * value.element_size()
        if now.contents is None:
            return
        if len(now.contents) == KEPT_CALLS or now.size > KEPT_BYTES:
            now.contents = None
        else:
            now.contents.append(value.detach().clone())

    def end_sample(self) -> None:
        self.samples.append(self._open)
        self._open = self._fresh()


def value_recorders(model: nn.Module, seat: Seat) -> Iterator[ValueRecorder]:
    """A recorder for each value that a rule asks about, where the seat says where it lies;
    content and observation points that no rule asks about are watched too."""
    kinds = seat.structure.points
    asked = [r.test.of for r in seat.structure.rules if isinstance(r.test, Measured) and r.test.of]
    if any(
        isinstance(r.test, Measured) and r.test.fact in _COUNTS_TOKENS for r in seat.structure.rules
    ):
        asked.append(seat.structure.inputs[0])
    declared = [name for name, kind in kinds.items() if kind != "statistic"]
    for name in dict.fromkeys([*asked, *declared]):
        place = places(seat).get(name)
        if isinstance(place, InputOf | OutputOf | RoutedInput | RoutedOutput):
            module = submodule(model, owner(seat.path, place))
            yield ValueRecorder(seat, name, module, place, kinds.get(name) == "content")


def places(seat: Seat) -> Mapping[str, object]:
    """Where the values of a seat lie that have a name: its points, then its boundary."""
    boundary = seat.boundary
    ports: dict[str, object] = {}
    if boundary is not None:
        ports = {**boundary.inputs, **boundary.outputs}
    return {**ports, **seat.points}

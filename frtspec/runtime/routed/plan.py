"""How a routed seat runs: which values of a call its form takes, and where its results go.

Two kinds of seat are told apart by where their boundary lies:

    function  everything the form takes is handed to the routed function, and what it gives is
              what the function returns: the form is called in the function's place
    span      the form begins at the input of modules (norms of queries and keys) and ends at the
              routed function: those modules pass on what they get, and the form runs where the
              function is called
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import nn

from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.host import submodule
from frtspec.runtime.hosts.places import place_text
from frtspec.runtime.spec import InputOf, Place, Routed, RoutedInput, RoutedOutput, Seat, Weight

TURNED = (None, "heads_first", "tokens_first")
"""Layouts of a host that the same exchange of axes makes and undoes."""


@dataclass(frozen=True)
class Handed:
    """A value of a call of the routed function. ``arg``: its name in ``Routed.args``."""

    arg: str
    layout: str | None


@dataclass(frozen=True)
class Table:
    """A value that the seat's module is handed: item ``item`` of its argument ``arg``."""

    arg: str | None
    item: int | None
    layout: str | None


@dataclass(frozen=True)
class Returned:
    """Where an output goes: item ``item`` of what the function returns (None: the value, or
    the first of a tuple)."""

    item: int | None
    layout: str | None


@dataclass(frozen=True)
class RoutePlan:
    """A routed seat as it runs.

    inputs    port -> where its value comes from, in the order of the structure's inputs
    outputs   port -> where it goes: what the function returns, or what it is handed
    passing   paths of the modules that the form computes too; empty: it is a function's
    begins    of these, module -> the input that it is handed, and the host's layout of it there
    """

    seat: Seat
    routed: Routed
    inputs: Mapping[str, Handed | Table]
    outputs: Mapping[str, Returned | Handed]
    passing: tuple[str, ...] = ()
    begins: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)

    @property
    def span(self) -> bool:
        return bool(self.passing)

    @property
    def tables(self) -> dict[str, Table]:
        return {port: at for port, at in self.inputs.items() if isinstance(at, Table)}

    @property
    def handed_on(self) -> dict[str, Handed]:
        """Outputs that the host's own function is handed instead of what it would be."""
        return {port: at for port, at in self.outputs.items() if isinstance(at, Handed)}


def plan_of(model: nn.Module, seat: Seat) -> RoutePlan:
    """How a seat on a routed function runs.

    Raises Refusal ``route.form`` for a boundary that neither kind covers.
    """
    routed, boundary = seat.routed, seat.boundary
    assert routed is not None
    if boundary is None or boundary.none is not None or seat.seam is not None:
        raise _refused(seat, "the binding does not say where its inputs and outputs lie")
    outputs = {port: _output(seat, port, at) for port, at in boundary.outputs.items()}
    places = {
        port: boundary.inputs[port] for port in seat.structure.inputs if port in boundary.inputs
    }
    if all(isinstance(at, RoutedInput) for at in places.values()):
        if not all(isinstance(at, Returned) for at in outputs.values()):
            raise _refused(seat, "it hands the routed function's own arguments back to it")
        handed = {port: Handed(at.arg, at.layout) for port, at in places.items()}  # type: ignore[union-attr]
        return RoutePlan(seat, routed, handed, outputs)
    return _span(model, seat, routed, places, outputs)


def _span(
    model: nn.Module,
    seat: Seat,
    routed: Routed,
    places: Mapping[str, Place],
    outputs: Mapping[str, Returned | Handed],
) -> RoutePlan:
    weights = [w for v in seat.slots.values() for w in ((v,) if isinstance(v, Weight) else v)]
    owners = dict.fromkeys(w.path.rpartition(".")[0] for w in weights if w.path is not None)
    passing = tuple(owners)
    if not passing or not all(path.startswith(f"{seat.path}.") for path in passing):
        raise _refused(seat, "its weights do not lie in modules inside its own")
    for path in passing:
        submodule(model, path)
    inputs: dict[str, Handed | Table] = {}
    streams = [port for port, at in places.items() if not _is_table(seat, at)]
    if len(streams) != len(outputs):
        raise _refused(seat, f"{', '.join(streams)} go in and {', '.join(outputs)} come out")
    ends = dict(zip(streams, (p for p in seat.structure.outputs if p in outputs), strict=True))
    for port, at in places.items():
        if port not in ends:
            assert isinstance(at, InputOf)
            inputs[port] = Table(at.arg, at.item, at.layout)
            continue
        end = outputs[ends[port]]
        arg = end.arg if isinstance(end, Handed) else port
        if arg not in routed.args:
            raise _refused(seat, f"{routed.name} is handed no {arg}")
        inputs[port] = Handed(arg, end.layout)
    begins = {
        at.path: (port, at.layout)
        for port, at in places.items()
        if isinstance(at, InputOf) and at.path in passing
    }
    return RoutePlan(seat, routed, inputs, outputs, passing, begins)


def _is_table(seat: Seat, at: Place) -> bool:
    return isinstance(at, InputOf) and at.path == seat.path


def _output(seat: Seat, port: str, at: Place | tuple[Place, ...]) -> Returned | Handed:
    if isinstance(at, RoutedOutput | RoutedInput) and at.layout in TURNED:
        if isinstance(at, RoutedOutput):
            return Returned(at.item, at.layout)
        if at.item is None:
            return Handed(at.arg, at.layout)
    where = place_text(at) if not isinstance(at, tuple) else "several places"
    raise _refused(seat, f"{port} is {where}, where no result can be put")


def _refused(seat: Seat, why: str) -> Refusal:
    return Refusal(
        "route.form",
        f"{seat.path} can't be served by a bound form: {why}",
        fix="nothing to mend: the host's own code runs here",
        seat=seat.name,
    )

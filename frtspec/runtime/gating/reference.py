"""A structure's reference on a live seat: with the host's weights, on captured tensors.

Shapes are the host's: any number of leading axes before the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from frtspec.runtime.blocks.parts import hosted
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts import host
from frtspec.runtime.observation.products import Products
from frtspec.runtime.seats.calls import first_tensor
from frtspec.runtime.spec import Seat

if TYPE_CHECKING:
    from frtspec.runtime.observation.capture import SeatCapture

Named = dict[str, Tensor]
Rows = Callable[..., Any]


@dataclass(frozen=True)
class Pair:
    """What the host computed and what the reference makes of the same inputs.

    ``contracted``: a matrix product lies between the inputs and here.
    """

    what: str
    host: Tensor
    reference: Tensor
    contracted: bool


@dataclass(frozen=True)
class Comparison:
    """(reference, treated) over the full boundary and over the bare seam; None where the
    host has no such boundary, or the seat no seam."""

    full: tuple[Named, Named] | None = None
    seam: tuple[Named, Named] | None = None


class SeatReference:
    """The reference of one seat, holding the host's weights as views (in_out)."""

    def __init__(self, seat: Seat, model: torch.nn.Module) -> None:
        self.seat = seat
        self.seam = seat.structure.seams[seat.seam] if seat.seam else None
        self.slots = {**host.seat_weights(model, seat)}
        if self.has_boundary:
            self.slots |= host.boundary_weights(model, seat)
        self.sizes = _sizes(seat, self.slots)
        self.hosted = hosted(model, seat)

    @property
    def has_boundary(self) -> bool:
        """Whether the host has a place where the structure's full boundary lies."""
        if self.seam is None:
            return True
        return self.seat.boundary is not None and self.seat.boundary.none is None

    def full(self, capture: SeatCapture, seam: Rows | None = None, **hooks: Any) -> Named:
        """The structure over its full boundary: outputs by name.

        ``seam`` runs in place of the seat's seam; ``hooks`` go to the reference.
        """
        if self.seam is not None:
            hooks[f"{self.seam.name}_with"] = seam
        structure = self.seat.structure
        if self.hosted is not None:
            parts = self.hosted.split(capture.seat_inputs)[1]
            hooks |= {name: torch.no_grad()(part.__call__) for name, part in parts.items()}
        result = structure.reference(
            **self._inputs(capture),
            **self.slots,
            **self.sizes,
            **self.seat.variants,
            **self.seat.params,
            **hooks,
        )
        if self.seat.routed is not None or self.hosted is not None:
            # a reference gives None for what the host has not
            result = (
                [result] if isinstance(result, Tensor) else [r for r in result if r is not None]
            )
        return named(self.outputs, result)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The structure's outputs; on a route, those that the host has."""
        spec, boundary = self.seat.structure, self.seat.boundary
        if (self.seat.routed is None and self.hosted is None) or boundary is None:
            return spec.outputs
        return tuple(name for name in spec.outputs if name in boundary.outputs)

    def cut(self, *sources: Tensor) -> Any:
        """The seat's seam alone, from its sources."""
        assert self.seam is not None
        slots = {name: self.slots[name] for name in self.seam.slots if name in self.slots}
        variants = {name: self.seat.variants[name] for name in self.seam.variants}
        params = {name: self.seat.params[name] for name in self.seam.params}
        return self.seam.call(*sources, **slots, **variants, **params)

    def seat_inputs(self, capture: SeatCapture) -> tuple[Tensor, ...]:
        """What the seat's impl takes of a captured call: the first of its tensors; on a route
        what lies at its boundary."""
        if self.seat.routed is not None:
            return tuple(self._inputs(capture).values())
        if self.hosted is not None:
            return capture.seat_inputs
        count = len(self.seam.sources) if self.seam else len(self._required())
        return capture.seat_inputs[:count]

    # ------------------------------------------------------------ against the host

    def agreement(self, capture: SeatCapture) -> Iterator[Pair]:
        """Every place of one captured call where host and reference can be compared.

        Around a seam the reference goes on from what the host gave there, so that each
        part answers for itself.
        """
        structure = self.seat.structure
        if self.seam is None:
            theirs = capture.outputs or self._returned(capture, structure.outputs)
            with Products() as products:
                mine = self.full(capture)
            yield from _pairs(theirs, mine, products.seen)
            return
        theirs = self._returned(capture, self.seam.targets)
        with Products() as products:
            mine = named(self.seam.targets, self.cut(*self.seat_inputs(capture)))
        yield from _pairs(theirs, mine, products.seen)
        if self.has_boundary:
            seen: Named = {}
            with Products() as products:
                stands_in = _returning(theirs, self.seam.sources, seen)
                mine = self.full(capture, stands_in, record=seen.__setitem__)
            theirs = dict(zip(self.seam.sources, self.seat_inputs(capture), strict=True))
            yield from _pairs(theirs, seen, products.seen)
            yield from _pairs(capture.outputs, mine, products.seen)

    # ------------------------------------------------------------ against an impl

    def against(self, capture: SeatCapture, run: Rows) -> Comparison:
        """One captured call with the seat's own arithmetic and with ``run`` in its place."""
        if self.seam is None:
            given = self._inputs(capture).values() if self.hosted is None else capture.seat_inputs
            treated = named(self.outputs, run(*given))
            return Comparison(full=(self.full(capture), treated))
        if not self.has_boundary:
            sources = self.seat_inputs(capture)
            return Comparison(
                seam=(self._targets(self.cut(*sources)), self._targets(run(*sources)))
            )
        bare: list[Named] = []

        def kept(call: Rows) -> Rows:
            def seam(*sources: Tensor) -> Any:
                result = call(*sources)
                bare.append(self._targets(result))
                return result

            return seam

        full = self.full(capture, kept(self.cut)), self.full(capture, kept(run))
        return Comparison(full, (bare[0], bare[1]))

    def _targets(self, result: Any) -> Named:
        assert self.seam is not None
        return named(self.seam.targets, result)

    def _returned(self, capture: SeatCapture, names: Sequence[str]) -> Named:
        """What the seat's module gave back; of several values, the first is the output."""
        if self.seat.siblings is not None:
            return named(names, capture.seat_outputs)
        output = first_tensor(capture.seat_outputs)
        return {} if output is None else {names[0]: output}

    def contraction(self) -> int:
        """K: the longest contraction among the seat's matrix products (in_out: axis 0)."""
        own = self.seam.slots if self.seam else self.slots
        return max((w.shape[0] for name in own for w in self._matrices(name)), default=1)

    def _inputs(self, capture: SeatCapture) -> Named:
        if capture.inputs:
            given, order = capture.inputs, self.seat.structure.inputs
            return {name: given[name] for name in order if name in given}
        return dict(zip(self._required(), self.seat_inputs(capture), strict=True))

    def _required(self) -> list[str]:
        structure = self.seat.structure
        return [name for name in structure.inputs if name not in structure.optional]

    def _matrices(self, slot: str) -> list[Tensor]:
        value = self.slots.get(slot, ())
        items = [value] if isinstance(value, Tensor) else list(value)
        return [item for item in items if item.dim() == 2]


def _sizes(seat: Seat, slots: Mapping[str, host.SlotValue]) -> dict[str, int]:
    """The sizes that the reference takes by keyword. Raises Refusal ``host.dims`` for one
    that neither the binding nor a weight fixes."""
    wanted = seat.structure.sizes
    if not wanted:
        return {}
    known = host.solved_dims(seat, slots)
    missing = [dim for dim in wanted.values() if dim not in known]
    if missing:
        raise Refusal(
            "host.dims",
            f"{', '.join(missing)} of {seat.structure.key} is not determined: no weight shows it",
            fix="set it in the seat's dims",
            seat=seat.name,
        )
    return {name: known[dim] for name, dim in wanted.items()}


def _returning(outputs: Named, sources: Sequence[str], seen: Named) -> Rows | None:
    """A call that gives these tensors whatever it gets, and keeps in ``seen`` what it got, by
    the seam's sources; None where there are none."""
    if not outputs:
        return None
    given = next(iter(outputs.values())) if len(outputs) == 1 else tuple(outputs.values())

    def seam(*values: Tensor) -> Any:
        seen.update(zip(sources, values, strict=True))
        return given

    return seam


def named(names: Sequence[str], result: Any) -> Named:
    """A reference's result by output name; a repeated output counts: ``y[0]``, ``y[1]``."""
    if isinstance(result, Tensor):
        return {names[0]: result}
    if len(names) == len(result):
        return dict(zip(names, result, strict=True))
    return {f"{names[0]}[{position}]": item for position, item in enumerate(result)}


def _pairs(theirs: Mapping[str, Tensor], mine: Named, contracted: bool) -> Iterator[Pair]:
    for name, value in theirs.items():
        if name in mine:
            host, own = _folded(value, mine[name])
            if not host.is_floating_point():  # such as which experts a row goes to
                host, own = host.double(), own.double()
            yield Pair(name, host, own, contracted)


def _folded(theirs: Tensor, mine: Tensor) -> tuple[Tensor, Tensor]:
    """Both with their rows folded, where a host hands ``[B, S, D]`` on as ``[B*S, D]``."""
    width = theirs.shape[-1:]
    if theirs.shape == mine.shape or width != mine.shape[-1:] or theirs.numel() != mine.numel():
        return theirs, mine
    return theirs.reshape(-1, *width), mine.reshape(-1, *width)

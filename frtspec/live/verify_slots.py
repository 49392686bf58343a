"""The weight slots of a seat: are they there, of the sizes asked for, and in the layout said.

A matrix of two different sizes shows its layout by its shape, held against the sizes
that the binding reads from the config. A square one doesn't; there the class of the
module that owns it says how it is stored, and for any other class the reference must
agree in numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from frtspec.dims import DimError, Shape, instance
from frtspec.live.verify_report import Problem, SeatReport, Slot
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts import host
from frtspec.runtime.spec import Seat, Weight

BY_REFERENCE = "reference"
"""The proof of a layout that neither shape nor class shows, once the numbers agree."""

_OTHER = {"out_in": "in_out", "in_out": "out_in"}


@dataclass(frozen=True)
class _Place:
    """One weight of a slot; ``position`` of a repeated one."""

    slot: str
    position: int | None
    weight: Weight

    @property
    def name(self) -> str:
        return self.slot if self.position is None else f"{self.slot}[{self.position}]"


def check_slots(model: nn.Module, seat: Seat, report: SeatReport) -> None:
    """Fills ``report.slots`` and ``report.dims``; every problem of every slot is reported."""
    report.dims = dict(seat.dims)
    places = list(_places(seat))
    before = len(report.problems)
    values = {place.name: _read(model, seat, place, report) for place in places}
    if len(report.problems) == before:
        _solve(model, seat, report)
    for place in places:
        value = values[place.name]
        proof = None if value is None else _proof(model, seat, place, value, report)
        shape = None if value is None else _stored(value, place.weight.layout)
        made = place.weight.path is None
        report.slots.append(
            Slot(
                place.name,
                place.weight.path,
                None if made else shape,
                None if made or value is None else place.weight.layout,
                proof,
            )
        )


def settle_by_reference(report: SeatReport) -> None:
    """After the reference ran: layouts that only it can show are proven by it, or wrong."""
    for number, slot in enumerate(report.slots):
        if slot.layout is None or slot.proof is not None:
            continue
        if report.reference is not None and not report.problems:
            report.slots[number] = Slot(slot.name, slot.path, slot.shape, slot.layout, BY_REFERENCE)
        elif not any(p.path == slot.path for p in report.problems):
            report.problems.append(
                Problem(
                    "verify.layout",
                    slot.path or "",
                    f"slot {slot.name} is said to be {slot.layout}; its shape fits both layouts, "
                    "its owner's class says neither, and the reference did not show it",
                    "set the seat's dims from the config, or mend what keeps the reference from "
                    "running",
                )
            )


def _places(seat: Seat) -> Iterator[_Place]:
    boundary = seat.boundary.slots if seat.boundary else {}
    for name, weight in {**seat.slots, **boundary}.items():
        if isinstance(weight, Weight):
            yield _Place(name, None, weight)
        else:
            yield from (_Place(name, position, item) for position, item in enumerate(weight))


def _read(model: nn.Module, seat: Seat, place: _Place, report: SeatReport) -> Tensor | None:
    try:
        return host.read_weight(model, seat, place.weight, slot=place.slot)
    except Refusal as refusal:
        report.refuse(refusal, place.weight.path or "")
    except (RuntimeError, ValueError, IndexError) as error:
        report.problems.append(
            Problem(
                "host.view",
                place.weight.path or "",
                f"slot {place.name} can't be read as {place.weight.view}: {error}",
                "the view in the binding does not fit this parameter",
            )
        )
    return None


def _solve(model: nn.Module, seat: Seat, report: SeatReport) -> None:
    try:
        report.dims = host.solved_dims(seat, host.seat_weights(model, seat))
        host.boundary_weights(model, seat)
    except Refusal as refusal:
        report.refuse(refusal, seat.path)


def _stored(value: Tensor, layout: str | None) -> tuple[int, ...]:
    """The shape before it was read as in_out."""
    return tuple(value.mT.shape if layout == "out_in" and value.dim() > 1 else value.shape)


def _proof(
    model: nn.Module, seat: Seat, place: _Place, value: Tensor, report: SeatReport
) -> str | None:
    layout = place.weight.layout
    if layout is None:
        return None if place.weight.path is None else "vector"
    shape = seat.structure.shapes.get(place.slot)
    if shape is not None and place.position is not None:
        shape = instance(shape, place.position)
    owner, stores = _owner(model, place.weight)
    if stores is not None and stores != layout:
        report.problems.append(
            Problem(
                "verify.layout",
                place.weight.path or "",
                f"slot {place.name} is said to be {layout}; a {owner} stores {stores} "
                f"({'x'.join(map(str, _stored(value, layout)))} here)",
                f"write `slot {place.name} = … : {stores}` in the binding",
            )
        )
        return None
    if shape is not None and _fits(shape, value.shape, seat.dims):
        swapped = value.mT.shape if value.dim() > 1 else value.shape
        if not _fits(shape, swapped, seat.dims):
            return "shape"
    return None if stores is None else f"class {owner}"


def _fits(shape: Shape, sizes: tuple[int, ...], known: Mapping[str, int]) -> bool:
    """Whether sizes fit a shape by what the binding gives; an axis that it does not give
    fits anything."""
    return len(shape) == len(sizes) and all(
        not wanted or size in wanted
        for wanted, size in zip((_sizes(axis, known) for axis in shape), sizes, strict=True)
    )


def _sizes(axis: object, known: Mapping[str, int]) -> set[int]:
    try:
        return {poly.value(known) for poly in axis.alternatives}  # type: ignore[attr-defined]
    except DimError:
        return set()


def _owner(model: nn.Module, weight: Weight) -> tuple[str, str | None]:
    """The class that owns a parameter, and the layout that it stores; None: not known."""
    assert weight.path is not None
    owner = host.submodule(model, weight.path.rpartition(".")[0])
    kind = type(owner).__name__
    if isinstance(owner, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d):
        stores = "out_in"
    elif any(cls.__name__ == "Conv1D" for cls in type(owner).__mro__):  # GPT-2's, of transformers
        stores = "in_out"
    else:
        return kind, None
    return kind, _OTHER[stores] if weight.view == "transpose" else stores

"""Which members of a bank of weights were used: experts that no row went to were never judged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.host import submodule
from frtspec.runtime.observation.recorders import Recorder, input_count, named_inputs
from frtspec.runtime.seats.calls import Signature
from frtspec.runtime.spec import Seat

NAMED = 16
"""So many members are told by number."""


def bank_size(seat: Seat) -> int | None:
    """How many weights a seat chooses among: the first dim of every slot that it runs on, where
    they are stacked and no input or output has it. None where it has no such bank."""
    spec = seat.structure
    names = spec.slots if seat.seam is None else spec.seams[seat.seam].slots
    shapes = [spec.shapes.get(name, ()) for name in names]
    if not shapes or any(len(shape) < 3 for shape in shapes):
        return None
    first = {str(shape[0].alternatives[0]) for shape in shapes}
    ports = [*spec.inputs, *spec.outputs]
    shown = {
        str(dim) for p in ports for axis in spec.shapes.get(p, ()) for dim in axis.alternatives
    }
    return seat.dims.get(first.pop()) if len(first) == 1 and not first & shown else None


def bank_recorders(model: nn.Module, seats: Iterable[Seat]) -> list[BankRecorder]:
    """A recorder for each of the seats that choose among stacked weights."""
    return [
        BankRecorder(seat, submodule(model, seat.path), size)
        for seat in seats
        if (size := bank_size(seat)) is not None
    ]


class BankRecorder(Recorder):
    """How many rows each member of a bank was given, by the whole numbers that the seat's
    module is handed. ``seen`` [size] on the device of the first call; None before it."""

    def __init__(self, seat: Seat, module: nn.Module, size: int) -> None:
        super().__init__(seat)
        self.module, self.size = module, size
        self.seen: Tensor | None = None

    def attach(self) -> None:
        sig, count = Signature.of(self.module, named_inputs(self.seat)), input_count(self.seat)

        def see(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            for value in sig.inputs(count, args, kwargs):
                if isinstance(value, Tensor) and value.dtype in (torch.int32, torch.int64):
                    self._count(value.detach())

        self.before(self.module, see)

    def _count(self, chosen: Tensor) -> None:
        # Numbers past the bank stand for "no member" in hosts that drop rows.
        kept = chosen.long().clamp(-1, self.size).add(1).reshape(-1)
        found = torch.zeros(self.size + 2, dtype=torch.int64, device=chosen.device)
        found = found.scatter_add(0, kept, torch.ones_like(kept))[1:-1]
        self.seen = found if self.seen is None else self.seen + found.to(self.seen.device)

    def problem(self, samples: int) -> Refusal | None:
        if self.seen is None:
            return None
        unseen = (self.seen == 0).nonzero().flatten().tolist()
        if not unseen:
            return None
        told = ", ".join(map(str, unseen[:NAMED]))
        more = f" and {len(unseen) - NAMED} more" if len(unseen) > NAMED else ""
        return Refusal(
            "calibration.unseen",
            f"no row of {samples} samples went to {told}{more} of {self.size}, counted from 0: "
            "nothing shows what this form does to them",
            fix="calibrate on more samples, or more varied ones, until each is reached",
            seat=self.seat.name,
        )

"""A limit on what packs may hold, asked before a seat is built."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from frtspec.runtime.errors import Refusal
from frtspec.runtime.units import size_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from frtspec.runtime.hosts.host import SlotValue
    from frtspec.runtime.spec import ImplSpec

RESERVE = 256 << 20
"""Bytes of a GPU that packs leave free where no budget was given."""

_UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")

_BYTES = {"fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "int8": 1.0, "nvfp4": 0.5625, "int4": 0.5625}
"""Bytes of an element in a pack, scales of blocks included."""


def bytes_of(value: int | str) -> int:
    """``memory_budget=`` in bytes: a whole number, or text such as "512 MiB".

    Raises Refusal ``option.memory_budget``.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    found = _TEXT.fullmatch(value) if isinstance(value, str) else None
    unit = _UNITS.get(found[2].upper()) if found else None
    if found is None or unit is None:
        raise Refusal(
            "option.memory_budget",
            f"memory_budget={value!r} is no amount of memory",
            fix='pass bytes, or text such as "512 MiB" or "2 GiB"',
        )
    return int(float(found[1]) * unit)


class Budget:
    """Bytes that packs may hold in all. ``limit`` None: what the device has free.

    spent   bytes of the packs that were let through
    """

    def __init__(self, limit: int | None, device: torch.device) -> None:
        self.limit, self.device, self.spent = limit, device, 0

    def admit(self, seat: str, needed: int) -> None:
        """Raises Refusal ``memory.budget`` where ``needed`` more bytes do not fit."""
        if self.limit is not None:
            left, of = self.limit - self.spent, f"the budget of {size_text(self.limit)}"
        elif self.device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self.device)
            cached = torch.cuda.memory_reserved(self.device)
            left = free + cached - torch.cuda.memory_allocated(self.device) - RESERVE
            of = f"what {self.device} has free, less {size_text(RESERVE)}"
        else:
            return
        if needed > left:
            raise Refusal(
                "memory.budget",
                f"its packs need {size_text(needed)}; {size_text(max(left, 0))} are left of {of}"
                f" after {size_text(self.spent)} of packs",
                fix="raise memory_budget=, name fewer structures=, or consume the originals",
                seat=seat,
            )

    def spend(self, seat: str, added: int) -> None:
        """Counts a seat that was built. Raises Refusal ``memory.budget`` as ``admit`` does."""
        self.admit(seat, added if self.limit is not None else 0)
        self.spent += added


def estimate(spec: ImplSpec, weights: Mapping[str, SlotValue]) -> int:
    """What the packs of an impl will hold, from its weights: never less than a tenth short of
    what they do. Weights of one axis stay as they are."""
    widths = [_BYTES.get(dtype) for dtype, _ in spec.packs.values()]
    size = max((width for width in widths if width is not None), default=None)
    total = 0.0
    for value in weights.values():
        for item in (value,) if isinstance(value, Tensor) else value:
            held = item.nbytes if size is None or item.dim() < 2 else item.numel() * size
            total += held
    return int(total)

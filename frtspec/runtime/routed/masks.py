"""Masks of an attention that leave one or two runs of keys, the same for every query.

Such a mask is answered by packing: the keys that may be seen are taken out, and no mask is left.
What a mask blocks is read once for each mask tensor (one transfer from its device), and all
layers that are handed the same tensor share the answer.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass

import torch
from torch import Tensor

from frtspec.runtime.seats.calls import version_of

KEPT = 8
"""Masks whose answer is remembered, on each thread."""


@dataclass(frozen=True)
class Seen:
    """The keys that a mask leaves, as half-open ranges; or why it can't be packed."""

    ranges: tuple[tuple[int, int], ...] = ()
    problem: str | None = None


class _Known(threading.local):
    def __init__(self) -> None:
        self.masks: list[tuple[weakref.ref[Tensor], int | None, Seen]] = []


_KNOWN = _Known()


def seen(mask: Tensor) -> Seen:
    """What an additive mask, or one of truths, leaves to be seen. [..., queries, keys]"""
    version = version_of(mask)
    for held, then, answer in _KNOWN.masks:
        if held() is mask and version is not None and then == version:
            return answer
    answer = _read(mask)
    _KNOWN.masks = [(weakref.ref(mask), version, answer), *_KNOWN.masks[: KEPT - 1]]
    return answer


def _read(mask: Tensor) -> Seen:
    rows = mask.detach().reshape(-1, mask.shape[-1])
    first = rows[:1]
    if bool((rows != first).any()):
        return Seen(problem="the mask differs between queries or batch rows")
    row = first[0].cpu()
    if row.dtype == torch.bool:
        blocked = ~row
    else:
        blocked = row <= torch.finfo(row.dtype).min / 2
        if bool((row[~blocked] != 0).any()):
            return Seen(problem="the mask holds a bias, and packed keys take none")
    edges = torch.nn.functional.pad((~blocked).int(), (1, 1)).diff()
    starts, ends = ((edges == sign).nonzero().flatten().tolist() for sign in (1, -1))
    ranges = tuple(zip(starts, ends, strict=True))
    if not ranges:
        return Seen(problem="the mask blocks every key")
    if len(ranges) > 2:
        return Seen(problem=f"the mask leaves {len(ranges)} runs of keys; packing takes one or two")
    return Seen(ranges)


def packed(value: Tensor, ranges: tuple[tuple[int, int], ...]) -> Tensor:
    """The keys (or values) [B, H, S, D] in the ranges, one behind the other."""
    parts = [value[..., start:end, :] for start, end in ranges]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)

"""Facts computed from tensors that were kept over the calls of one run.

Each function takes what passed at one place, in order, and gives one number or word.
They say what they can't decide with ``None``.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

COORDINATES = 8
"""How many coordinates a fingerprint reads."""

SAME = 1e-6
"""Two values closer than this, relative to their magnitude, are one."""


def distinct(values: Sequence[Tensor]) -> list[Tensor]:
    """The values without repetitions, in order of first appearance (float32, flat)."""
    kept: list[Tensor] = []
    for value in values:
        flat = value.detach().float().reshape(-1)
        if not any(_same(flat, other) for other in kept):
            kept.append(flat)
    return kept


def _same(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape:
        return False
    size = float(torch.maximum(a.abs().max(), b.abs().max())) if a.numel() else 0.0
    return bool((a - b).abs().max() <= SAME * size) if a.numel() else True


def steps(values: Sequence[Tensor]) -> int:
    """How many distinct values there are."""
    return len(distinct(values))


def fingerprint_margin(values: Sequence[Tensor]) -> float | None:
    """How far apart the distinct values stay at the coordinates that tell them best.

    The smallest distance (largest absolute difference) of any two at those coordinates,
    over the mean magnitude of all values there. None for fewer than two values, which
    need no telling apart, and for values of several shapes.
    """
    rows = distinct(values)
    if len(rows) < 2 or len({row.shape for row in rows}) > 1:
        return None
    table = torch.stack(rows)
    seen = table[:, telling(values)]
    between = (seen[:, None] - seen[None]).abs().amax(dim=-1)
    between.fill_diagonal_(float("inf"))
    scale = float(table.abs().mean())
    return float(between.min()) / scale if scale else 0.0


def telling(values: Sequence[Tensor]) -> Tensor:
    """The coordinates (of the values laid flat) that tell distinct values apart best; the first
    ones where there is one value only."""
    table = torch.stack(distinct(values))
    if len(table) < 2:
        return torch.arange(min(COORDINATES, table.shape[1]))
    ordered = table.sort(dim=0).values
    gaps = (ordered[1:] - ordered[:-1]).min(dim=0).values
    return gaps.topk(min(COORDINATES, gaps.numel())).indices


def runs(masks: Sequence[Tensor]) -> int:
    """Runs of blocked positions in additive masks [..., queries, keys], the most of any.

    A position is blocked where the mask takes away so much that nothing is left: below
    half of the dtype's smallest number, -inf included, or false in a mask of truth values.
    Queries that see different masks can't share one packing: each pattern counts apart.
    """
    most = 0
    for mask in masks:
        rows = torch.unique(_blocked(mask).reshape(-1, mask.shape[-1]), dim=0)
        starts = rows & ~torch.nn.functional.pad(rows, (1, 0))[:, :-1]
        counts = starts.sum(dim=-1)
        most = max(most, int(counts[0]) if len(rows) == 1 else int(counts.clamp(min=1).sum()))
    return most


def _blocked(mask: Tensor) -> Tensor:
    if mask.dtype == torch.bool:
        return ~mask
    return mask <= torch.finfo(mask.dtype).min / 2


def drift(values: Sequence[Tensor]) -> float | None:
    """The largest change from the first value on, over the largest magnitude.

    None for fewer than two values. Another shape is another value: infinite.
    """
    if len(values) < 2:
        return None
    first = values[0].detach().double()
    size = max((float(value.detach().abs().max()) for value in values if value.numel()), default=0)
    change = 0.0
    for value in values[1:]:
        if value.shape != first.shape:
            return float("inf")
        if value.numel():
            change = max(change, float((value.detach().double() - first).abs().max()))
    return change / size if size else 0.0


def prefix_drift(keys: Sequence[Tensor], queries: int) -> float | None:
    """``drift`` of keys [..., positions, width] before the last ``queries`` positions; those
    belong to the tokens of the call and change with it."""
    return drift([key[..., : key.shape[-2] - queries, :] for key in keys])


def table(shape: Sequence[int], batch: int, tokens: int) -> str:
    """``per_token`` for a position table [batch, tokens, …] that has a row for each token of
    each batch row; ``shared`` for one that would have to be looked up or spread."""
    return "per_token" if tuple(shape[:2]) == (batch, tokens) else "shared"

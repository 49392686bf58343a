"""Which samples to calibrate on: some of every kind, from all along each.

Recorded runs are long and alike from frame to frame. A few, spread over the runs and over
the time in each, show the range of values that neighbours do not.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from frtspec.runtime.errors import Refusal

LEAST_STRATA = 3
"""Strata that are sampled at least, where there are so many: one run is no distribution."""


def stratified(
    strata: Sequence[Hashable],
    count: int = 8,
    *,
    positions: Sequence[Any] | None = None,
    exclude: Iterable[int] = (),
    seed: int = 0,
) -> list[int]:
    """Indices of at most ``count`` samples, ascending, the same for the same arguments.

    strata      of each sample what it belongs to: an episode, a task, a (task, episode) pair
    positions   its place there, such as the frame number; None: the order given
    exclude     indices that must not be taken, such as those that are judged on
    seed        which strata are drawn where there are more than are sampled

    Of the strata ``max(count // 2, 3)`` are drawn (all, where there are no more); each gives
    as many samples as the next, one more or less, equally spaced along it, its ends included.
    What a short stratum can't give the others do.

    Raises Refusal ``samples.strata`` where nothing can be taken, or lengths differ.
    """
    if positions is not None and len(positions) != len(strata):
        raise _refusal(f"{len(strata)} strata and {len(positions)} positions")
    if count < 1:
        raise _refusal(f"count={count} is less than one")
    left = set(exclude)
    members: dict[Hashable, list[int]] = {}
    for index, stratum in enumerate(strata):
        if index not in left:
            members.setdefault(stratum, []).append(index)
    if not members:
        raise _refusal(f"none of {len(strata)} samples is left")
    if positions is not None:
        for held in members.values():
            held.sort(key=lambda index: (positions[index], index))
    drawn = _drawn(members, min(count, max(count // 2, LEAST_STRATA)), seed)
    shares = _shares([len(members[s]) for s in drawn], count)
    if sum(shares) < count:  # the strata drawn are too short: the others help out
        drawn += [s for s in members if s not in set(drawn)]
        shares = _shares([len(members[s]) for s in drawn], count)
    taken = [
        members[s][place]
        for s, share in zip(drawn, shares, strict=True)
        for place in _spaced(len(members[s]), share)
    ]
    return sorted(taken)


def _drawn(members: dict[Hashable, list[int]], most: int, seed: int) -> list[Hashable]:
    names = list(members)
    if len(names) <= most:
        return names
    places = sorted(random.Random(seed).sample(range(len(names)), most))
    return [names[place] for place in places]


def _shares(sizes: Sequence[int], count: int) -> list[int]:
    """How many each gives: one after the other as long as it has some."""
    shares = [0] * len(sizes)
    while sum(shares) < min(count, sum(sizes)):
        for place, size in enumerate(sizes):
            if shares[place] < size and sum(shares) < count:
                shares[place] += 1
    return shares


def _spaced(size: int, share: int) -> list[int]:
    if share == 1:
        return [size // 2]
    return [round(step * (size - 1) / (share - 1)) for step in range(share)]


def _refusal(what: str) -> Refusal:
    return Refusal(
        "samples.strata",
        f"no samples can be picked: {what}",
        fix="pass one stratum and one position a sample, and exclude fewer",
    )

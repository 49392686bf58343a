"""Which calls of a sample are kept: every one while they fit, then every second, every fourth,
and the last in any case. How often a seat will be called is not known in advance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass
class Keeping:
    """The choice for one seat in one sample.

    limit   calls to keep beside the last; 1: the first alone
    room    bytes that the calls after the first may take, the last ones aside; None: any
    """

    limit: int
    room: int | None = None
    stride: int = 1
    latest: int = -1

    def wants(self, call: int) -> bool:
        """Whether what passes in a call is kept; the last two are, for one may be the last and
        places of the one before may still be due."""
        self.latest = max(self.latest, call)
        if self.limit == 1:
            return call == 0
        return call % self.stride == 0 or call >= self.latest - 1

    def given_up(self, held: Mapping[int, int], *, ended: bool = False) -> list[int]:
        """Calls to give up of those held (call -> bytes); widens the stride until the rest
        fits. ``ended``: the sample is over, so that of the last two only one is the last."""
        while True:
            kept = {call: size for call, size in held.items() if call % self.stride == 0}
            later = sum(size for call, size in kept.items() if call)
            fits = len(kept) <= self.limit and (self.room is None or later <= self.room)
            if fits or max(kept) == 0:
                break
            self.stride *= 2
        last = self.latest - (not ended)
        return [call for call in held if call % self.stride and call < last]

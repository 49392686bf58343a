"""A layered drawing of a directed graph without cycles: rows from top to bottom.

The steps are those of Sugiyama, Tagawa and Toda (1981): rows by longest path, stand-ins
where an edge crosses a row, an order within rows that avoids crossings (medians), places
that keep chains straight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

SWEEPS = 12
GAP = 22.0
"""Free width between two boxes of a row."""


@dataclass(frozen=True)
class Placed:
    """``row`` of each box; ``x``: its middle; ``routes``: for each edge, the middles of
    the boxes and stand-ins it passes, from its source to its target, with their rows."""

    row: Mapping[int, int]
    x: Mapping[int, float]
    routes: Mapping[tuple[int, int], tuple[tuple[float, int], ...]]
    width: float


def place(
    widths: Mapping[int, float],
    edges: Sequence[tuple[int, int]],
    late: Callable[[int], bool] = lambda key: False,
) -> Placed:
    """Places the boxes of a graph.

    widths  width of each box, by its key; keys grow in reading order
    edges   (source, target); a source's key is the smaller one
    late    boxes that move down to the row above their first reader
    """
    row = _rows(sorted(widths), edges, late)
    graph = _Layered(dict(widths), row)
    routes = {edge: graph.route(*edge) for edge in dict.fromkeys(edges)}
    graph.order()
    graph.settle()
    left = min(graph.x[key] - graph.width[key] / 2 for key in graph.x)
    x = {key: at - left for key, at in graph.x.items()}
    width = max(x[key] + graph.width[key] / 2 for key in x)
    paths = {edge: tuple((x[key], graph.row[key]) for key in keys) for edge, keys in routes.items()}
    return Placed({key: row[key] for key in widths}, {key: x[key] for key in widths}, paths, width)


def _rows(
    keys: Sequence[int], edges: Sequence[tuple[int, int]], late: Callable[[int], bool]
) -> dict[int, int]:
    row = dict.fromkeys(keys, 0)
    for key in keys:
        row[key] = max((row[a] + 1 for a, b in edges if b == key), default=0)
    for key in reversed(keys):
        readers = [row[b] for a, b in edges if a == key]
        if late(key) and readers:
            row[key] = max(0, min(readers) - 1)
    return row


@dataclass
class _Layered:
    width: dict[int, float]
    row: dict[int, int]

    def __post_init__(self) -> None:
        self.up: dict[int, list[int]] = {key: [] for key in self.width}
        self.down: dict[int, list[int]] = {key: [] for key in self.width}
        self.rows: list[list[int]] = [[] for _ in range(max(self.row.values(), default=0) + 1)]
        for key in sorted(self.width):
            self.rows[self.row[key]].append(key)
        self.x: dict[int, float] = {}

    def route(self, source: int, target: int) -> tuple[int, ...]:
        """Links two boxes through a stand-in in every row between them."""
        path = [source]
        for row in range(self.row[source] + 1, self.row[target]):
            key = -len(self.width) - 1
            self.width[key], self.row[key] = 6.0, row
            self.up[key], self.down[key] = [], []
            self.rows[row].append(key)
            path.append(key)
        path.append(target)
        for above, below in pairwise(path):
            self.down[above].append(below)
            self.up[below].append(above)
        return tuple(path)

    def order(self) -> None:
        """The best order that some sweeps down and up find; the first among equals."""
        best = [list(row) for row in self.rows]
        fewest = self.crossings()
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            rows = self.rows[1:] if down else self.rows[-2::-1]
            for row in rows:
                self.sort(row, self.up if down else self.down)
            now = self.crossings()
            if now < fewest:
                best, fewest = [list(row) for row in self.rows], now
        self.rows = best

    def sort(self, row: list[int], near: Mapping[int, Sequence[int]]) -> None:
        at = {key: place for other in self.rows for place, key in enumerate(other)}
        own = dict(at)
        row.sort(key=lambda k: (median(at[n] for n in near[k]) if near[k] else own[k], own[k]))

    def crossings(self) -> int:
        total = 0
        for row in self.rows[:-1]:
            below = {}
            if row:
                level = self.rows[self.row[row[0]] + 1]
                below = {key: place for place, key in enumerate(level)}
            ends = [below[b] for a in row for b in sorted(self.down[a], key=below.__getitem__)]
            total += sum(
                1 for i, left in enumerate(ends) for right in ends[i + 1 :] if left > right
            )
        return total

    def settle(self) -> None:
        """Middles that are as near to their neighbours' as the order allows."""
        for row in self.rows:
            at = 0.0
            for key in row:
                self.x[key] = at + self.width[key] / 2
                at += self.width[key] + GAP
        for sweep in range(4 * SWEEPS):
            down = sweep % 2 == 0
            for row in self.rows if down else self.rows[::-1]:
                self.pull(row, self.up if down else self.down)

    def pull(self, row: list[int], near: Mapping[int, Sequence[int]]) -> None:
        wanted = [median(self.x[n] for n in near[k]) if near[k] else self.x[k] for k in row]
        for key, at in zip(row, self._spread(row, wanted), strict=True):
            self.x[key] = at

    def _spread(self, row: Sequence[int], wanted: Sequence[float]) -> list[float]:
        """Middles nearest to the wanted ones, in least squares, that keep order and gaps:
        neighbours that would overlap are merged into blocks and share their shift."""
        offsets = [0.0]
        for left, right in pairwise(row):
            offsets.append(offsets[-1] + (self.width[left] + self.width[right]) / 2 + GAP)
        blocks: list[tuple[float, int]] = []  # (mean of wanted - offset, members)
        for want, offset in zip(wanted, offsets, strict=True):
            mean, members = want - offset, 1
            while blocks and blocks[-1][0] >= mean:
                before, count = blocks.pop()
                mean = (mean * members + before * count) / (members + count)
                members += count
            blocks.append((mean, members))
        shifts = [mean for mean, members in blocks for _ in range(members)]
        return [shift + offset for shift, offset in zip(shifts, offsets, strict=True)]

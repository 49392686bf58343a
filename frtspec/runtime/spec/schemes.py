"""What a quantisation scheme measures, and what it makes of each structure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frtspec.runtime.decisions import Condition
    from frtspec.runtime.rungs.impl import BoundImpl


@dataclass(frozen=True)
class Stat:
    """A statistic at a point. ``stat`` None: quantised at run time, nothing to measure.

    ``size``: channels of a block. ``bins``: of a histogram.
    """

    stat: str | None
    per: str = "tensor"
    size: int | None = None
    bins: int | None = None

    def __str__(self) -> str:
        """As specs write it: ``amax per block 16``."""
        size = "" if self.size is None else f" {self.size}"
        bins = "" if self.bins is None else f"(bins = {self.bins})"
        return "none" if self.stat is None else f"{self.stat}{bins} per {self.per}{size}"


@dataclass(frozen=True)
class Route:
    """What a scheme makes of a structure (seam): an impl class, or keep the host.

    stats      point -> what is measured there, one statistic or several
    params     what the impl's params are set to
    keep_when  where it holds, the host is kept although there is an impl
    version    the structure's; None: every one
    """

    structure: str
    seam: str | None
    stats: Mapping[str, Stat | tuple[Stat, ...]]
    impl: type[BoundImpl] | None
    keep: str | None = None
    params: Mapping[str, float] = field(default_factory=dict)
    keep_when: Condition | None = None
    version: int | None = None

    def serves(self, variants: Mapping[str, object]) -> bool:
        """Whether the impl has a form for these variants; keeping the host serves every one."""
        only = {} if self.impl is None else self.impl.SPEC.only
        return all(variants.get(axis) in allowed for axis, allowed in only.items())

    def measured(self) -> dict[str, tuple[Stat, ...]]:
        """Point -> the statistics that are really measured there."""
        several = {p: s if isinstance(s, tuple) else (s,) for p, s in self.stats.items()}
        asked = {p: tuple(s for s in stats if s.stat is not None) for p, stats in several.items()}
        return {point: stats for point, stats in asked.items() if stats}


@dataclass(frozen=True)
class SchemeSpec:
    name: str
    source_digest: str
    contract_digest: str
    routes: tuple[Route, ...]
    otherwise: str
    imported: str | None = None

    def route(
        self,
        structure: str,
        seam: str | None,
        version: int | None = None,
        variants: Mapping[str, object] | None = None,
    ) -> Route:
        """The row for a structure (seam) of a version, else what becomes of all others.

        Of several rows, the one whose impl serves these variants; the first where none does.
        """
        rows = [
            row
            for row in self.routes
            if row.structure == structure
            and row.seam == seam
            and (row.version == version or None in (row.version, version))
        ]
        for row in rows:
            if len(rows) == 1 or row.serves(variants or {}):
                return row
        if rows:
            return rows[0]
        return Route(structure, seam, {}, None, self.otherwise, version=version)

"""Bytes of one attachment: what packs add, what of the host is doubled, freed, stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from frtspec.runtime.units import size_text

if TYPE_CHECKING:
    from frtspec.runtime.memory.originals import Originals
    from frtspec.runtime.records import SeatRecord


@dataclass(frozen=True)
class Memory:
    """Bytes.

    added       packs and scales of the bound seats
    duplicated  host weights that bound seats stand for and that still lie beside the packs
    freed       of the host's weights, given back to their device
    stored      where they lie now -> bytes: checkpoint, host memory, resident
    kept        parameter path -> why its weight was not put away
    restored    seats whose weights came back because the host's module had to run
    budget      what packs may hold at most; None: no limit was set
    """

    added: int
    duplicated: int
    freed: int
    stored: Mapping[str, int]
    kept: Mapping[str, str]
    restored: tuple[str, ...]
    finalized: bool
    budget: int | None

    @staticmethod
    def of(
        records: Sequence[SeatRecord], originals: Originals | None, budget: int | None
    ) -> Memory:
        added = sum(r.built.bytes_added for r in records if r.state == "bound" and r.built)
        if originals is None:
            return Memory(added, 0, 0, {}, {}, (), False, budget)
        return Memory(
            added,
            originals.resident,
            originals.freed,
            originals.stored,
            dict(originals.kept),
            tuple(originals.restored),
            originals.finalized,
            budget,
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "restored": list(self.restored)}

    def line(self) -> str:
        """One sentence for a person."""
        text = f"packs add {size_text(self.added)}"
        text += f"; {size_text(self.duplicated)} of the host's own weights lie beside them"
        if self.stored:
            places = ", ".join(
                f"{size_text(size)} in {where}" for where, size in self.stored.items()
            )
            what = "given up" if self.finalized else "put away"
            text += f"; {what}: {places}, which freed {size_text(self.freed)}"
        if self.budget is not None:
            text += f"; budget {size_text(self.budget)}"
        return text

"""What a scan gives back: the draft, the seats, what is left out, and how much that is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from frtspec.live.scan.families import Family
from frtspec.live.scan.found import Coverage, FoundSeat, LeftOut


@dataclass(frozen=True)
class ScanResult:
    """``binding``: the draft as `.frt` text. ``families``: seat name of the draft -> seats.

    ``proven``: every seat was held against what the host computed in a run.
    """

    binding: str
    families: tuple[tuple[str, Family], ...]
    seats: tuple[FoundSeat, ...]
    left_out: tuple[LeftOut, ...]
    coverage: Coverage
    proven: bool

    def explain(self) -> str:
        """Seats by family, coverage, and what is left out, grouped by reason."""
        lines = [f"{len(self.seats)} seats: {self.coverage.line()}"]
        for name, family in self.families:
            count = len(family.numbers)
            times = f"{count} x " if count > 1 else ""
            lines.append(f"  {name}: {times}{family.seat.target} at {family.seat.path}")
        if self.left_out:
            lines.append(f"{len(self.left_out)} modules left out:")
        grouped: dict[tuple[str, str, str], list[str]] = {}
        for row in self.left_out:
            grouped.setdefault((row.kind, row.code, _general(row)), []).append(row.path)
        for (kind, code, reason), paths in grouped.items():
            first = paths[0] or "the model itself"
            where = first if len(paths) == 1 else f"{first} and {len(paths) - 1} more"
            lines.append(f"  {kind} {where}: {reason} [{code}]")
        if not self.proven:
            lines.append("no run was given: shared inputs and boundaries are not proven")
        return "\n".join(lines) + "\n"

    def reasons(self) -> dict[str, str]:
        """Module path -> the code of why it is left out."""
        return {row.path: row.code for row in self.left_out}

    def json(self) -> dict[str, Any]:
        """Plain data for ``--format json``."""
        return {
            "binding": self.binding,
            "proven": self.proven,
            "coverage": {
                "parameters": self.coverage.parameters,
                "parameters_seated": self.coverage.parameters_seated,
                "flops": self.coverage.flops,
                "flops_seated": self.coverage.flops_seated,
                "flops_measured": self.coverage.measured,
            },
            "seats": [
                {
                    "name": name,
                    "target": family.seat.target,
                    "version": family.seat.structure.version,
                    "path": family.seat.path,
                    "layers": list(family.numbers) if family.stem else None,
                    "variants": dict(family.seat.variants),
                    "dims": dict(family.seat.dims),
                    "proof": family.seat.proof,
                }
                for name, family in self.families
            ],
            "left_out": [
                {"path": row.path, "kind": row.kind, "code": row.code, "reason": row.reason}
                for row in self.left_out
            ],
            "left_out_by_code": dict(Counter(row.code for row in self.left_out)),
        }


def _general(row: LeftOut) -> str:
    """The reason without the numbers of layers, so that equal ones fall together."""
    return ".".join("*" if part.isdigit() else part for part in row.reason.split("."))

"""Whether the host's weights are still those that the packs were made from."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from torch import nn

from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts import host
from frtspec.runtime.hosts.census import counted
from frtspec.runtime.hosts.coverage import weight_paths
from frtspec.runtime.hosts.weights import fingerprint
from frtspec.runtime.records import SeatRecord


@dataclass(frozen=True)
class Drift:
    """A host parameter that is no longer what a seat was packed from."""

    seat: str
    path: str
    what: str


class Watch:
    """Fingerprints of the weights behind the bound seats, by parameter path."""

    def __init__(self, model: nn.Module, records: Iterable[SeatRecord]) -> None:
        self.marks: dict[str, dict[str, str]] = {}
        with counted(model):
            for record in records:
                marks = {path: _mark(model, path) for path in weight_paths(record)}
                self.marks[record.name] = {path: mark for path, mark in marks.items() if mark}

    def changes(self, model: nn.Module, away: Collection[str] = ()) -> tuple[Drift, ...]:
        """Every watched weight whose bits, shape or presence changed; none of those ``away``,
        which have no data here."""
        with counted(model):
            return tuple(
                Drift(seat, path, "changed since the seat was bound")
                for seat, marks in self.marks.items()
                for path, mark in marks.items()
                if path not in away and _mark(model, path) != mark
            )


def _mark(model: nn.Module, path: str) -> str:
    """A digest of the bits at a parameter path; empty where the host has no tensor."""
    try:
        value = host.parameter(model, path)
    except Refusal as refusal:
        return refusal.code
    if value is None:
        return ""
    plain, weighted = fingerprint(value)
    size = "x".join(map(str, value.shape))
    return f"{str(value.dtype).removeprefix('torch.')}[{size}]:{plain:x}:{weighted:x}"

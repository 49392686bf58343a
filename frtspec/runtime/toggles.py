"""Switching groups of seats off and on by name, for comparisons while attached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from frtspec.runtime.options import one_of
from frtspec.runtime.records import SeatRecord

if TYPE_CHECKING:
    from frtspec.runtime.seats.swap import Attachment


class Toggles(Mapping[str, bool]):
    """Group -> whether every seat of it runs our form.

    A group is a structure (``decoder_ffn``), what a binding calls its seats without their
    numbers (``ffn``), or one seat (``ffn[3]``). ``toggles["ffn"] = False`` runs the host's
    modules there; True puts the seats back, but for those that were given back for good.
    Raises Refusal ``option.toggle`` for a name that is no group, ``swap.detached`` after
    ``detach``.
    """

    def __init__(self, records: Sequence[SeatRecord], attachment: Attachment | None) -> None:
        self._attachment = attachment
        self._groups: dict[str, list[str]] = {}
        for record in records:
            if record.state == "bound":
                family = record.name.partition("[")[0]
                for name in dict.fromkeys((record.seat.structure.name, family, record.name)):
                    self._groups.setdefault(name, []).append(record.name)

    def __getitem__(self, name: str) -> bool:
        if name not in self._groups:
            raise KeyError(name)
        active = self._attachment.running if self._attachment is not None else frozenset()
        return all(seat in active for seat in self._groups[name])

    def __setitem__(self, name: str, on: bool) -> None:
        one_of("toggle", name, self._groups)
        assert self._attachment is not None  # a bound seat has one
        if on:
            self._attachment.enable(self._groups[name])
        else:
            self._attachment.disable(self._groups[name])

    def seats(self, name: str) -> tuple[str, ...]:
        """The seats of a group."""
        one_of("toggle", name, self._groups)
        return tuple(self._groups[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def __repr__(self) -> str:
        return f"<Toggles {dict(self)}>"

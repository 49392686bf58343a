"""The refreshes that a plan hands to its caller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from frtspec.runtime.cadence.held import HeldModule
from frtspec.runtime.errors import Refusal
from frtspec.runtime.options import one_of

if TYPE_CHECKING:
    from frtspec.runtime.records import SeatRecord
    from frtspec.runtime.seats.ledger import Ledger
    from frtspec.runtime.seats.swap import Attachment


class Update:
    """The refresh of one seat.

    ``update()`` says that what is held is no longer right: the next call computes by the host's
    module and keeps its result. ``update(x)`` computes at once, ``update.write(y)`` takes a
    value from outside; both keep it at one address, which is what compiled and captured
    regions read.
    """

    def __init__(self, module: HeldModule, attachment: Attachment) -> None:
        self._module, self._attachment = module, attachment

    @property
    def cadence(self) -> str:
        """When it has to run: at each new ``observation``, or ``prompt``."""
        return self._module._frt_held.cadence  # type: ignore[no-any-return]

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Raises Refusal ``swap.detached``, or ``update.input`` for arguments that the host's
        module is not called with."""
        self._check()
        if args or kwargs:
            self._module.recompute(*args, **kwargs)
        else:
            self._module._frt_held.refresh()

    def write(self, value: Tensor) -> None:
        """Raises Refusal ``swap.detached``, or ``update.value`` for a dtype, device or width
        that the host's module does not give."""
        self._check()
        self._module.write(value)

    def _check(self) -> None:
        if not self._attachment.seats:
            raise Refusal(
                "swap.detached",
                "nothing is attached, so nothing is held",
                fix="attach again to have something to refresh",
            )

    def __repr__(self) -> str:
        return f"<Update of {self._module._frt.counter.seat}: each {self.cadence}>"


class Updates(Mapping[str, Update]):
    """Seat -> its refresh, for every bound seat that holds a value."""

    def __init__(self, records: Sequence[SeatRecord], attachment: Attachment | None) -> None:
        self._updates: dict[str, Update] = {}
        for record in records:
            if record.state == "bound" and record.bound is not None and attachment is not None:
                for module in record.bound.modules.values():
                    if isinstance(module, HeldModule):
                        self._updates[record.name] = Update(module, attachment)

    def __getitem__(self, name: str) -> Update:
        return self._updates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._updates)

    def __len__(self) -> int:
        return len(self._updates)

    def __repr__(self) -> str:
        return f"<Updates {', '.join(self) or 'none'}>"

    def told(self, ledger: Mapping[str, Ledger]) -> Iterator[str]:
        """A line for a person on what is held at each cadence, and what came of it so far."""
        for cadence in dict.fromkeys(update.cadence for update in self.values()):
            seats = [name for name, update in self.items() if update.cadence == cadence]
            rows = [ledger[name] for name in seats if name in ledger]
            calls, held = sum(row.calls for row in rows), sum(row.held for row in rows)
            line = f"{len(seats)} seats hold a value: run plan.refresh() when the {cadence} changes"
            if calls:
                line += f"; so far {held} of {calls} calls were handed it"
            yield line

    def refresh(self, cadence: str | None = None) -> None:
        """All of them, or those of one cadence. Raises Refusal ``option.cadence`` for a cadence
        that no seat here has, ``swap.detached``."""
        if cadence is not None:
            one_of("cadence", cadence, sorted({update.cadence for update in self.values()}))
        for update in self.values():
            if cadence in (None, update.cadence):
                update()

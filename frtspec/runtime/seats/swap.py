"""Putting bound seats into a host, all or none, and taking them out again exactly.

What is touched: one entry in the ``_modules`` dict of each replaced module's
parent, and attributes of the root model itself (see ``root``). Classes, functions
and everything else process-wide stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from torch import nn

from frtspec.runtime.cadence.held import HeldModule
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.host import submodule
from frtspec.runtime.routed.entry import RouteEntry
from frtspec.runtime.routed.entry import entry as routed_entry
from frtspec.runtime.routed.stands import FunctionStand, SpanStand
from frtspec.runtime.seats import root
from frtspec.runtime.seats.ledger import Counter, Ledger
from frtspec.runtime.seats.seatmodule import SeatModule

if TYPE_CHECKING:
    from frtspec.runtime.memory.originals import Originals
    from frtspec.runtime.rungs.ladder import BoundSeat


@dataclass(frozen=True)
class Entry:
    """One place in a parent's dict of children: what the host has there, and what we put."""

    path: str
    children: dict[str, nn.Module | None]
    name: str
    host: nn.Module
    seat: nn.Module

    @property
    def present(self) -> nn.Module | None:
        return self.children.get(self.name)

    @property
    def active(self) -> bool:
        return self.present is self.seat

    @property
    def covered(self) -> bool:
        """Whether something wraps the seat's ``forward``."""
        return isinstance(self.seat, SeatModule) and self.seat._frt_covered

    def put(self) -> None:
        self.children[self.name] = self.seat

    def restore(self) -> None:
        if self.active:
            self.children[self.name] = self.host


class Attachment:
    """Active seats on one model. ``detach`` gives the host back, object for object."""

    def __init__(
        self,
        model: nn.Module,
        entries: Mapping[str, Sequence[Entry | RouteEntry]],
        counters: Mapping[str, Counter],
    ) -> None:
        self.model = model
        self._entries = {seat: tuple(mine) for seat, mine in entries.items()}
        self._counters = dict(counters)
        self._held = False
        self.originals: Originals | None = None

    @property
    def seats(self) -> tuple[str, ...]:
        """Names of the seats, in the order they were given; empty once detached."""
        return tuple(self._entries) if self._held else ()

    def ledger(self) -> dict[str, Ledger]:
        """What each seat did so far; also after ``detach``."""
        return {seat: counter.ledger() for seat, counter in self._counters.items()}

    def check(self) -> dict[str, str]:
        """Seats whose packs are no longer the host's weights, with the weight that changed.

        By identity and version counter, as the guard asks at every eager call; compiled
        calls don't ask.
        """
        found = {}
        for seat, entries in self._entries.items():
            reason = _stale(entries[0].seat)
            if reason is not None:
                found[seat] = reason
        return found

    # ------------------------------------------------------------ what is held

    def refresh(self) -> None:
        """What update seats hold is used no more: their next calls compute it anew."""
        for entry in self._all():
            if isinstance(entry.seat, HeldModule):
                entry.seat._frt_held.drop()

    # ------------------------------------------------------------ A/B

    @property
    def running(self) -> frozenset[str]:
        """Seats that stand in the model now, neither switched off nor given back."""
        held = self._entries.items() if self._held else ()
        return frozenset(seat for seat, mine in held if all(entry.active for entry in mine))

    def enable(self, names: Iterable[str] | None = None) -> None:
        """Put seats back in that ``disable`` took out (all by default). A seat that its
        ledger gave back to the host stays there."""
        for seat in self._named(names):
            if not self._counters[seat].detached:
                for entry in self._entries[seat]:
                    entry.put()

    def disable(self, names: Iterable[str] | None = None) -> None:
        """Run the host's modules instead of these seats (all by default); they stay bound."""
        chosen = [self._entries[seat] for seat in self._named(names)]
        for entries in chosen:
            _check_uncovered(entries)
        if self.originals is not None:
            self.originals.restore(names)
        for entries in chosen:
            _restore_all(entries)

    @contextmanager
    def disabled(self, names: Iterable[str] | None = None) -> Iterator[None]:
        """``disable`` for the length of a with-block; what was disabled before stays so."""
        active = [name for name in self._named(names) if self._entries[name][0].active]
        self.disable(active)
        try:
            yield
        finally:
            self.enable(active)

    def _named(self, names: Iterable[str] | None) -> tuple[str, ...]:
        if not self._held:
            raise Refusal(
                "swap.detached", "this attachment is detached", fix="attach again to get a new one"
            )
        wanted = self.seats if names is None else tuple(names)
        for name in wanted:
            if name not in self._entries:
                raise Refusal(
                    "swap.seat",
                    f"no seat {name} is attached; attached: {', '.join(self.seats) or 'none'}",
                    fix="pass names from .seats",
                )
        return wanted

    # ------------------------------------------------------------ in and out

    def _activate(self) -> None:
        try:
            self._held = True
            root.hold(self.model, self)
            for entry in self._all():
                entry.put()
        except BaseException:
            self._restore()
            raise

    def detach(self) -> None:
        """Put every module of the host back where it was. Doing it again does nothing.

        Raises Refusal ``swap.replaced``, with nothing touched, where something else took
        a seat's place in the meantime, or wraps its ``forward``.
        """
        if not self._held:
            return
        _check_uncovered(self._all())
        for entry in self._all():
            if entry.present is not entry.seat and entry.present is not entry.host:
                raise Refusal(
                    "swap.replaced",
                    f"{entry.path} now holds a {type(entry.present).__name__} that was put over "
                    "the attached seat",
                    fix="undo that first, then detach",
                )
        self._restore()

    def _restore(self) -> None:
        """Everything back; where that is broken off, doing it again completes it."""
        if self.originals is not None:
            self.originals.restore()
        _restore_all(self._all())
        self.refresh()
        for counter in self._counters.values():
            counter.give_back = None
        root.release(self.model, self)
        self._held = False
        self._entries = {}

    def _all(self) -> list[Entry | RouteEntry]:
        return [entry for entries in self._entries.values() for entry in entries]


def activate(model: nn.Module, bound: Sequence[BoundSeat]) -> Attachment:
    """Put every bound seat into the model, or none.

    Everything is looked up and checked before the first module is replaced; whatever is
    raised on the way (KeyboardInterrupt included) puts all of it back and passes on.

    Raises Refusal ``host.path``, ``swap.moved`` (the host's module is no longer the one
    that was bound) or ``swap.overlap`` (two seats at one place, or one inside another).
    """
    _check_overlap([(item.seat.name, path) for item in bound for path in item.modules])
    entries: dict[str, list[Entry | RouteEntry]] = {
        item.seat.name: [_entry(model, path, module) for path, module in item.modules.items()]
        for item in bound
    }
    for item in bound:
        if item.stand is not None:
            entries[item.seat.name] = [routed_entry(model, item.seat.path, item.stand)]
    counters = {item.seat.name: item.counter for item in bound}
    attachment = Attachment(model, entries, counters)
    for name, counter in counters.items():
        counter.give_back = partial(_give_back, entries[name])
    attachment._activate()
    return attachment


@contextmanager
def undone_on_error(model: nn.Module) -> Iterator[None]:
    """Whatever the block raises, the attachments it made are taken off before it passes.

    Also those that an interrupt met half made or half taken off.
    """
    before = root.users(model)
    try:
        yield
    except BaseException:
        for attachment in root.users(model):
            if attachment not in before:
                attachment._restore()
        raise


def detach(model: nn.Module) -> None:
    """Give a model back whatever is attached to it, without the plans that did it.

    For when a plan got lost, as when its variable was assigned again. Raises Refusal
    ``swap.replaced`` as ``Attachment.detach`` does.
    """
    for attachment in reversed(root.users(model)):
        attachment.detach()


def _stale(seat: object) -> str | None:
    """Why a seat's packs are no longer the host's weights; None when they are."""
    if isinstance(seat, SeatModule):
        return seat._frt.guard.stale()
    if isinstance(seat, FunctionStand | SpanStand):
        return seat.guard.stale()
    return None


def _restore_all(entries: Iterable[Entry | RouteEntry]) -> None:
    for entry in entries:
        entry.restore()


def _give_back(entries: Sequence[Entry | RouteEntry]) -> None:
    """A seat back to the host for good. What wraps it would be lost, so then it stays: every
    call runs the host's module all the same."""
    if not any(entry.covered for entry in entries):
        _restore_all(entries)


def _check_uncovered(entries: Iterable[Entry | RouteEntry]) -> None:
    for entry in entries:
        if entry.covered:
            over = entry.present
            if isinstance(entry, Entry):
                over = entry.seat.__dict__["forward"]
            inner = getattr(over, "func", over)  # of a partial
            what = getattr(inner, "__qualname__", type(inner).__name__)
            raise Refusal(
                "swap.replaced",
                f"the forward of {entry.path} was replaced by {what}, put over the attached seat",
                fix="undo that first (accelerate: remove_hook_from_submodules), then detach",
            )


def _entry(model: nn.Module, path: str, seat: SeatModule) -> Entry:
    parent, _, name = path.rpartition(".")
    children = submodule(model, parent)._modules
    host = submodule(model, path)
    if host is not seat._frt.host:
        raise Refusal(
            "swap.moved",
            f"{path} holds another {type(host).__name__} than the one that was bound",
            fix="bind again: the model changed since",
            seat=seat._frt.counter.seat,
        )
    return Entry(path, children, name, host, seat)


def _check_overlap(places: Sequence[tuple[str, str]]) -> None:
    ordered = sorted(places, key=lambda place: f"{place[1]}.")
    for (first, outer), (second, inner) in pairwise(ordered):
        if f"{inner}.".startswith(f"{outer}."):
            raise Refusal(
                "swap.overlap",
                f"{first} at {outer} and {second} at {inner} lie over each other",
                fix="attach one of the two",
                seat=second,
            )

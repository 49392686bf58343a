"""What each attached seat did: calls, fallbacks and why."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import get_ident

from frtspec.runtime.errors import Refusal
from frtspec.runtime.seats.guard import Failed

IN_A_ROW = 32
"""So many fallbacks in a row on one thread give the seat back to the host for good, unless the
form runs on another."""


class FallbackWarning(RuntimeWarning):
    """A bound seat ran on the host's own module."""


@dataclass(frozen=True)
class Ledger:
    """A seat's record. Counts are of eager calls: a compiled region runs without coming
    by here.

    calls        calls that reached the seat (each sibling counts)
    fallbacks    of these, how many ran on the host because a check failed
    otherwise_host  of these, how many ran on the host because their row count is the host's
    reasons      check that failed -> how often
    form         what the seat was bound to
    detached     whether the seat was given back to the host for good
    refreshes    of a seat that holds a value: how often the host computed it anew, as asked
    held         of such a seat: calls that were handed the value
    """

    calls: int
    fallbacks: int
    otherwise_host: int
    reasons: dict[str, int]
    last_reason: str | None
    form: str
    detached: bool
    refreshes: int = 0
    held: int = 0

    @property
    def clean(self) -> bool:
        """Whether it ran, and every call ran where it was meant to."""
        return self.calls > 0 and self.fallbacks == 0 and not self.detached


@dataclass
class Counter:
    """The running counts behind a ``Ledger``; shared by the modules of one seat.

    ``give_back`` puts the host's modules back; set by the attachment. ``calls`` are those that
    went to the host; ``_ran`` has those that ran the form, by thread. ``refreshes`` is None for
    a seat that holds nothing.
    """

    seat: str
    form: str
    on_guard_fail: str
    give_back: Callable[[], None] | None = None
    calls: int = 0
    fallbacks: int = 0
    otherwise_host: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    last_reason: str | None = None
    detached: bool = False
    refreshes: int | None = None
    _ran: dict[int, int] = field(default_factory=dict)
    _astray: dict[int, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ran(self) -> None:
        """A call ran the bound form."""
        thread = get_ident()
        self._ran[thread] = self._ran.get(thread, 0) + 1  # one writer to each entry: no lock
        if self._astray:
            self._astray.pop(thread, None)

    def refreshed(self, *, called: bool = True) -> None:
        """The host computed what is held: in a call of its own, or asked to from outside."""
        with self._lock:
            self.refreshes = (self.refreshes or 0) + 1
            self.calls += called
        if self._astray:
            self._astray.pop(get_ident(), None)

    def fell_back(self, failed: Failed) -> None:
        """A call goes to the host. Raises Refusal ``guard.*`` where that is not allowed."""
        if failed.check.by_design:
            with self._lock:
                self.calls += 1
                self.otherwise_host += 1
            return
        name = failed.check.name
        with self._lock:
            self.calls += 1
            self.fallbacks += 1
            in_a_row = self._fell_in_a_row()
            seen = self.reasons.get(name, 0)
            self.reasons[name] = seen + 1
            self.last_reason = failed.reason
            may = self.on_guard_fail == "fallback" and not self.detached
            may = may and not failed.check.curable
            give_back = may and in_a_row >= IN_A_ROW and not self._serves_another()
            self.detached = self.detached or give_back
        if self.on_guard_fail == "raise":
            raise self._refusal(failed)
        if seen == 0:
            self._warn(f"ran on the host: {failed.reason}")
        if give_back:
            self._warn(f"{IN_A_ROW} fallbacks in a row: given back to the host for good")
            if self.give_back is not None:
                self.give_back()

    def _fell_in_a_row(self) -> int:
        """Fallbacks of this thread since the form last ran here, this one counted."""
        thread = get_ident()
        self._astray[thread] = self._astray.get(thread, 0) + 1
        return self._astray[thread]

    def _serves_another(self) -> bool:
        """Whether another thread's calls run the form: one that calls the seat in a way of its
        own (without ``no_grad``, say) does not take it from the rest."""
        alive = {thread.ident for thread in threading.enumerate()}
        return any(thread in alive and thread not in self._astray for thread in list(self._ran))

    def give_up(self, check: str, reason: str) -> None:
        """Gives the seat back to the host for good, for a reason that lies outside of it."""
        with self._lock:
            self.reasons[check] = self.reasons.get(check, 0) + 1
            self.last_reason = reason
            self.detached = True
        if self.give_back is not None:
            self.give_back()

    def _refusal(self, failed: Failed) -> Refusal:
        return Refusal(
            f"guard.{failed.check.name}",
            failed.reason,
            fix="call the host as it was calibrated, attach again for this kind of call, or "
            'attach with on_guard_fail="fallback"',
            seat=self.seat,
            form=self.form,
        )

    def _warn(self, what: str) -> None:
        warnings.warn(f"{self.seat} ({self.form}) {what}", FallbackWarning, stacklevel=2)

    def ledger(self) -> Ledger:
        """The counts as they are now."""
        with self._lock:
            ran = sum(list(self._ran.values()))
            return Ledger(
                self.calls + ran,
                self.fallbacks,
                self.otherwise_host,
                dict(self.reasons),
                self.last_reason,
                self.form,
                self.detached,
                self.refreshes or 0,
                0 if self.refreshes is None else ran,
            )

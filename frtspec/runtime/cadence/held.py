"""Holding what a host's module computed, for as long as its input stays what it was.

A value is served only while it is shown to be right: the call's input is the tensor that it was
computed from, unchanged, or equal to it bit for bit; nobody has written into the value since;
and the call is ordered behind the one that computed it. Any other call runs the host. A value
is computed anew only where the caller asked for it (``refresh``, ``recompute``, ``write``), so
how often the host's work is done is the caller's word, and what is returned is not.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from frtspec.runtime.errors import Refusal
from frtspec.runtime.seats.calls import stream_of, version_of
from frtspec.runtime.seats.guard import Check, Failed
from frtspec.runtime.seats.seatmodule import SeatModule

STALE = Check("stale", lambda guard, inputs, extra: None, traced=False, curable=True)
"""The held value is not known to be that of this call's input; a refresh mends it."""


@dataclass(frozen=True)
class Kept:
    """A value with what shows that it is still right.

    x        what it was computed from; None: written from outside, by the caller's word
    version  of ``x`` then; None where torch counts none, and ``x`` is a copy
    """

    value: Tensor
    value_version: int | None
    x: Tensor | None = None
    version: int | None = None
    stream: int | None = None

    @classmethod
    def of(cls, value: Tensor, x: Tensor | None, stream: int | None) -> Kept:
        """Tensors without a version are copied: a later write into them would not show."""
        version = None if x is None else version_of(x)
        own_x = x.detach().clone() if x is not None and version is None else x
        value_version = version_of(value)
        own = value.detach().clone() if value_version is None else value
        return cls(own, value_version, own_x, version, stream)

    def wrong(self, x: Tensor) -> str | None:
        """Why this is not known to be the value for ``x``; None when it is."""
        if self.value_version is not None and version_of(self.value) != self.value_version:
            return "something wrote into the held value"
        if self.x is None:
            return None
        if self.stream is not None and stream_of(x) != self.stream:
            return "called on another stream than the one that the held value is of"
        if self.version is not None and version_of(self.x) != self.version:
            return "the input that the held value is of was written to since"
        if x is self.x or _equal(x, self.x):
            return None
        return "another input than the held value is of"

    def hand_out(self) -> Tensor:
        """The value itself; a copy where a write into it would not show."""
        return self.value if self.value_version is not None else self.value.clone()

    @property
    def nbytes(self) -> int:
        return self.value.nbytes + (0 if self.x is None else self.x.nbytes)


def _equal(x: Tensor, other: Tensor) -> bool:
    return (
        x.shape == other.shape
        and x.dtype == other.dtype
        and x.device == other.device
        and torch.equal(x, other)
    )


class Figures(NamedTuple):
    """What a value looked like at calibration."""

    dtypes: frozenset[torch.dtype]
    width: int
    nbytes: int


class _Mine(threading.local):
    """What one thread's calls computed, and for which refresh."""

    def __init__(self) -> None:
        self.kept: Kept | None = None
        self.turn = -1


@dataclass
class Held:
    """The state of one update seat. It has buffers of its own, shared with nothing.

    turn   counts refreshes: what was kept for an earlier one is not used
    fixed  what the caller computed or wrote himself, at one address for as long as its shape
           stays: for every thread, and the only value that a compiled or captured region reads
    """

    cadence: str
    figures: Figures
    turn: int = 0
    fixed: Kept | None = None
    _mine: _Mine = field(default_factory=_Mine)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self) -> None:
        """What is held is used no more: the next call of each thread computes anew."""
        with self._lock:
            self.turn += 1
            self.fixed = None

    def drop(self) -> None:
        """Gives up every value, as ``refresh`` does, and this thread's memory of it."""
        self.refresh()
        self._mine.kept = None

    @property
    def due(self) -> bool:
        """Whether this thread's next call is to compute and keep."""
        return self.fixed is None and self._mine.turn != self.turn

    def find(self, x: Tensor) -> Tensor | str:
        """The value for ``x``, or why there is none."""
        kept = self.fixed
        if kept is None and self._mine.turn == self.turn:
            kept = self._mine.kept
        if kept is None:
            return "nothing is held"
        wrong = kept.wrong(x)
        return kept.hand_out() if wrong is None else wrong

    def keep(self, x: Tensor, value: Tensor, turn: int) -> None:
        """Keeps what a call of this thread computed for refresh ``turn``."""
        self._mine.kept = Kept.of(value, x, stream_of(x))
        self._mine.turn = turn

    def fix(self, value: Tensor, x: Tensor | None) -> None:
        """Keeps a value for every thread. One of the same shape goes to the same address."""
        with self._lock, torch.inference_mode(False), torch.no_grad():
            before = None if self.fixed is None else self.fixed.value
            own = before if before is not None and _alike(before, value) else None
            own = (
                torch.empty_like(value, memory_format=torch.contiguous_format)
                if own is None
                else own
            )
            own.copy_(value)
            self.turn += 1
            self.fixed = Kept.of(own, x, None)


def _alike(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.device == b.device


class HeldModule(SeatModule):
    """Stands in the place of a module whose result is held between refreshes."""

    def __init__(self, host: nn.Module, forms: Any, guard: Any, counter: Any, **named: Any) -> None:
        held: Held = named.pop("held")
        super().__init__(host, forms, guard, counter, **named)
        self.__dict__["_frt_held"] = held

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The held value where it is that of this call, else what the host computes."""
        parts, held = self.__dict__["_frt"], self.__dict__["_frt_held"]
        if torch.compiler.is_compiling():
            return self._traced(parts, args, kwargs)
        inputs, extra = parts.read(args, kwargs)
        failed = parts.guard.failed(inputs, extra)
        if failed is None and inputs[0].is_cuda and torch.cuda.is_current_stream_capturing():
            return self._traced(parts, args, kwargs)
        if failed is None:
            if held.due:
                return self._compute(inputs[0], args, kwargs)
            found = held.find(inputs[0])
            if isinstance(found, Tensor):
                parts.counter.ran()
                return found
            failed = Failed(
                STALE,
                f"{found}; run plan.updates[{parts.counter.seat!r}]() when the "
                f"{held.cadence} changes",
            )
        parts.counter.fell_back(failed)
        return parts.host.forward(*args, **kwargs)

    def _compute(self, x: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        parts, held = self.__dict__["_frt"], self.__dict__["_frt_held"]
        turn = held.turn
        value = parts.host.forward(*args, **kwargs)
        if isinstance(value, Tensor):
            held.keep(x, value, turn)
        parts.counter.refreshed()
        return value

    def _traced(self, parts: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A trace can't ask whether its input is still the same: it reads what the caller fixed,
        at an address that stays, and where nothing is fixed the host computes."""
        fixed = self.__dict__["_frt_held"].fixed
        inputs, extra = parts.read(args, kwargs)
        if fixed is None or parts.guard.failed_traced(inputs, extra):
            return parts.host.forward(*args, **kwargs)
        return fixed.value

    # ------------------------------------------------------------ from outside

    def recompute(self, *args: Any, **kwargs: Any) -> None:
        """Computes now, by the host's own module, and keeps the value for every thread.

        Raises Refusal ``update.input`` for a call that the seat is not bound for.
        """
        parts, held = self.__dict__["_frt"], self.__dict__["_frt_held"]
        inputs, extra = parts.read(args, kwargs)
        with torch.no_grad():
            failed = parts.guard.failed(inputs, extra)
            if failed is not None:
                fix = "pass what the host hands the module"
                raise self._cannot("update.input", failed.reason, fix)
            value = parts.host.forward(*args, **kwargs)
        self._check(value)
        held.fix(value, inputs[0])
        parts.counter.refreshed(called=False)

    def write(self, value: Tensor) -> None:
        """Keeps a value from outside. Raises Refusal ``update.value`` for one that the host's
        module would not give."""
        self._check(value)
        self.__dict__["_frt_held"].fix(value, None)
        self.__dict__["_frt"].counter.refreshed(called=False)

    def _check(self, value: Any) -> None:
        parts, figures = self.__dict__["_frt"], self.__dict__["_frt_held"].figures
        if not isinstance(value, Tensor):
            raise self._cannot("update.value", f"a {type(value).__name__} is no tensor")
        wrong = []
        if value.dtype not in figures.dtypes:
            wrong.append(f"dtype {value.dtype}")
        if value.device != parts.guard.contract.device:
            wrong.append(f"device {value.device}")
        if value.dim() == 0 or value.shape[-1] != figures.width:
            wrong.append(f"shape {list(value.shape)}, where the last axis is {figures.width}")
        if wrong:
            raise self._cannot(
                "update.value", f"the host's module gives none of {', '.join(wrong)}"
            )

    def _cannot(
        self, code: str, what: str, fix: str = "write what the host's module would have given"
    ) -> Refusal:
        counter = self.__dict__["_frt"].counter
        return Refusal(code, what, fix=fix, seat=counter.seat, form=counter.form)

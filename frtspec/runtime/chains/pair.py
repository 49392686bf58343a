"""Two bound seats that hand codes over, and what takes them apart again.

Codes are sent only while both ends stand in the model. What calibration showed must go on
holding: a reader that is not the consumer, another tensor at the consumer, or a second output
before the first was taken gives both seats back to the host, together.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Mapping, Sequence
from contextlib import nullcontext as _nothing
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.runtime.chains.wire import FORMATS, Wire
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.siblings import SiblingModule
from frtspec.runtime.seats.calls import autocast_dtype
from frtspec.runtime.seats.forms import Forms, as_host, form_rows, run_rows
from frtspec.runtime.seats.ledger import Counter, FallbackWarning
from frtspec.runtime.seats.seatmodule import SeatModule

CHECK = "chain"
"""The name in a ledger of what takes a pair apart."""


class _Sent(threading.local):
    """What one thread has on the wire. Held weakly: what a call that was broken off has left
    there says nothing about the next."""

    held: weakref.ref[Wire] | None = None

    @property
    def wire(self) -> Wire | None:
        return None if self.held is None else self.held()

    @wire.setter
    def wire(self, wire: Wire | None) -> None:
        self.held = None if wire is None else weakref.ref(wire)


@dataclass
class Pair:
    """A producer and its consumer.

    name      ``input_norm[0].y -> qkv[0].x``
    format    of the codes
    scale     that the consumer reads with, float32, [1]
    counters  of producer and consumer
    places    (children dict of the parent, name, module) of every module at either end
    carried   outputs that went over in codes
    broken    the fact that a call broke, and how; empty while it holds
    """

    name: str
    format: str
    scale: Tensor
    counters: tuple[Counter, Counter]
    places: Sequence[tuple[Mapping[str, nn.Module | None], str, nn.Module]] = ()
    carried: int = 0
    broken: tuple[str, str] | None = None
    _sent: _Sent = field(default_factory=_Sent, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def whole(self) -> bool:
        """Whether both ends stand in the model now. An end that its own ledger gave back takes
        the other with it."""
        if self.broken is not None:
            return False
        gone = [counter for counter in self.counters if counter.detached]
        if gone:
            self.apart("both_ends", f"{gone[0].seat} was given back to the host")
            return False
        return all(children.get(name) is module for children, name, module in self.places)

    # ------------------------------------------------------------ the ends

    def send(self, y: Tensor) -> Tensor:
        """The producer's output as it goes on: codes where the pair is whole."""
        if not self.whole():
            return y
        if self._sent.wire is not None:
            self._sent.wire = None
            what = f"{self.counters[0].seat} ran again before its output was taken"
            self.apart("call_order", what)
            return y
        codes = FORMATS[self.format](y, self.scale)
        wire = Wire(codes, self.scale, y.dtype, self._read)
        self._sent.wire = wire
        with self._lock:
            self.carried += 1
        return wire

    def take(self, x: Tensor) -> None:
        """The consumer is handed ``x``."""
        sent, self._sent.wire = self._sent.wire, None
        if sent is not None and sent is not x and self.broken is None:
            what = f"{self.counters[1].seat} got another tensor than {self.counters[0].seat} gave"
            self.apart("same_storage", what)

    def _read(self, op: str) -> None:
        self._sent.wire = None
        self.apart("exclusive_consumer", f"{op} read what {self.counters[0].seat} gave")

    def apart(self, fact: str, what: str) -> None:
        """Gives both seats back to the host for good. Raises Refusal ``guard.chain`` where the
        seats were attached to raise."""
        with self._lock:
            if self.broken is not None:
                return
            self.broken = (fact, what)
        reason = f"{self.name}: {fact} no longer holds: {what}"
        for counter in self.counters:
            counter.give_up(CHECK, reason)
        if self.counters[0].on_guard_fail == "raise":
            raise Refusal(
                "guard.chain",
                reason,
                fix="call the host as it was calibrated, or attach again for this kind of call",
                seat=self.counters[0].seat,
                form=self.counters[0].form,
            )
        warnings.warn(f"{reason}; both seats run on the host", FallbackWarning, stacklevel=3)


# ---------------------------------------------------------------- modules


class ProducerModule(SeatModule):
    """The seat whose output goes over the wire."""

    def __init__(self, seat: SeatModule, pair: Pair) -> None:
        _like(self, seat)
        self.__dict__["_frt_pair"] = pair

    def _run(self, inputs: tuple[Any, ...]) -> Any:
        return self._frt_pair.send(super()._run(inputs))


class ConsumerModule(SeatModule):
    """The seat that reads codes."""

    def __init__(self, seat: SeatModule, pair: Pair) -> None:
        _like(self, seat)
        self.__dict__["_frt_pair"] = pair

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if not torch.compiler.is_compiling():
            handed = self._frt.signature.inputs(1, args, kwargs)
            self._frt_pair.take(handed[0] if handed else None)
        return super().forward(*args, **kwargs)


class ConsumerSibling(ConsumerModule, SiblingModule):
    """One of several projections that read the same codes."""


def _like(module: SeatModule, seat: SeatModule) -> None:
    """Makes a module of another class out of a seat's, sharing all that it holds."""
    module.__dict__.update(seat.__dict__)


@dataclass(frozen=True)
class WiredForms(Forms):
    """Forms that also take codes as their first input."""

    def __call__(self, *inputs: Tensor) -> Any:
        x = inputs[0]
        if not isinstance(x, Wire):
            return super().__call__(*inputs)
        if x.plain is not None:
            return super().__call__(x.plain, *inputs[1:])
        rows = form_rows((x.codes, *inputs[1:]), self.contract.widths)
        impl = self.form_for(rows[0].shape[0]).impl
        kind = x.codes.device.type
        with torch.autocast(kind, enabled=False) if autocast_dtype(kind) else _nothing():
            result = run_rows(impl, rows)
        lead, dtype = x.shape[:-1], self.contract.out_dtype(x)
        if isinstance(result, Tensor):
            return as_host(result, lead, dtype)
        return tuple([as_host(item, lead, dtype) for item in result])

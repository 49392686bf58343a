"""The module that stands in a host's place: the bound form, or the host's own module.

A ``SeatModule`` holds the host module and shares its dicts of parameters, buffers,
children and hooks. To everything that reads the model it is the host's module: same
names, same tensors, same ``state_dict``, and hooks put on either fire once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import MethodType
from typing import Any, NoReturn

import torch
from torch import nn

from frtspec.runtime.errors import Refusal
from frtspec.runtime.seats.calls import Signature
from frtspec.runtime.seats.forms import Forms
from frtspec.runtime.seats.guard import Guard
from frtspec.runtime.seats.ledger import Counter


@dataclass
class Parts:
    """What a ``SeatModule`` works with; the seat's modules share all but ``host``."""

    host: nn.Module
    signature: Signature
    forms: Forms
    guard: Guard
    counter: Counter

    def __post_init__(self) -> None:
        self.count = len(self.guard.contract.widths)
        self.in_order = not self.signature.wanted
        self.passes = self.guard.passes

    def read(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], list[str]]:
        """The form's inputs among a call's arguments, and the names of those it does not take."""
        signature = self.signature
        return signature.inputs(self.count, args, kwargs), signature.extra(self.count, args, kwargs)


OVER_THE_SEAT = ("forward", "_compiled_call_impl")
"""What wraps a module's call when it is set: it wraps the seat, and goes with it."""


class SeatModule(nn.Module):
    """One replaced module of one seat."""

    def __init__(
        self,
        host: nn.Module,
        forms: Forms,
        guard: Guard,
        counter: Counter,
        named: tuple[str | None, ...] = (),
    ) -> None:
        """``named``: the arguments that the form's inputs are (see ``calls.Signature``)."""
        super().__init__()
        own = self.__dict__
        for name in list(own):
            own[name] = host.__dict__[name]
        del own["_is_full_backward_hook"]  # read from the host, where either may set it
        own["_frt"] = Parts(host, Signature.of(host, named), forms, guard, counter)

    # ------------------------------------------------------------ the call

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The bound form where the call is one it was bound for, else the host's forward."""
        parts = self.__dict__["_frt"]
        if torch.compiler.is_compiling():
            return self._traced(parts, args, kwargs)
        if parts.in_order and not kwargs and parts.passes(args):
            inputs = args
        else:
            inputs, extra = parts.read(args, kwargs)
            failed = parts.guard.failed(inputs, extra)
            if failed is not None:
                parts.counter.fell_back(failed)
                return parts.host.forward(*args, **kwargs)
        try:
            result = self._run(inputs)
        except Exception as error:
            error.add_note(f"in seat {parts.counter.seat} ({parts.counter.form})")
            raise
        parts.counter.ran()
        return result

    def _traced(self, parts: Parts, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inputs, extra = parts.read(args, kwargs)
        if parts.guard.failed_traced(inputs, extra):
            return parts.host.forward(*args, **kwargs)
        return self._run_traced(inputs)

    def _run(self, inputs: tuple[Any, ...]) -> Any:
        return self._frt.forms(*inputs)

    def _run_traced(self, inputs: tuple[Any, ...]) -> Any:
        return self._frt.forms(*inputs)

    # ------------------------------------------------------------ standing for the host

    def __getattr__(self, name: str) -> Any:
        """Parameters and children from the shared dicts, the rest from the host module."""
        return getattr(self.__dict__["_frt"].host, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in OVER_THE_SEAT:
            self._put_over(name, value)
            return
        setattr(self.__dict__["_frt"].host, name, value)
        if name in self.__dict__:
            self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        if name in OVER_THE_SEAT:
            self.__dict__.pop(name, None)
            return
        delattr(self.__dict__["_frt"].host, name)

    def _put_over(self, name: str, value: Any) -> None:
        """What had wrapped ``forward`` gives it back by setting what it found."""
        if value is None or value == MethodType(type(self).forward, self):
            self.__dict__.pop(name, None)
        else:
            self.__dict__[name] = value

    @property
    def _frt_covered(self) -> bool:
        """Whether something wraps this seat's ``forward`` and counts on the seat below."""
        return "forward" in self.__dict__

    def train(self, mode: bool = True) -> SeatModule:
        self._frt.host.train(mode)
        self.__dict__["training"] = mode
        return self

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self._frt.host.state_dict(*args, **kwargs)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._frt.host._load_from_state_dict(*args, **kwargs)

    def extra_repr(self) -> str:
        return str(self._frt.host.extra_repr())

    def _get_name(self) -> str:
        counter = self._frt.counter
        return f"{self._frt.host._get_name()} as {counter.seat}: {counter.form}"

    def __len__(self) -> int:
        return len(self._frt.host)

    def __bool__(self) -> bool:
        return bool(self._frt.host)

    def __getitem__(self, key: Any) -> Any:
        return self._frt.host[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._frt.host)

    # ------------------------------------------------------------ not to be copied

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        self._refuse("copied")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self._refuse("pickled")

    def _refuse(self, what: str) -> NoReturn:
        raise Refusal(
            f"attached.{what}",
            f"an attached seat can't be {what}: its packs belong to this model",
            fix="call detach() first, then attach to the copy",
            seat=self._frt.counter.seat,
            form=self._frt.counter.form,
        )

"""A routed seat in its place: put there and taken out again, exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from torch import nn

from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts import ownforward, routes
from frtspec.runtime.hosts.host import submodule
from frtspec.runtime.routed.stands import FunctionStand, SpanStand
from frtspec.runtime.seats.seatmodule import SeatModule

Undo = Callable[[], None]
_COPYING = ("__deepcopy__", "__reduce_ex__")


@dataclass
class RouteEntry:
    """One routed seat on one model, with the same face as a replaced module's entry.

    host  the module that looks the function up; ``seat`` what serves it
    """

    path: str
    model: nn.Module
    host: nn.Module
    seat: FunctionStand | SpanStand
    _undo: list[Undo] = field(default_factory=list)

    @property
    def active(self) -> bool:
        return bool(self._undo)

    @property
    def present(self) -> object:
        """What stands there now: the seat, the host's own, or something else put over it."""
        if not self.active:
            return self.host
        for module in self._modules():
            for entries, name, value in ownforward.placed(module):
                if entries.get(name) is not value:
                    return entries.get(name)
        return self.seat

    @property
    def covered(self) -> bool:
        """Whether something was put over the seat, that taking it out would lose."""
        return self.active and self.present is not self.seat

    def _modules(self) -> list[nn.Module]:
        return [self.host, *self.seat.guard.passing.values()]

    def put(self) -> None:
        if self.active:
            return
        routed, seat = self.seat.plan.routed, self.seat
        try:
            self._undo.append(routes.serve(self.host, routed, seat).remove)
            if isinstance(seat, SpanStand):
                self._undo.append(ownforward.enclose(self.host, seat.around, routed))
                for path, module in seat.guard.passing.items():
                    around = seat.passing(path)
                    self._undo.append(ownforward.enclose(module, around, routed))
            self._undo += [_uncopied(module, seat) for module in self._modules()]
        except BaseException:
            self.restore()
            raise

    def restore(self) -> None:
        while self._undo:
            self._undo.pop()()


def _uncopied(module: nn.Module, seat: FunctionStand | SpanStand) -> Undo:
    """A module with a seat on it is not copied or pickled, as a replaced one is not."""
    held = module.__dict__

    def refuse(*_: Any) -> NoReturn:
        raise Refusal(
            "attached.copied",
            "a module with an attached seat can't be copied or pickled: the seat is this model's",
            fix="call detach() first, then attach to the copy",
            seat=seat.counter.seat,
            form=seat.counter.form,
        )

    users, put = held.setdefault("_frt_served", ([], []))
    users.append(seat)
    for name in _COPYING:
        if name not in held:
            held[name] = refuse
            put.append(name)

    def undo() -> None:
        users.remove(seat)
        if not users:
            for name in ("_frt_served", *put):
                held.pop(name, None)

    return undo


def entry(model: nn.Module, path: str, seat: FunctionStand | SpanStand) -> RouteEntry:
    """The entry of a bound seat on a model.

    Raises Refusal ``swap.moved`` where a module of it is no longer the one that was bound, and
    ``swap.overlap`` where another seat stands in its place.
    """
    places = {path: seat.guard.module, **seat.guard.passing}
    for at, bound in places.items():
        found = submodule(model, at)
        if found is bound:
            continue
        over = isinstance(found, SeatModule)
        raise Refusal(
            "swap.overlap" if over else "swap.moved",
            f"{at} holds {'an attached seat' if over else f'another {type(found).__name__}'}, "
            "not the module that was bound",
            fix="attach one of the two" if over else "bind again: the model changed since",
            seat=seat.counter.seat,
        )
    return RouteEntry(path, model, seat.guard.module, seat)

"""The host's weights behind bound seats, put away and brought back.

While a seat runs on packs the host's own copy is dead weight. ``consume`` puts it into a
store and leaves parameters without data (on the meta device) in its place: names, shapes
and dtypes stay, and whatever reads one fails loudly. The same parameter objects come back,
bit for bit, when the host's module runs (a fallback), at detach, or on demand. What is
touched are entries and attributes of the host's own modules.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.census import Census
from frtspec.runtime.memory.store import Stored, WeightStore
from frtspec.runtime.seats.guard import Band

if TYPE_CHECKING:
    from frtspec.runtime.records import SeatRecord
    from frtspec.runtime.rungs.ladder import BoundSeat

FORMS = ("swap", "siblings")
"""Seats that stand for whole modules; behind others the host's module still runs."""

_SHADOWED = ("forward", "_save_to_state_dict")


@dataclass
class _Away:
    """One parameter that was put away: the object itself, its meta stand-in, its data."""

    path: str
    module: nn.Module
    name: str
    parameter: nn.Parameter
    empty: nn.Parameter
    stored: Stored

    def put(self) -> None:
        self.module._parameters[self.name] = self.empty
        self.parameter.data = torch.empty(
            0, dtype=self.parameter.dtype, device=self.parameter.device
        )

    def back(self, value: Tensor) -> None:
        self.parameter.data = value
        self.module._parameters[self.name] = self.parameter


@dataclass
class _Seat:
    name: str
    bound: BoundSeat
    away: list[_Away]
    shadows: list[nn.Module] = field(default_factory=list)


class Originals:
    """The weights of one attachment's seats.

    kept        parameter path -> why its weight is not put away
    restored    seats whose weights came back because the host's module ran
    finalized   whether the stored copies are given up for good
    """

    def __init__(self, model: nn.Module, records: Sequence[SeatRecord]) -> None:
        self.model = model
        self.kept: dict[str, str] = {}
        self.restored: list[str] = []
        self.finalized = False
        self._records = [r for r in records if r.bound is not None and r.seat.form in FORMS]
        self._seats: dict[str, _Seat] = {}
        self._lock = threading.RLock()

    # ------------------------------------------------------------ figures

    @property
    def resident(self) -> int:
        """Bytes of the host's weights behind bound seats that still lie on their device."""
        return sum(p.nbytes for p in self._weights().values() if not p.is_meta)

    @property
    def freed(self) -> int:
        """Bytes that their device got back."""
        return sum(a.stored.nbytes for a in self._away() if a.stored.where != "resident")

    @property
    def stored(self) -> dict[str, int]:
        """Where weights were put -> bytes there."""
        found: dict[str, int] = {}
        for away in self._away():
            found[away.stored.where] = found.get(away.stored.where, 0) + away.stored.nbytes
        return found

    @property
    def paths(self) -> frozenset[str]:
        """Parameters that are away."""
        return frozenset(away.path for away in self._away())

    def _away(self) -> Iterator[_Away]:
        for seat in self._seats.values():
            yield from seat.away

    def _weights(self) -> dict[int, nn.Parameter]:
        return {
            id(p): p
            for record in self._records
            for host in _bound(record).guard.hosts.values()
            for p in host.parameters()
        }

    # ------------------------------------------------------------ out and back

    def consume(self, store: WeightStore) -> None:
        """Puts away what only bound seats need. All is stored before anything is touched; an
        error on the way puts everything back."""
        self._refuse_finalized("put weights away")
        with self._lock:
            census = Census.taken(self.model)
            planned = {r.name: self._plan(r, census, store) for r in self._records}
            try:
                for name, seat in planned.items():
                    if seat.away:
                        self._seats[name] = seat
                        self._put(seat)
            except BaseException:
                self.restore()
                raise

    def restore(self, names: Iterable[str] | None = None) -> None:
        """Brings weights back (of all seats by default). Those that are here stay.

        Raises Refusal ``memory.finalized``, or ``memory.checkpoint`` where the file is not
        what it was; what can't be brought back stays away, and the seats go on.
        """
        with self._lock:
            wanted = [
                n for n in (list(self._seats) if names is None else names) if n in self._seats
            ]
            if wanted:
                self._refuse_finalized("bring the host's weights back")
            for name in wanted:
                self._back(self._seats[name])
                del self._seats[name]

    def finalize(self) -> None:
        """Gives the stored weights up: no fallback, no detach, no ``state_dict`` after this."""
        with self._lock:
            for away in self._away():
                away.stored = _Gone(away.stored.nbytes, away.stored.where, away.path)
            self.finalized = bool(self._seats)

    def _refuse_finalized(self, what: str) -> None:
        if self.finalized:
            raise Refusal(
                "memory.finalized",
                f"can't {what}: finalize() gave them up",
                fix="load the model again",
            )

    # ------------------------------------------------------------ one seat

    def _plan(self, record: SeatRecord, census: Census, store: WeightStore) -> _Seat:
        bound = _bound(record)
        seat = _Seat(record.name, bound, [])
        for path, host in bound.guard.hosts.items():
            for inner, module in host.named_modules(prefix=path):
                for name, parameter in module._parameters.items():
                    if parameter is None:
                        continue
                    where = f"{inner}.{name}".removeprefix(".")
                    why = _why_kept(bound, where, parameter, census)
                    if why is not None:
                        self.kept[where] = why
                        continue
                    empty = nn.Parameter(
                        torch.empty_like(parameter, device="meta"),
                        requires_grad=parameter.requires_grad,
                    )
                    stored = store.put(where, parameter.detach())
                    seat.away.append(_Away(where, module, name, parameter, empty, stored))
        return seat

    def _put(self, seat: _Seat) -> None:
        modules = {id(host): host for host in seat.bound.guard.hosts.values()}
        modules |= {id(away.module): away.module for away in seat.away}
        for away in seat.away:
            away.put()
        for module in modules.values():
            seat.shadows.append(module)
            self._shadow(seat, module)
        _look_again(seat.bound)

    def _back(self, seat: _Seat) -> None:
        values = [away.stored.fetch() for away in seat.away]
        for away, value in zip(seat.away, values, strict=True):
            away.back(value)
        for module in seat.shadows:
            for name in _SHADOWED:
                module.__dict__.pop(name, None)
        _look_again(seat.bound)

    def _shadow(self, seat: _Seat, module: nn.Module) -> None:
        """Whoever runs the module's own code, or saves it, finds the weights there."""
        mine = {away.name: away for away in seat.away if away.module is module}
        own = module.__dict__
        if any(name in own for name in _SHADOWED):
            raise Refusal(
                "memory.forward",
                f"a {type(module).__name__} of {seat.name} has a forward of its own",
                fix="undo what put it there, or leave the originals resident",
                seat=seat.name,
            )

        @torch.compiler.disable  # type: ignore[untyped-decorator]
        def forward(*args: Any, **kwargs: Any) -> Any:
            self._fallen(seat)
            return module.forward(*args, **kwargs)

        def save(destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
            type(module)._save_to_state_dict(module, destination, prefix, keep_vars)
            for name, away in mine.items():
                destination[prefix + name] = away.stored.fetch()

        own["forward"], own["_save_to_state_dict"] = forward, save

    def _fallen(self, seat: _Seat) -> None:
        with self._lock:
            if seat.name in self._seats:
                try:
                    self.restore([seat.name])
                except Refusal as refusal:
                    raise Refusal(
                        refusal.code,
                        f"{seat.name} has to run the host's own module: {refusal.what}",
                        fix=refusal.fix,
                        seat=seat.name,
                    ) from refusal
                self.restored.append(seat.name)


@dataclass(frozen=True)
class _Gone:
    """A weight that was given up."""

    nbytes: int
    where: str
    path: str

    def fetch(self) -> Tensor:
        raise Refusal(
            "memory.finalized",
            f"{self.path} was given up by finalize()",
            fix="load the model again",
        )


def _bound(record: SeatRecord) -> BoundSeat:
    assert record.bound is not None
    return record.bound


def _look_again(bound: BoundSeat) -> None:
    """The guard takes the host's modules as they are now for those it was bound for."""
    guard = bound.guard
    type(guard).__init__(guard, guard.contract, guard.hosts)
    for module in bound.modules.values():
        module._frt.__post_init__()


def _why_kept(bound: BoundSeat, path: str, parameter: nn.Parameter, census: Census) -> str | None:
    """Why this weight stays; None where only this seat's host modules read it."""
    if Band() not in bound.guard.contract.bands:
        bands = " and ".join(map(str, bound.guard.contract.bands))
        return f"the host's module runs other row counts than {bands}"
    if type(parameter) is not nn.Parameter or parameter.is_meta:
        return "it has no data" if parameter.is_meta else f"it is a {type(parameter).__name__}"
    if parameter.untyped_storage().nbytes() != parameter.nbytes:
        return "it is a view of a larger storage"
    places = census.parameters.get(id(parameter), ())
    if len(places) > 1:
        names = ", ".join(f"{at}.{name}" for at, _, name in places if f"{at}.{name}" != path)
        return f"it is tied to {names}"
    for host in bound.guard.hosts.values():
        for module in host.modules():
            paths = census.modules.get(id(module), ())
            if len(paths) > (0 if module is host else 1):
                return f"its module is shared: {' and '.join(paths)} holds it"
    shared = _sharing(census.model, parameter, bound)
    return None if shared is None else f"{shared} shares its storage"


def _sharing(model: nn.Module, parameter: nn.Parameter, bound: BoundSeat) -> str | None:
    """The parameter, buffer or pack that lies in the same storage."""
    address = parameter.untyped_storage().data_ptr()
    held: Mapping[str, Tensor] = {
        **dict(model.named_parameters()),
        **dict(model.named_buffers()),
        **{f"pack {name}": value for name, value in bound.impl.named_buffers()},
    }
    for name, value in held.items():
        if value is parameter or value.is_meta or not address:
            continue
        if value.untyped_storage().data_ptr() == address:
            return name
    return None

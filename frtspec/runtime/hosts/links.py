"""Chains and groups between seats: what calibration shows about them.

A chain hands a value from one seat to the next, which is right only if the consumer reads
the producer's own output and nothing else does. A group shares one state, which is right
only if its seats read one stream. Both are looked at while the untouched host runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.host import seat_modules
from frtspec.runtime.seats.calls import Signature, first_tensor, row_count
from frtspec.runtime.spec import Chain, InputOf, Seat, SeatGroup


@dataclass(frozen=True)
class Proof:
    """One fact of a chain or group. ``what``: why it is not shown, empty where it is."""

    link: str
    fact: str
    shown: bool
    what: str = ""

    @property
    def text(self) -> str:
        return f"{self.link}: {self.fact} " + ("shown" if self.shown else f"not shown: {self.what}")


def chain_names(declared: Iterable[Chain | SeatGroup]) -> frozenset[str]:
    """The chains among some links, as their proofs name them."""
    return frozenset(link.name for link in declared if isinstance(link, Chain))


ROUNDS = 2
"""Outputs that have to go the declared way before that counts as shown."""


@contextmanager
def watching(
    model: nn.Module, seats: Sequence[Seat], links: Iterable[Chain | SeatGroup]
) -> Iterator[Callable[[], tuple[Proof, ...]]]:
    """Watches the links whose seats are all on this model, for the length of the block.

    Gives a function that says what was shown so far. Hooks and the mode come off in every
    case.
    """
    by_name = {seat.name: seat for seat in seats}
    watches: list[_ChainWatch | _GroupWatch] = []
    for link in links:
        names = link.seats if isinstance(link, SeatGroup) else (link.producer, link.consumer)
        found = [by_name[name] for name in names if name in by_name]
        if isinstance(link, SeatGroup) and found:
            watches.append(_GroupWatch(link, found))
        elif isinstance(link, Chain) and len(found) == 2:
            watches.append(_ChainWatch(link, *found))
    with ExitStack() as stack:
        for watch in watches:
            stack.callback(watch.close)
            with suppress(Refusal):  # a place that is not there: its own seat says so
                watch.attach(model)
        chains = [watch for watch in watches if isinstance(watch, _ChainWatch)]
        if chains:
            stack.enter_context(_Readers(chains))
        yield lambda: tuple(proof for watch in watches for proof in watch.proofs())


class _Hooks:
    """Hooks of one watch, on until ``close``."""

    def __init__(self) -> None:
        self._handles: list[RemovableHandle] = []

    def before(self, module: nn.Module, see: Callable[..., None]) -> None:
        self._handles.append(
            module.register_forward_pre_hook(lambda _, a, k: see(a, k), with_kwargs=True)
        )

    def after(self, module: nn.Module, see: Callable[..., None]) -> None:
        self._handles.append(
            module.register_forward_hook(lambda _, a, k, out: see(a, k, out), with_kwargs=True)
        )

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()


def _storage(value: Tensor) -> int:
    try:
        return value.untyped_storage().data_ptr()
    except RuntimeError:  # a subclass without memory of its own, as a shard of several
        return id(value)


# ---------------------------------------------------------------- chains


class _ChainWatch(_Hooks):
    """One chain: the producer's last output, and who read its storage."""

    def __init__(self, chain: Chain, producer: Seat, consumer: Seat) -> None:
        super().__init__()
        self.chain, self.producer, self.consumer = chain, producer, consumer
        self.live: Tensor | None = None  # held, so that its memory goes to no other tensor
        self.memory: int | None = None
        self.inside = 0
        self.made = self.taken = 0
        self.waiting = False
        self.disorder = ""
        self.strangers: set[str] = set()
        self.readers: set[str] = set()

    def attach(self, model: nn.Module) -> None:
        for module in seat_modules(model, self.producer).values():
            self.after(module, lambda _a, _k, output: self._made(output))
        for path, module in seat_modules(model, self.consumer).items():
            self._watch(path, module)

    def _made(self, output: Any) -> None:
        if self.waiting:
            self.disorder = self.disorder or "the producer ran again before its output was taken"
        self.live = first_tensor(output)
        self.memory = None if self.live is None else _storage(self.live)
        self.made += 1
        self.waiting = True

    def _watch(self, path: str, module: nn.Module) -> None:
        sig, name = Signature.of(module), _argument(self.consumer, self.chain.input)

        def entered(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
            self.inside += 1
            self.waiting = False
            if not self.made:
                self.disorder = self.disorder or "the consumer ran first"
            given = sig.argument(name, args, kwargs)
            if isinstance(given, Tensor) and self.memory is not None:
                if _storage(given) == self.memory:
                    self.taken += 1
                else:
                    self.strangers.add(path)

        def left(*_: Any) -> None:
            self.inside -= 1

        self.before(module, entered)
        self.after(module, left)

    def read(self, name: str, result: Any) -> None:
        """An op took the output; one that only makes a view of it reads nothing."""
        made = any(_storage(item) != self.memory for item in _tensors(result))
        plain = not name.startswith("__") or name.startswith("__i")  # no `x.shape.__get__`
        writes = plain and name.endswith("_")
        if (made or writes) and not _by_an_observer():
            self.readers.add(name)

    def proofs(self) -> Iterator[Proof]:
        chain, link = self.chain, self.chain.name
        same = "" if self.taken else "the consumer never got the producer's output"
        if self.strangers:
            same = f"{', '.join(sorted(self.strangers))} got another tensor"
        alone = f"{', '.join(sorted(self.readers))} read it too" if self.readers else ""
        whats = {"same_storage": same, "exclusive_consumer": alone or (same if same else "")}
        # what any chain rests on, whatever its spec asks for besides
        whats["call_order"] = self.disorder
        often = f"the producer ran {self.made} time{'s' * (self.made != 1)}; it takes {ROUNDS}"
        whats["repeats"] = often if self.made < ROUNDS else ""
        for fact in dict.fromkeys((*chain.prove, "call_order", "repeats")):
            what = whats[fact] if self.made else "the producer never ran"
            yield Proof(link, fact, not what, what)


class _Readers(TorchFunctionMode):
    """Tells the chains of every op that the host runs; of this thread, for a while."""

    def __init__(self, chains: Sequence[_ChainWatch]) -> None:
        super().__init__()
        self.chains = chains

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        given = {_storage(t) for t in _tensors((args, tuple((kwargs or {}).values())))}
        for chain in self.chains if given else ():
            if chain.memory in given and not chain.inside:
                chain.read(getattr(func, "__name__", str(func)), result)
        return result


def _by_an_observer() -> bool:
    """Whether the op that runs now is one of calibration's own hooks, which look at the value
    too. A module of torch's own on the way means that the host runs it."""
    frame = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("torch.nn.modules.") and name != "torch.nn.modules.module":
            return False
        if not name.startswith("torch") and name != __name__:
            return name.startswith("frtspec.runtime.")
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)


def _argument(seat: Seat, port: str) -> str | None:
    """The argument of the seat's module that a port is; None: the first."""
    place = seat.boundary.inputs.get(port) if seat.boundary else None
    here = isinstance(place, InputOf) and place.path == seat.path
    return place.arg if here and isinstance(place, InputOf) else None


# ---------------------------------------------------------------- groups


@dataclass
class _Seen:
    """What one seat of a group was called with last."""

    stream: Tensor
    width: int
    rows: int


class _GroupWatch(_Hooks):
    """One group: the stream, width and rows of each seat, and who is called first."""

    def __init__(self, group: SeatGroup, seats: Sequence[Seat]) -> None:
        super().__init__()
        self.group, self.seats = group, seats
        self.seen: dict[str, _Seen] = {}
        self.first: str | None = None
        self.differs: dict[str, str] = {}

    def attach(self, model: nn.Module) -> None:
        for seat in self.seats:
            for module in seat_modules(model, seat).values():
                self._watch(seat, module)

    def _watch(self, seat: Seat, module: nn.Module) -> None:
        sig, name = Signature.of(module), _stream(seat)

        def called(args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any) -> None:
            x, y = sig.argument(None, args, kwargs), first_tensor(output)
            stream = sig.argument(name, args, kwargs)
            if isinstance(x, Tensor) and isinstance(stream, Tensor) and y is not None:
                self._called(seat.name, _Seen(stream, y.shape[-1], row_count(x)))

        self.after(module, called)

    def _called(self, name: str, now: _Seen) -> None:
        self.first = self.first or name
        if name in self.seen:  # the next round: what was seen before is of another
            self.seen.clear()
        for other, before in self.seen.items():
            same = before.stream is now.stream or torch.equal(before.stream, now.stream)
            for fact, holds in (
                ("same_stream", same),
                ("same_width", before.width == now.width),
                ("same_rows", before.rows == now.rows),
            ):
                if not holds:
                    self.differs.setdefault(fact, f"{other} and {name} differ")
        self.seen[name] = now

    def proofs(self) -> Iterator[Proof]:
        idle = "" if self.first else "none of its seats ran"
        for fact in self.group.prove:
            what = idle or self.differs.get(fact, "")
            yield Proof(self.group.name, fact, not what, what)
        writer = self.group.writer
        if writer != "first_called":
            first = (self.first or "").partition("[")[0]
            what = idle or ("" if first == writer else f"{self.first} is called first")
            yield Proof(self.group.name, f"writer {writer}", not what, what)


def _stream(seat: Seat) -> str | None:
    """The argument that conditions a seat: that of its first input that is named by one."""
    inputs = seat.boundary.inputs.values() if seat.boundary else ()
    named = [p.arg for p in inputs if isinstance(p, InputOf) and p.path == seat.path and p.arg]
    return named[0] if named else None

"""The seats of a host family, and what joins them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frtspec.runtime.spec.schemes import SchemeSpec
from frtspec.runtime.spec.seats import Seat

if TYPE_CHECKING:
    import torch

    from frtspec.runtime.rungs.impl import BoundImpl


@dataclass(frozen=True)
class Chain:
    """A value handed from one seat to the next in the dtype ``wire``. Seats by name, with
    their numbers; ``prove``: same_storage, exclusive_consumer; ``form``: the impl that runs
    the producer while the chain is joined, None: that of its own route."""

    producer: str
    output: str
    consumer: str
    input: str
    wire: str
    prove: tuple[str, ...]
    form: type[BoundImpl] | None = None

    @property
    def name(self) -> str:
        """``input_norm[0].y -> qkv[0].x``"""
        return f"{self.producer}.{self.output} -> {self.consumer}.{self.input}"


@dataclass(frozen=True)
class SeatGroup:
    """Seats that share one state. ``writer``: ``first_called``, or a seat's name without
    its numbers; ``prove``: same_stream, same_width, same_rows."""

    name: str
    seats: tuple[str, ...]
    writer: str
    prove: tuple[str, ...]


def numbers_of(seats: Sequence[Seat], *names: str) -> tuple[str, ...]:
    """The full names of the seats called ``names``, of every number, in order."""
    return tuple(seat.name for seat in seats if seat.name.partition("[")[0] in names)


def no_links(model: torch.nn.Module) -> Sequence[Chain | SeatGroup]:
    """What joins the seats of a binding that declares nothing of the kind."""
    return ()


@dataclass(frozen=True)
class Host:
    """A host of a binding: the classes of a package, or a native module, which stands for
    itself and is nothing to attach to."""

    package: str
    versions: str | None = None
    classes: tuple[str, ...] = ()
    module: str | None = None


@dataclass(frozen=True)
class HostBinding:
    """A binding as generated. ``dims(model)`` gives the sizes of a live model, ``seats(model)``
    lists its seats, ``links(model)`` what joins them.

    ``package`` and the like are those of the first host: ``check_host`` puts the one that a
    model is of there. ``text``: the spec, where no file holds it."""

    name: str
    source_digest: str
    contract_digest: str
    hosts: tuple[Host, ...]
    dims: Callable[[torch.nn.Module], Mapping[str, int]]
    seats: Callable[[torch.nn.Module], Sequence[Seat]]
    schemes: Mapping[str, SchemeSpec]
    auto: tuple[tuple[float | None, str], ...]
    runtime_abi: int
    imported: str | None = None
    links: Callable[[torch.nn.Module], Sequence[Chain | SeatGroup]] = no_links
    text: str | None = None

    @property
    def package(self) -> str:
        return self.hosts[0].package

    @property
    def versions(self) -> str | None:
        return self.hosts[0].versions

    @property
    def classes(self) -> tuple[str, ...]:
        """Every class that the binding is for."""
        return tuple(cls for host in self.hosts for cls in host.classes)

"""What ``observe`` hangs onto modules: one recorder for each thing to be known.

``attach`` puts its hooks on, ``close`` takes them off. Tensors are looked at, never changed; what is kept is detached and owned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts import routes
from frtspec.runtime.hosts.places import item_of
from frtspec.runtime.seats.calls import (
    Context,
    Signature,
    autocast_dtype,
    first_tensor,
    row_count,
    version_of,
)
from frtspec.runtime.spec import InputOf, OutputOf, Place, RoutedInput, RoutedOutput, Seat

SeeInput = Callable[[tuple[Any, ...], dict[str, Any]], None]
SeeOutput = Callable[[tuple[Any, ...], dict[str, Any], Any], None]


class Recorder:
    """The base: hooks in, hooks out."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self._handles: list[RemovableHandle | routes.Listener] = []

    def attach(self) -> None:
        """Put the hooks on, with ``before``, ``after`` and ``at``."""
        raise NotImplementedError

    def end_sample(self) -> None:
        """A sample is over."""

    def problem(self, samples: int) -> Refusal | None:
        """Why the seat can't be used, after all samples."""
        return None

    def before(self, module: nn.Module, see: SeeInput) -> None:
        def hook(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            see(args, kwargs)

        self._handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))

    def after(self, module: nn.Module, see: SeeOutput) -> None:
        def hook(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            see(args, kwargs, output)

        self._handles.append(module.register_forward_hook(hook, with_kwargs=True))

    def routed(self, module: nn.Module, see: routes.SeeCall) -> None:
        """Call ``see`` at each call of the seat's routed function."""
        assert self.seat.routed is not None
        self._handles.append(routes.listen(module, self.seat.routed, see))

    def at(self, module: nn.Module, place: Place, see: Callable[[Tensor], None]) -> None:
        """Call ``see`` with the tensor at a place, each time one with data passes."""

        def pass_on(value: Any) -> None:
            value = item_of(value, place.item)
            if isinstance(value, Tensor) and value.numel():
                see(value.detach())

        match place:
            case OutputOf():
                self.after(module, lambda _a, _k, output: pass_on(output))
            case RoutedOutput():
                self.routed(module, lambda _, output: pass_on(output))
            case RoutedInput(arg=wanted):
                self.routed(module, lambda given, _: pass_on(given[wanted]))
            case InputOf(arg=name):
                sig = Signature.of(module)
                self.before(module, lambda args, kwargs: pass_on(sig.argument(name, args, kwargs)))

    def close(self) -> None:
        """Take the hooks off; where that is broken off, doing it again completes it."""
        for handle in self._handles:
            handle.remove()


# ---------------------------------------------------------------- calls


@dataclass(frozen=True)
class CallForm:
    """How a seat's module was called and what it gave back, over every call seen.

    widths    the last axis of each input, for each way they came
    returns   ``tensor``, or the type's name
    calls     positional, keyword
    extra     arguments beyond the structure's inputs that were not their default
    """

    out_dtypes: Mapping[Context, torch.dtype]
    devices: frozenset[torch.device]
    widths: frozenset[tuple[int, ...]]
    returns: frozenset[str]
    calls: frozenset[str]
    extra: frozenset[str]


def input_count(seat: Seat) -> int:
    """How many tensors the seat's module takes: the seam's sources, or the inputs that
    the structure always has."""
    spec = seat.structure
    if seat.seam is not None:
        return len(spec.seams[seat.seam].sources)
    if seat.parts:
        return len(named_inputs(seat))
    return len([name for name in spec.inputs if name not in spec.optional])


def named_inputs(seat: Seat) -> tuple[str | None, ...]:
    """Which arguments of the seat's module its inputs are, where the binding names them at
    the boundary (None: the first); empty where they are the first in order. Of a block with
    parts of the host, what those are handed too."""
    if seat.parts and seat.boundary is not None:
        own_inputs = [p for p in seat.boundary.inputs.values() if isinstance(p, InputOf)]
        handed = [name for part in seat.parts.values() for name in part.given]
        return (*(place.arg for place in own_inputs), *dict.fromkeys(handed))
    places = [] if seat.seam or seat.boundary is None else list(seat.boundary.inputs.items())
    found = [place for name, place in places if name not in seat.structure.optional]
    own = [p for p in found if isinstance(p, InputOf) and p.path == seat.path and p.item is None]
    names = tuple(place.arg for place in own)
    return names if len(own) == len(found) and any(names) else ()


class CallRecorder(Recorder):
    """How often the seat's modules run, on how many rows, and in which form."""

    def __init__(self, seat: Seat, modules: Mapping[str, nn.Module]) -> None:
        super().__init__(seat)
        self.modules = modules
        self.counts = dict.fromkeys(modules, 0)
        self.per_sample: list[int] = []
        self.rows: dict[int, int] = {}
        self.out_dtypes: dict[Context, torch.dtype] = {}
        self.devices: set[torch.device] = set()
        self.widths: set[tuple[int, ...]] = set()
        self.returns: set[str] = set()
        self.styles: set[str] = set()
        self.extra: set[str] = set()

    @property
    def calls(self) -> int:
        return next(iter(self.counts.values()))

    def form(self) -> CallForm:
        return CallForm(
            dict(self.out_dtypes),
            frozenset(self.devices),
            frozenset(self.widths),
            frozenset(self.returns),
            frozenset(self.styles),
            frozenset(self.extra),
        )

    def attach(self) -> None:
        for path, module in self.modules.items():
            self._watch(path, module)

    def _watch(self, path: str, module: nn.Module) -> None:
        sig, count = Signature.of(module, named_inputs(self.seat)), input_count(self.seat)
        first = next(iter(self.modules))

        def see(args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            self.counts[path] += 1
            self.styles.add("positional" if args else "keyword")
            self.returns.add("tensor" if isinstance(output, Tensor) else type(output).__name__)
            self.extra.update(sig.extra(count, args, kwargs))
            inputs, y = sig.inputs(count, args, kwargs), first_tensor(output)
            tensors = [x for x in inputs if isinstance(x, Tensor) and x.dim()]
            if tensors and y is not None:
                x = tensors[0]
                if path == first:
                    self.rows[row_count(x)] = self.rows.get(row_count(x), 0) + 1
                self.widths.add(tuple(item.shape[-1] for item in tensors))
                self.devices.add(x.device)
                self.out_dtypes[Context(x.dtype, autocast_dtype(x.device.type))] = y.dtype

        if self.seat.routed is None:
            self.after(module, see)
        else:
            self.routed(module, lambda given, output: see(tuple(given.values()), {}, output))

    def end_sample(self) -> None:
        self.per_sample.append(self.calls - sum(self.per_sample))

    def problem(self, samples: int) -> Refusal | None:
        idle = [path for path, count in self.counts.items() if count == 0]
        if not idle:
            return None
        ran = "ran as a module"
        if self.seat.routed is not None:
            ran = f"called {self.seat.routed.name}"
        return Refusal(
            "host.never_called",
            f"{', '.join(idle)} never {ran} over {samples} samples: a seat there would never fire",
            fix="bind a module that this host calls (some hosts read a layer's parts directly), "
            "or calibrate on traffic that reaches it",
            seat=self.seat.name,
        )


# ---------------------------------------------------------------- siblings


class SiblingRecorder(Recorder):
    """Whether siblings get one tensor, unchanged, in the order declared."""

    def __init__(self, seat: Seat, modules: Mapping[str, nn.Module]) -> None:
        super().__init__(seat)
        assert seat.siblings is not None
        self.modules = modules
        self.members = tuple(modules)
        self.prove = seat.siblings.prove
        self.found: Refusal | None = None
        self._next = 0
        self._shared: Tensor | None = None
        self._version: int | None = None
        self._copy: Tensor | None = None

    def attach(self) -> None:
        for position, (path, module) in enumerate(self.modules.items()):
            self._watch(position, path, module)

    def _watch(self, position: int, path: str, module: nn.Module) -> None:
        sig = Signature.of(module)

        def see(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            x = sig.inputs(1, args, kwargs)[0]
            if isinstance(x, Tensor):
                self._member_called(position, path, x)

        self.before(module, see)

    def _member_called(self, position: int, path: str, x: Tensor) -> None:
        if position != self._next:
            self._refuse("call_order", f"{path} was called where {self._due()} was due")
        if position == 0:
            self._open(x)
        elif x is not self._shared:
            self._refuse("shared_input", f"{path} got another tensor than {self.members[0]}")
        elif self._changed(x):
            self._refuse("shared_input", f"the shared input changed before {path} was called")
        self._next = (position + 1) % len(self.members)
        if self._next == 0:
            self._close()

    def _open(self, x: Tensor) -> None:
        self._shared, self._version = x, version_of(x)
        self._copy = x.detach().clone() if self._version is None else None

    def _close(self) -> None:
        self._next, self._shared, self._copy = 0, None, None

    def _due(self) -> str:
        return self.members[self._next]

    def _changed(self, x: Tensor) -> bool:
        """By version; inference tensors have none, so their content is compared."""
        if self._copy is not None:
            return not torch.equal(self._copy, x)
        return version_of(x) != self._version

    def end_sample(self) -> None:
        if self._next:
            self._refuse("call_order", f"a sample ended where {self._due()} was due")
        self._close()

    def _refuse(self, fact: str, what: str) -> None:
        if self.found is None and fact in self.prove:
            self.found = Refusal(
                f"siblings.{fact}",
                f"{fact} is not shown: {what}",
                fix="leave this seat out: these modules can't be computed as one on this host",
                seat=self.seat.name,
            )

    def problem(self, samples: int) -> Refusal | None:
        return self.found

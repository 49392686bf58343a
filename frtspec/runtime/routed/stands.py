"""What serves the calls of a routed function: the bound form, or the host's own function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.runtime.hosts.places import item_of, laid_out
from frtspec.runtime.hosts.routes import Given, Tap
from frtspec.runtime.observation.routedcalls import RouteSeen
from frtspec.runtime.routed.forms import RoutedForms
from frtspec.runtime.routed.guard import RoutedCall, RouteGuard, failed
from frtspec.runtime.routed.plan import Handed, Returned, RoutePlan, Table
from frtspec.runtime.seats.calls import Signature
from frtspec.runtime.seats.guard import Failed
from frtspec.runtime.seats.ledger import Counter


@dataclass
class Served:
    """What both kinds of stand work with."""

    plan: RoutePlan
    forms: RoutedForms
    guard: RouteGuard
    counter: Counter

    @property
    def calls(self) -> Mapping[str, bool]:
        return self.plan.routed.calls

    def handed(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The values of a call that the routed function is handed, as the structure has them.
        Something that is no tensor stays as it is."""
        shapes, dims = self.plan.seat.structure.shapes, self.plan.seat.dims
        found: dict[str, Any] = {}
        for port, at in self.plan.inputs.items():
            if isinstance(at, Handed):
                value = given.get(at.arg)
                fits = isinstance(value, Tensor)
                found[port] = (
                    laid_out(value, at.layout, shapes.get(port, ()), dims) if fits else value
                )
        return found

    def call(self, values: Mapping[str, Any], given: Given) -> RoutedCall | Failed:
        """A call to be checked, or why it is none."""
        found: dict[str, Tensor | None] = {}
        for name in self.plan.seat.structure.inputs:
            value = values.get(name)
            if value is not None and not isinstance(value, Tensor):
                what = type(value).__name__
                return failed("arguments", f"called with a {what} for {name}")
            if value is None and name not in self.plan.seat.structure.optional:
                return failed("arguments", f"called without {name}")
            found[name] = value
        return RoutedCall(found, given.extra)

    def run(self, call: RoutedCall) -> dict[str, Tensor]:
        """The form's outputs by name, as the host lays them out."""
        try:
            result = self.forms(*call.values.values())
        except Exception as error:
            error.add_note(f"in seat {self.counter.seat} ({self.counter.form})")
            raise
        items = (result,) if isinstance(result, Tensor) else result
        outputs = self.plan.outputs
        return {
            port: _turned(item, outputs[port].layout)
            for port, item in zip(self.forms.outputs, items, strict=True)
        }

    def fell_back(self, why: Failed) -> None:
        if not torch.compiler.is_compiling():
            self.counter.fell_back(why)

    def ran(self) -> None:
        if not torch.compiler.is_compiling():
            self.counter.ran()


def _turned(value: Tensor, layout: str | None) -> Tensor:
    """A result as the host has it, contiguous as the host's own would be."""
    return value.contiguous() if layout is None else value.transpose(1, 2)


def returning(outputs: Mapping[str, Tensor], plan: RoutePlan, seen: RouteSeen) -> Any:
    """What the host's function returns, made of the form's outputs."""
    ((count, _),) = seen.returns
    if count is None:
        (only,) = outputs.values()
        return only
    items: list[Tensor | None] = [None] * count
    for port, value in outputs.items():
        at = plan.outputs[port]
        assert isinstance(at, Returned)
        items[at.item or 0] = value
    kept = seen_places(seen)
    return tuple([item if place in kept else None for place, item in enumerate(items)])


def seen_places(seen: RouteSeen) -> tuple[int, ...]:
    """Positions of the tensors in what the host's function returned at calibration."""
    ((_, places),) = seen.returns
    return places


@dataclass
class FunctionStand(Served):
    """Calls the form in the place of the routed function."""

    outer = False

    def serve(
        self,
        tap: Tap,
        names: tuple[str, ...],
        inner: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        given = tap.arguments(names, args, kwargs)
        call = self.call(self.handed(given), given)
        why = call if isinstance(call, Failed) else self.guard.failed(call)
        if why is not None:
            self.fell_back(why)
            return inner(*args, **kwargs)
        assert isinstance(call, RoutedCall)
        outputs = self.run(call)
        self.ran()
        return returning(outputs, self.plan, self.guard.contract.seen)


# ---------------------------------------------------------------- spans


@dataclass
class Frame:
    """One run of a span's module: its tables, and what its modules passed on."""

    tables: Mapping[str, Any]
    passed: dict[str, Tensor] = field(default_factory=dict)
    done: bool = False


class Again(Exception):
    """The module has to run again on the host's own code: a call turned out to be none that
    the form is for. Nothing but products was computed so far, and they are computed anew."""

    def __init__(self, frame: Frame, why: Failed) -> None:
        super().__init__(why.reason)
        self.frame, self.why = frame, why


class _Frames(threading.local):
    def __init__(self) -> None:
        self.open: list[Frame] = []


@dataclass
class SpanStand(Served):
    """Runs the form from the input of norms to the routed function behind them.

    Each thread has its own frame, so that threads don't see each other's values. While a
    graph is traced the host's own code runs.
    """

    module: nn.Module
    frames: _Frames = field(default_factory=_Frames)
    copies: set[str] = field(default_factory=set)
    outer = True

    def __post_init__(self) -> None:
        self.signature = Signature.of(self.module)

    @property
    def frame(self) -> Frame | None:
        opened = self.frames.open
        return opened[-1] if opened else None

    # ------------------------------------------------------------ the module

    def around(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The module's forward, with a frame about it."""

        def framed(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return forward(*args, **kwargs)
            tables = self._tables(args, kwargs)
            why = self.guard.before(tables)
            if why is None:
                frame = Frame(tables)
                result, why = self._framed(forward, frame, args, kwargs)
                if why is None:
                    self.ran()
                    return result
            self.fell_back(why)
            return self._plain(forward, args, kwargs)

        return framed

    def _framed(
        self, forward: Callable[..., Any], frame: Frame, args: tuple[Any, ...], kwargs: Any
    ) -> tuple[Any, Failed | None]:
        if self.plan.handed_on:
            args, kwargs = self._without_tables(args, kwargs)
        opened = self.frames.open
        opened.append(frame)
        try:
            result = forward(*args, **kwargs)
        except Again as again:
            if again.frame is not frame:
                raise
            return None, again.why
        finally:
            opened.pop()
        if not frame.done:
            return None, failed("arguments", f"{self.plan.routed.name} was not called")
        return result, None

    def _plain(self, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
        """The host's own run: no frame of this seat is open in it."""
        held, self.frames.open = self.frames.open, []
        try:
            return forward(*args, **kwargs)
        finally:
            self.frames.open = held

    def _tables(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for port, at in self.plan.tables.items():
            given = self.signature.argument(at.arg, args, kwargs)
            found[port] = item_of(given, at.item)
        return found

    def _without_tables(self, args: tuple[Any, ...], kwargs: Any) -> tuple[Any, Any]:
        """The form rotates, so the host is told of no rotation."""
        given, named = list(args), dict(kwargs)
        for arg in {at.arg for at in self.plan.tables.values()}:
            if arg in named:
                named[arg] = None
            elif arg in self.signature.names:
                given[self.signature.names.index(arg)] = None
        return tuple(given), named

    # ------------------------------------------------------------ on the way

    def passing(self, path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """A module's forward that passes on what it gets while a frame is open."""

        def around(forward: Callable[..., Any]) -> Callable[..., Any]:
            def passes(*args: Any, **kwargs: Any) -> Any:
                frame = None if torch.compiler.is_compiling() else self.frame
                if frame is None:
                    return forward(*args, **kwargs)
                if len(args) != 1 or kwargs or not isinstance(args[0], Tensor):
                    raise Again(frame, failed("arguments", f"{path} was called in another way"))
                frame.passed[path] = args[0]
                return args[0]

            return passes

        return around

    # ------------------------------------------------------------ the end

    def serve(
        self,
        tap: Tap,
        names: tuple[str, ...],
        inner: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        frame = None if torch.compiler.is_compiling() else self.frame
        if frame is None:
            return inner(*args, **kwargs)
        given = tap.arguments(names, args, kwargs)
        call = self._checked(frame, given)
        outputs = self.run(call)
        frame.done = True
        if not self.plan.handed_on:
            return returning(outputs, self.plan, self.guard.contract.seen)
        instead = {at.arg: outputs[port] for port, at in self.plan.handed_on.items()}
        args, kwargs = tap.handing(names, args, kwargs, instead)
        return inner(*args, **kwargs)

    def _checked(self, frame: Frame, given: Given) -> RoutedCall:
        """The call, or ``Again`` with why it is not one that the form is for."""
        handed = self.handed(given)
        if frame.done:
            raise Again(frame, failed("arguments", f"{self.plan.routed.name} was called twice"))
        why = self._touched(frame, given, handed)
        call = self.call({**handed, **self._laid_out(frame.tables, handed)}, given)
        if why is None:
            why = call if isinstance(call, Failed) else self.guard.failed(call)
        if why is not None:
            raise Again(frame, why)
        assert isinstance(call, RoutedCall)
        return call

    def _laid_out(
        self, tables: Mapping[str, Tensor], handed: Mapping[str, Any]
    ) -> dict[str, Tensor]:
        """The tables as the structure has them. One row of positions is the same for every
        sequence of a batch, where the host would spread it too."""
        shapes, dims = self.plan.seat.structure.shapes, self.plan.seat.dims
        found = {
            port: laid_out(value, self._table(port).layout, shapes.get(port, ()), dims)
            for port, value in tables.items()
        }
        stream = next((value for value in handed.values() if isinstance(value, Tensor)), None)
        if stream is None or stream.shape[0] == 1:
            return found
        return {
            port: value.expand(stream.shape[0], *value.shape[1:]) if value.shape[0] == 1 else value
            for port, value in found.items()
        }

    def _table(self, port: str) -> Table:
        at = self.plan.inputs[port]
        assert isinstance(at, Table)
        return at

    def _touched(
        self, frame: Frame, given: Mapping[str, Any], handed: Mapping[str, Any]
    ) -> Failed | None:
        """Whether the host did more than move what was passed on. It has to arrive as a view of
        the same memory, whole; or as a copy, which is compared once and then has to keep its
        size."""
        if len(frame.passed) < len(self.plan.passing):
            missing = [path for path in self.plan.passing if path not in frame.passed]
            return failed("arguments", f"{', '.join(missing)} did not run")
        arrived = [value for value in given.values() if isinstance(value, Tensor)]
        for path, value in frame.passed.items():
            if any(_same_memory(value, other) for other in arrived):
                continue
            if not self._copied(path, value, handed):
                return failed("values", f"the host changed what {path} passed on")
        return None

    def _copied(self, path: str, value: Tensor, handed: Mapping[str, Any]) -> bool:
        port, layout = self.plan.begins.get(path, ("", None))
        other = handed.get(port)
        if not isinstance(other, Tensor) or other.dtype != value.dtype:
            return False
        shape = self.plan.seat.structure.shapes.get(port, ())
        mine = laid_out(value, layout, shape, self.plan.seat.dims)
        if mine.shape != other.shape:
            return False
        if path not in self.copies and torch.equal(mine, other):
            self.copies.add(path)
        return path in self.copies


def _same_memory(a: Tensor, b: Tensor) -> bool:
    return (
        a.dtype == b.dtype
        and a.numel() == b.numel()
        and a.data_ptr() == b.data_ptr()
        and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    )

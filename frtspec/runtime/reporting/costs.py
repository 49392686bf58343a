"""Where the untouched host's work and time go, and how much of it seats can change.

One run counts multiply-adds, one run takes time; both attribute what happens inside a seat's
modules to that seat. What lies outside of every bound seat stays as it is however fast the
seats are, which bounds the gain (Amdahl).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from frtspec.runtime.environment import device_is_lost
from frtspec.runtime.gating.latency import device_clock
from frtspec.runtime.hosts import host as hosts
from frtspec.runtime.records import SeatRecord

Modules = Mapping[str, Sequence[nn.Module]]
"""Seat name -> the host modules that it stands for."""


@dataclass(frozen=True)
class Share:
    """A part of a total: FLOPs, or seconds."""

    total: float
    by_seat: Mapping[str, float]

    def of(self, seats: Sequence[str]) -> float:
        """0 to 1; 0 where nothing was counted."""
        part = sum(self.by_seat.get(seat, 0.0) for seat in seats)
        return min(1.0, part / self.total) if self.total else 0.0


@dataclass(frozen=True)
class Costs:
    """Of one run of the untouched host.

    flops    of the matrix products, convolutions and attention that torch can count
    seconds  by the wall clock, with the device waited for at each border of a seat
    busy     seconds that the device computed; None where host and device are one
    bound    the seats that are bound
    """

    flops: Share | None = None
    seconds: Share | None = None
    busy: float | None = None
    bound: tuple[str, ...] = ()
    note: str = ""

    def settled(self, records: Sequence[SeatRecord]) -> Costs:
        return replace(self, bound=tuple(r.name for r in records if r.state == "bound"))

    @property
    def ceiling(self) -> float | None:
        """The best possible speed-up by the time share of the bound seats; infinite where
        nothing lies outside them."""
        if self.seconds is None or not self.seconds.total:
            return None
        outside = 1.0 - self.seconds.of(self.bound)
        return 1.0 / outside if outside > 0 else float("inf")

    def to_json(self) -> dict[str, Any]:
        """Plain data; an unbounded ceiling is null, like one that is not known."""
        ceiling = self.ceiling
        return {
            "flops": _share(self.flops, self.bound),
            "seconds": _share(self.seconds, self.bound),
            "device_busy_seconds": self.busy,
            "ceiling": ceiling if ceiling is not None and ceiling != float("inf") else None,
            "note": self.note,
        }


def _share(share: Share | None, bound: Sequence[str]) -> dict[str, Any] | None:
    if share is None:
        return None
    return {"total": share.total, "by_seat": dict(share.by_seat), "bound": share.of(bound)}


def measure(
    run: Callable[[], object], modules: Modules, device: torch.device, clock: Any = None
) -> Costs:
    """Runs the untouched host twice, counted and timed; a third time under the profiler where
    there is a device beside the host.

    run      one sample of the host
    modules  seats of the host; a call inside another seat's call counts for the outer one
    clock    seconds, after queued work; of the device when None
    """
    with _Flops() as flops, _inside(modules, flops.enter, flops.leave):
        run()
    timer = _Timer(clock or device_clock(device))
    with _inside(modules, timer.enter, timer.leave):
        timer.start()
        run()
        timer.stop()
    return Costs(
        Share(flops.total, dict(flops.by_seat)) if flops.total else None,
        Share(timer.total, dict(timer.by_seat)),
        _busy(run, device),
    )


class _Flops(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what torch's own registry of FLOPs knows, on this thread."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0.0
        self.seat: str | None = None
        self.by_seat: dict[str, float] = {}

    def enter(self, seat: str) -> None:
        self.seat = seat

    def leave(self, seat: str) -> None:
        self.seat = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        count = flop_registry.get(func._overloadpacket)
        if count is None and func is not torch.ops.prim.device.default:
            with self:
                found = func.decompose(*args, **kwargs)
            if found is not NotImplemented:
                return found
        output = func(*args, **kwargs)
        if count is not None:
            flops = float(count(*args, **kwargs, out_val=output))
            self.total += flops
            if self.seat is not None:
                self.by_seat[self.seat] = self.by_seat.get(self.seat, 0.0) + flops
        return output


class _Timer:
    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock, self.total, self._began, self._at = clock, 0.0, 0.0, 0.0
        self.by_seat: dict[str, float] = {}

    def start(self) -> None:
        self._began = self.clock()

    def stop(self) -> None:
        self.total = self.clock() - self._began

    def enter(self, seat: str) -> None:
        self._at = self.clock()

    def leave(self, seat: str) -> None:
        self.by_seat[seat] = self.by_seat.get(seat, 0.0) + self.clock() - self._at


@contextmanager
def _inside(
    modules: Modules, enter: Callable[[str], None], leave: Callable[[str], None]
) -> Iterator[None]:
    """Calls ``enter`` and ``leave`` around each outermost call of a seat's modules."""
    stack: list[str] = []
    hooks = []

    def before(seat: str) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            stack.append(seat)
            if len(stack) == 1:
                enter(seat)

        return hook

    def after(seat: str) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            if stack and stack.pop() == seat and not stack:
                leave(seat)

        return hook

    try:
        for seat, mine in modules.items():
            for module in mine:
                hooks.append(module.register_forward_pre_hook(before(seat)))
                hooks.append(module.register_forward_hook(after(seat)))
        yield
    finally:
        for hook in hooks:
            hook.remove()


def of_host(
    model: nn.Module, records: Sequence[SeatRecord], run: Callable[[], object], device: torch.device
) -> Costs:
    """``measure`` for the seats of a host. What can't be measured is a note, no outcome: a
    host may hold what can't be counted."""
    try:
        modules = {
            r.name: list(hosts.seat_modules(model, r.seat).values())
            for r in records
            if r.seat.routed is None
        }
        return measure(run, modules, device)
    except Exception as error:  # told, whole: nothing is decided by these figures
        if device_is_lost(error):
            raise
        return Costs(note=f"where the time goes was not measured: {type(error).__name__}: {error}")


def _busy(run: Callable[[], object], device: torch.device) -> float | None:
    """Seconds in which kernels ran on the device, by torch's profiler."""
    if device.type != "cuda":
        return None
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        run()
        torch.cuda.synchronize(device)
    return float(sum(event.self_device_time_total for event in profile.key_averages())) / 1e6


def told(costs: Costs, *, timed: bool = True) -> Iterator[str]:
    """The lines of an explanation. The ceiling is told where speed was judged: elsewhere it
    would read as a promise about a device that nothing was timed on."""
    if costs.note:
        yield costs.note
    if costs.flops is not None:
        yield (
            f"bound seats do {costs.flops.of(costs.bound):.1%} of the"
            f" {costs.flops.total:.4g} FLOPs of a run that torch can count"
        )
    if costs.seconds is None or not costs.seconds.total:
        return
    share, total = costs.seconds.of(costs.bound), costs.seconds.total
    line = (
        f"bound seats took {share:.1%} of the untouched host's {total * 1e3:.4g} ms; {1 - share:.1%}"
        " stays on the host (Amdahl)"
    )
    if timed:
        ceiling = costs.ceiling
        most = "without bound" if ceiling == float("inf") else f"by at most {ceiling:.3g}x"
        line += f": a run can get faster {most}"
    yield line
    if costs.busy is not None:
        idle = max(0.0, 1 - costs.busy / total)
        yield (
            f"  the device computed for {costs.busy * 1e3:.4g} ms of it; {idle:.1%} of the run it"
            " waited for the host"
        )

"""What must hold for a call to run the bound form instead of the host.

A seat is bound for what calibration saw. ``CHECKS`` lists what a call may differ
in; each is one small function, and without any one of them some call would give a
wrong result or leave the host's behaviour. A call that fails a check runs the
host's own module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from frtspec.runtime.chains.wire import Wire
from frtspec.runtime.seats.calls import Context, autocast_dtype, row_count, version_of

if TYPE_CHECKING:
    from frtspec.runtime.spec import ImplSpec


@dataclass(frozen=True)
class Band:
    """Row counts that a form runs: ``lo..=hi`` (hi None: any) in steps of ``multiple``."""

    lo: int = 1
    hi: int | None = None
    multiple: int = 1

    def holds(self, rows: int) -> bool:
        return (
            rows >= self.lo
            and (self.hi is None or rows <= self.hi)
            and (self.multiple == 1 or rows % self.multiple == 0)
        )

    @property
    def least(self) -> int:
        """The smallest row count that the band holds."""
        return -(-self.lo // self.multiple) * self.multiple

    def __str__(self) -> str:
        end = "" if self.hi is None else f"={self.hi}"
        step = f" in steps of {self.multiple}" if self.multiple > 1 else ""
        return f"{self.lo}..{end}{step}"


def bands_of(spec: ImplSpec) -> tuple[Band, ...]:
    """The row counts that an impl is for, as declared; empty: every one."""
    return tuple(Band(band.lo, band.hi) for band in spec.bands)


@dataclass(frozen=True)
class Contract:
    """What a seat was bound for.

    widths       last axis of each input, in order
    device       where the packs are
    out_dtypes   dtype situation of a call -> dtype that the host returns in it
    bands        row counts that some form runs
    """

    widths: tuple[int, ...]
    device: torch.device
    out_dtypes: Mapping[Context, torch.dtype]
    bands: tuple[Band, ...] = (Band(),)

    def out_dtype(self, x: Tensor) -> torch.dtype:
        """What the host module returns for this input in the present autocast state."""
        return self.out_dtypes.get(Context(x.dtype, autocast_dtype(x.device.type)), x.dtype)


class Link(NamedTuple):
    """An entry of a module's own dict that must still hold the same object."""

    entries: dict[str, Any]
    name: str
    held: Any
    path: str


class Stamp(NamedTuple):
    """A weight as it was when it was packed."""

    tensor: Tensor
    version: int | None
    address: int
    path: str


PLAIN = frozenset({Tensor, nn.Parameter, nn.Buffer, Wire})
"""Types of input that a form reads. Another subclass (a shard, a fake, codes of some library)
computes by rules of its own; what a chain sends is ours."""

EVERYWHERE = (torch_module._global_forward_hooks, torch_module._global_forward_pre_hooks)
"""torch's hooks on every module of the process: read here, never written."""


class Guard:
    """The contract of one seat and the host modules it stands for, by path."""

    def __init__(self, contract: Contract, hosts: Mapping[str, nn.Module]) -> None:
        self.contract = contract
        self.hosts = dict(hosts)
        self.modules = tuple(module for host in hosts.values() for module in host.modules())
        self.inner = tuple(m for m in self.modules if all(m is not h for h in hosts.values()))
        self.parameters = tuple(p for host in hosts.values() for p in host.parameters())
        self.links = tuple(link for path, host in hosts.items() for link in _links(path, host))
        self.stamps = tuple(stamp for path, host in hosts.items() for stamp in _stamps(path, host))
        self.passes = Quick(self).passes

    def failed(self, inputs: tuple[Any, ...], extra: Sequence[str]) -> Failed | None:
        """The first check that this call fails."""
        for check in CHECKS:
            reason = check.test(self, inputs, extra)
            if reason is not None:
                return Failed(check, reason)
        return None

    def failed_traced(self, inputs: tuple[Any, ...], extra: Sequence[str]) -> bool:
        """The same at the time of tracing; what a trace can't ask is left out."""
        for check in CHECKS:
            if check.traced and check.test(self, inputs, extra) is not None:
                return True
        return False

    def stale(self) -> str | None:
        """Why the packs are no longer the host's weights; None when they are."""
        return _weights(self, (), ())


def _links(path: str, host: nn.Module) -> list[Link]:
    found = []
    for name, module in host.named_modules(prefix=path):
        for entries in (module._modules, module._parameters):
            found += [Link(entries, key, held, f"{name}.{key}") for key, held in entries.items()]
        own = module.__dict__
        found.append(Link(own, "forward", own.get("forward"), f"{name}.forward"))
    return found


def _stamps(path: str, host: nn.Module) -> list[Stamp]:
    return [
        Stamp(tensor, version_of(tensor), tensor.data_ptr(), name)
        for name, tensor in host.named_parameters(prefix=path)
    ]


class Quick:
    """All checks of a guard at once, for the common call: positional, autocast off.

    ``passes(args)``: whether a call with just these arguments surely passes every check.
    False says nothing: then ``Guard.failed`` decides. In a decode step the seats' own time is
    the host's time, so it holds the very dicts that it reads and calls little.
    """

    def __init__(self, guard: Guard) -> None:
        contract = guard.contract
        self.guard = guard
        self.widths, self.count = contract.widths, len(contract.widths)
        self.device, self.kind = contract.device, contract.device.type
        self.dtypes = frozenset(c.dtype for c in contract.out_dtypes if c.autocast is None)
        self.bands = () if Band() in contract.bands else contract.bands
        hooks = [d for m in guard.inner for d in (m._forward_hooks, m._forward_pre_hooks)]
        self.hooks = (*hooks, *(EVERYWHERE if guard.inner else ()))
        self.own = tuple(module.__dict__ for module in guard.modules)
        self.links = tuple((link.entries, link.name, link.held) for link in guard.links)
        self.stamps = tuple((stamp.tensor, stamp.version, stamp.address) for stamp in guard.stamps)
        self.versioned = all(stamp.version is not None for stamp in guard.stamps)

    def passes(self, args: tuple[Any, ...]) -> bool:
        if len(args) != self.count or not self.versioned:
            return False
        x, width = args[0], self.widths[0]
        if type(x) not in PLAIN or x.device != self.device or x.dtype not in self.dtypes:
            return False
        shape = x.shape
        if not shape or shape[-1] != width or torch.is_autocast_enabled(self.kind):
            return False
        size = x.numel()
        if size == 0 or (self.bands and not self._in_band(size // width)):
            return False
        if self.count > 1 and not self._others(args):
            return False
        if torch.is_grad_enabled() and _grad(self.guard, args, ()) is not None:
            return False
        if any(self.hooks):
            return False
        for own in self.own:
            if own["training"]:
                return False
        for entries, name, held in self.links:
            if entries.get(name) is not held:
                return False
        for tensor, version, address in self.stamps:
            if tensor._version != version or tensor.data_ptr() != address:
                return False
        return True

    def _others(self, args: tuple[Any, ...]) -> bool:
        return all(
            type(x) in PLAIN and x.device == self.device and x.dim() and x.shape[-1] == width
            for x, width in zip(args, self.widths, strict=True)
        )

    def _in_band(self, rows: int) -> bool:
        return any(band.holds(rows) for band in self.bands)


# ---------------------------------------------------------------- checks

Test = Callable[[Guard, tuple[Any, ...], Sequence[str]], str | None]


class Check(NamedTuple):
    """``traced``: also asked while a compiler traces the call. ``by_design``: a call that
    fails it is meant for the host (counted as host rows, no fallback). ``curable``: the caller
    can mend it while attached, so that no number of such calls gives the seat back."""

    name: str
    test: Test
    traced: bool = True
    by_design: bool = False
    curable: bool = False


class Failed(NamedTuple):
    check: Check
    reason: str


def _arguments(guard: Guard, inputs: tuple[Any, ...], extra: Sequence[str]) -> str | None:
    if extra:
        return f"called with {', '.join(extra)}, which the bound form does not take"
    for x in inputs:
        if not isinstance(x, Tensor):
            return f"called with a {type(x).__name__} where a tensor was expected"
        if type(x) not in PLAIN:
            return (
                f"called with a {type(x).__name__}, a tensor of another kind than it was bound on"
            )
    return None


def _dtype(guard: Guard, inputs: tuple[Any, ...], extra: Sequence[str]) -> str | None:
    dtype = inputs[0].dtype
    for context in guard.contract.out_dtypes:
        if context.dtype == dtype:
            return None
    known = ", ".join(sorted({str(context.dtype) for context in guard.contract.out_dtypes}))
    return f"input dtype {dtype}; bound for {known}"


def _autocast(guard: Guard, inputs: tuple[Any, ...], extra: Sequence[str]) -> str | None:
    found = autocast_dtype(inputs[0].device.type)
    known = [c.autocast for c in guard.contract.out_dtypes if c.dtype == inputs[0].dtype]
    if not known or found in known:
        return None
    bound = " or ".join(str(state or "off") for state in known)
    return f"autocast is {found or 'off'}; bound with it {bound}"


def _device(guard: Guard, inputs: tuple[Any, ...], extra: Sequence[str]) -> str | None:
    for x in inputs:
        if x.device != guard.contract.device:
            return f"input on {x.device}; bound on {guard.contract.device}"
    return None


def _width(guard: Guard, inputs: tuple[Any, ...], extra: Sequence[str]) -> str | None:
    for x, width in zip(inputs, guard.contract.widths, strict=True):
        if x.dim() == 0 or x.shape[-1] != width:
            return f"input of shape {list(x.shape)}; bound for a last axis of {width}"
    return None


def _rows(guard: Guard, inputs: tuple[Any, ...], extra: Sequence[str]) -> str | None:
    rows = row_count(inputs[0])
    for band in guard.contract.bands:
        if band.holds(rows):
            return None
    return f"{rows} rows; bound for {' and '.join(map(str, guard.contract.bands))}"


def _training(guard: Guard, inputs: tuple[Any, ...], extra: Sequence[str]) -> str | None:
    for module in guard.modules:
        if module.training:
            return f"{type(module).__name__} is in training mode"
    return None


def _hooks(guard: Guard, inputs: tuple[Any, ...], extra: Sequence[str]) -> str | None:
    for module in guard.inner:
        if module._forward_hooks or module._forward_pre_hooks:
            return (
                f"a {type(module).__name__} inside has hooks, and the bound form does not call it"
            )
    if guard.inner and any(EVERYWHERE):
        return "hooks on every module are set, and the bound form calls none of those inside"
    return None


def _grad(guard: Guard, inputs: tuple[Any, ...], extra: Sequence[str]) -> str | None:
    if not torch.is_grad_enabled():
        return None
    for tensor in (*inputs, *guard.parameters):
        if tensor.requires_grad:
            return "gradients are recorded; run inference under torch.no_grad()"
    return None


def _weights(guard: Guard, inputs: tuple[Any, ...], extra: Sequence[str]) -> str | None:
    for link in guard.links:
        if link.entries.get(link.name) is not link.held:
            return f"{link.path} was replaced since it was packed"
    for stamp in guard.stamps:
        if (version_of(stamp.tensor), stamp.tensor.data_ptr()) != (stamp.version, stamp.address):
            return f"{stamp.path} changed since it was packed"
    return None


CHECKS: tuple[Check, ...] = (
    Check("arguments", _arguments),
    Check("device", _device),
    Check("dtype", _dtype),
    Check("autocast", _autocast),
    Check("width", _width),
    Check("rows", _rows, by_design=True),
    Check("training", _training),
    Check("hooks", _hooks),
    Check("grad", _grad),
    Check("weights", _weights, traced=False),
)
"""In the order asked; a later one may rely on those before it."""

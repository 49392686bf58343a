"""One forward of the host, watched: who is called with what, who shares an input, whose
weight is used by others, what each module's matrix products cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from frtspec.live.scan.tree import Tree
from frtspec.runtime.hosts import routes
from frtspec.runtime.seats.calls import Signature, first_tensor, version_of
from frtspec.runtime.spec import (
    InputOf,
    OutputOf,
    Place,
    Routed,
    RoutedInput,
    RoutedOutput,
)

_READS_NO_VALUES = frozenset(
    ("__get__", "size", "dim", "numel", "element_size", "stride", "is_floating_point", "data_ptr")
)


Shape = tuple[int, ...]


@dataclass
class Watched:
    """What one run showed.

    calls        module path -> how often its forward ran
    groups       parent path -> each way its projections shared an input, in call order
    functional   module path -> who used its weight while it was not running
    before       module path -> norms whose output was its input, most recent first
    returns      module path -> ``tensor`` or what else it gave back
    flops        module path -> FLOPs of matrix products below it
    moved        modules with weights that ran again and gave something else
    inputs …     shapes of the first call: a list where the value is a tuple. ``routed``:
                 (module, function) -> what it was handed, what it gave back
    """

    calls: dict[str, int] = field(default_factory=dict)
    groups: dict[str, dict[tuple[str, ...], int]] = field(default_factory=dict)
    functional: dict[str, str] = field(default_factory=dict)
    before: dict[str, tuple[str, ...]] = field(default_factory=dict)
    returns: dict[str, str] = field(default_factory=dict)
    flops: dict[str, int] = field(default_factory=dict)
    total_flops: int = 0
    moved: frozenset[str] = frozenset()
    inputs: dict[str, Shape] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    routed: dict[tuple[str, str], tuple[Mapping[str, Any], Any]] = field(default_factory=dict)

    def shape(self, seat: str, place: Place) -> Shape | None:
        """The shape that was seen at a place of the seat at ``seat``; None where none was."""
        found: Any
        match place:
            case RoutedInput(function=name, arg=arg):
                found = self.routed.get((seat, name), ({}, None))[0].get(arg)
            case RoutedOutput(function=name):
                found = self.routed.get((seat, name), ({}, None))[1]
            case OutputOf(path=path):
                found = self.outputs.get(path)
            case InputOf(path=path, arg=None):
                found = self.inputs.get(path)
            case InputOf(path=path, arg=arg):
                found = self.arguments.get(path, {}).get(arg or "")
        if isinstance(found, list):
            found = found[place.item or 0] if len(found) > (place.item or 0) else None
        return found if isinstance(found, tuple) else None


def _grouped(x: Shape, w: Shape, *_: Any, out_shape: Any = None, **__: Any) -> int:
    """FLOPs of a product whose rows go to one of several matrices: [M, K] by [E, K, N]."""
    return 2 * x[-2] * x[-1] * w[-1]


_UNCOUNTED = {
    getattr(torch.ops.aten, name): _grouped
    for name in ("_grouped_mm", "_scaled_grouped_mm")
    if hasattr(torch.ops.aten, name)
}
"""Products that torch's counter does not know."""


def watch(
    tree: Tree, forward: Callable[[], Any], lookups: Sequence[tuple[str, Routed]] = ()
) -> Watched:
    """Runs ``forward`` once under hooks, all taken out again. Passes on what it raises.

    ``lookups``: (module, function that it looks up) to listen to.
    """
    seen = Watched()
    counter = FlopCounterMode(display=False, custom_mapping=_UNCOUNTED)
    watcher = _Watcher(tree, seen, counter)
    with ExitStack() as stack:
        for path, module in tree.modules.items():
            stack.enter_context(watcher.hooked(path, module))
        for path, routed in lookups:
            stack.callback(watcher.listens(path, routed).remove)
        stack.enter_context(torch.no_grad())
        stack.enter_context(counter)
        stack.enter_context(_Uses(tree, watcher))
        forward()
    watcher.close_groups()
    seen.moved = frozenset(path for path, prints in watcher.prints.items() if _differ(prints))
    seen.total_flops = counter.get_total_flops()
    return seen


@dataclass
class _Group:
    """Projections of one parent that were called with one tensor, so far."""

    tensor: Tensor
    version: int | None
    members: list[str]


class _Watcher:
    def __init__(self, tree: Tree, seen: Watched, counter: FlopCounterMode) -> None:
        self.tree = tree
        self.seen = seen
        self.counter = counter
        self.running: list[str] = []
        self.started: list[int] = []  # FLOPs of the run when each of them began
        self.prints: dict[str, list[Tensor]] = {}
        self.groups: dict[str, _Group] = {}
        self.norms: dict[int, dict[str, Tensor]] = {}  # by where their output lies
        self.normed: dict[str, int] = {}
        leaves = {path: tree.leaf(path) for path in tree.modules}
        self.are_norms = {p for p, leaf in leaves.items() if leaf and leaf.kind.endswith("_norm")}

    @contextmanager
    def hooked(self, path: str, module: nn.Module) -> Iterator[None]:
        def enter(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            with torch._C.DisableTorchFunction():
                self.enter(path, module, _first(args, kwargs))
                self.seen.arguments.setdefault(path, _named(module, args, kwargs))

        def leave(_: nn.Module, args: Any, output: Any) -> None:
            with torch._C.DisableTorchFunction():
                self.leave(path, module, output)

        handles = [
            module.register_forward_pre_hook(enter, with_kwargs=True, prepend=True),
            module.register_forward_hook(leave, always_call=True),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def listens(self, path: str, routed: Routed) -> routes.Listener:
        def see(given: Mapping[str, Any], output: Any) -> None:
            found = {name: _shapes(value) for name, value in given.items()}
            self.seen.routed.setdefault((path, routed.name), (found, _shapes(output)))

        return routes.listen(self.tree.modules[path], routed, see)

    def enter(self, path: str, module: nn.Module, given: Tensor | None) -> None:
        self.running.append(path)
        self.started.append(self.counter.get_total_flops())
        self.seen.calls[path] = self.seen.calls.get(path, 0) + 1
        if given is None or not given.is_floating_point():
            return
        self.seen.inputs.setdefault(path, tuple(given.shape))
        if isinstance(module, nn.Linear):
            self.group(path, given)
        else:
            self.preceded(path, given)

    def leave(self, path: str, module: nn.Module, output: Any) -> None:
        if path in self.running:
            at = len(self.running) - 1 - self.running[::-1].index(path)
            if path not in self.running[:at]:  # a module inside itself counts once
                spent = self.counter.get_total_flops() - self.started[at]
                self.seen.flops[path] = self.seen.flops.get(path, 0) + spent
            del self.running[at:], self.started[at:]
        if next(module.parameters(), None) is not None:
            self.prints.setdefault(path, []).append(_print(output))
        kind = "tensor" if isinstance(output, Tensor) else type(output).__name__
        self.seen.returns.setdefault(path, kind)
        self.seen.outputs.setdefault(path, _shapes(output))
        value = first_tensor(output)
        if path in self.are_norms and value is not None:
            before = self.norms.get(self.normed.get(path, -1), {})
            before.pop(path, None)
            self.normed[path] = value.data_ptr()
            self.norms.setdefault(value.data_ptr(), {})[path] = value

    def preceded(self, path: str, given: Tensor) -> None:
        here = self.norms.get(given.data_ptr(), {})
        found = tuple(norm for norm, value in reversed(here.items()) if _same(value, given))
        known = self.seen.before.get(path)
        self.seen.before[path] = (
            found if known is None else tuple(norm for norm in known if norm in found)
        )

    # ------------------------------------------------------------ shared inputs

    def group(self, path: str, given: Tensor) -> None:
        parent, _, name = path.rpartition(".")
        group = self.groups.get(parent)
        if (
            group is not None
            and name not in group.members
            and _same(group.tensor, given)
            and group.version == version_of(given)
        ):
            group.members.append(name)
            return
        self.close(parent)
        self.groups[parent] = _Group(given, version_of(given), [name])

    def close(self, parent: str) -> None:
        group = self.groups.pop(parent, None)
        if group is not None:
            counts = self.seen.groups.setdefault(parent, {})
            members = tuple(group.members)
            counts[members] = counts.get(members, 0) + 1

    def close_groups(self) -> None:
        for parent in list(self.groups):
            self.close(parent)


class _Uses(TorchFunctionMode):
    """Sees every function that reads a weight while the weight's module is not running."""

    def __init__(self, tree: Tree, watcher: _Watcher) -> None:
        super().__init__()
        self.owner: dict[int, str] = {}
        for path, module in tree.modules.items():
            for value in module._parameters.values():
                if value is not None:
                    self.owner.setdefault(id(value), path)
        self.watcher = watcher

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", str(func))
        if name not in _READS_NO_VALUES:
            for value in (*args, *(kwargs or {}).values()):
                owner = self.owner.get(id(value)) if isinstance(value, nn.Parameter) else None
                if owner is not None and owner not in self.watcher.running:
                    at = self.watcher.running[-1] if self.watcher.running else "the caller"
                    self.watcher.seen.functional.setdefault(owner, f"{name} in {at or 'the model'}")
        return func(*args, **(kwargs or {}))


def _first(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tensor | None:
    given = args[0] if args else next(iter(kwargs.values()), None)
    return given if isinstance(given, Tensor) else None


def _shapes(value: Any) -> Any:
    """The shape of a tensor, a list of those of a tuple, None of anything else."""
    if isinstance(value, Tensor):
        return tuple(value.shape)
    if isinstance(value, tuple | list):
        return [_shapes(item) for item in value]
    return None


def _print(value: Any) -> Tensor:
    """What tells two results of a module apart: sums over its tensors and their ends."""
    rows = [
        torch.stack([flat.sum(), flat.square().sum(), flat[0], flat[-1]])
        for held in tree_leaves(value)
        if isinstance(held, Tensor) and held.is_floating_point() and held.numel()
        for flat in [held.detach().flatten().double()]
    ]
    return torch.stack(rows).cpu() if rows else torch.full((1,), torch.nan)


def _differ(prints: Sequence[Tensor]) -> bool:
    """Whether calls of a module gave different things; what holds no tensor is not known to
    give the same."""
    return len(prints) > 1 and not all(torch.equal(prints[0], other) for other in prints[1:])


def _named(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Shapes of the arguments of a call by name; none for modules without children, which
    take one tensor."""
    if not module._modules:
        return {}
    names = Signature.of(module).names
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    return {name: _shapes(value) for name, value in given.items()}


def _same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same numbers in the same place."""
    return a is b or (
        a.data_ptr() == b.data_ptr()
        and a.shape == b.shape
        and a.stride() == b.stride()
        and a.dtype == b.dtype
    )

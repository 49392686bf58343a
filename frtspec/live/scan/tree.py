"""A live model as the scan sees it: every module once, its kind, and what speaks against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from frtspec.live.scan.kinds import norm_of
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.facts import activation_of
from frtspec.runtime.hosts.weights import check_readable, describe_owner

PLAIN_LINEARS = (nn.Linear, NonDynamicallyQuantizableLinear)
"""Classes whose forward is exactly x @ w.T + b."""

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


@dataclass(frozen=True)
class Trouble:
    """Why a module can't be in a seat: a stable code and a sentence."""

    code: str
    text: str


@dataclass(frozen=True)
class Leaf:
    """A module (or plain function) of a known kind below a candidate.

    ``path`` is absolute; ``weights``: its parameters in the kind's order, None where it
    has none; ``facts``: what was told by value; ``number``: its eps.
    """

    path: str
    kind: str
    held: Any
    weights: tuple[Tensor | None, ...]
    names: tuple[str, ...]
    facts: frozenset[str] = frozenset()
    number: float | None = None

    def relative(self, base: str) -> str:
        return self.path[len(base) + 1 :] if base and self.path != base else self.path


@dataclass
class Tree:
    """``modules``: path -> module, each module under its first path only."""

    model: nn.Module
    modules: dict[str, nn.Module] = field(default_factory=dict)
    shared: dict[str, str] = field(default_factory=dict)
    _leaves: dict[str, Leaf | None] = field(default_factory=dict)
    _activations: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        first: dict[int, str] = {}
        for path, module in self.model.named_modules(remove_duplicate=False):
            if id(module) in first:
                self.shared[path] = first[id(module)]
            else:
                first[id(module)] = path
                self.modules[path] = module

    # ------------------------------------------------------------ parameters

    @cached_property
    def owners(self) -> Mapping[int, tuple[str, ...]]:
        """Parameter -> every place that holds it."""
        found: dict[int, list[str]] = {}
        for path, module in self.modules.items():
            for name, value in module._parameters.items():
                if value is not None:
                    found.setdefault(id(value), []).append(joined(path, name))
        return {key: tuple(paths) for key, paths in found.items()}

    def parameters_below(self, path: str) -> dict[str, Tensor]:
        """Absolute path -> parameter of a module and all below it."""
        module = self.modules[path]
        return {joined(path, name): value for name, value in module.named_parameters()}

    # ------------------------------------------------------------ troubles

    @cached_property
    def adapters(self) -> tuple[str, ...]:
        """Modules that put something around another one, such as LoRA on a Linear."""
        return tuple(
            path
            for path, module in self.modules.items()
            if "base_layer" in module._modules
            or {"original_module", "modules_to_save"} <= module._modules.keys()
        )

    @cached_property
    def twice(self) -> Mapping[str, tuple[str, ...]]:
        """Module -> the other places that hold it."""
        found: dict[str, list[str]] = {}
        for path, first in self.shared.items():
            found.setdefault(first, []).append(path)
        return {first: tuple(paths) for first, paths in found.items()}

    def trouble(self, path: str) -> Trouble | None:
        """Why the module at ``path`` itself can't be read or replaced."""
        module = self.modules[path]
        for outer in self.adapters:
            if path == outer or path.startswith(f"{outer}."):
                what = f"{outer} is wrapped by an adapter ({describe_owner(self.modules[outer])})"
                return Trouble("adapter", what)
        others = self.twice.get(path)
        if others and next(module.parameters(), None) is not None:
            return Trouble("shared", f"one module serves at {path} and {', '.join(others)}")
        if any(getattr(module, name, None) for name in _HOOKS):
            return Trouble(
                "hooked", f"it carries hooks ({_hook_names(module)}), which a seat skips"
            )
        if "forward" in module.__dict__ or hasattr(module, "_hf_hook"):
            return Trouble("replaced", "its forward was replaced on the instance")
        for name in [*module._parameters, *_computed_names(module)]:
            trouble = self._readable(path, module, name)
            if trouble is not None:
                return trouble
        if isinstance(module, nn.Linear) and type(module) not in PLAIN_LINEARS:
            return Trouble(
                "subclass",
                f"{describe_owner(module)} is a subclass of Linear with a forward of its own",
            )
        if _quantised_class(module):
            return Trouble("quantised", f"{describe_owner(module)} holds packed weights")
        return None

    def _readable(self, path: str, module: nn.Module, name: str) -> Trouble | None:
        value = getattr(module, name)
        if value is None:
            return None
        try:
            check_readable(nn.Module(), joined(path, name), module, name, value)
        except Refusal as refusal:
            return Trouble(refusal.code.removeprefix("host."), refusal.what)
        others = [p for p in self.owners.get(id(value), ()) if p != joined(path, name)]
        if others:
            what = f"{joined(path, name)} is tied to {', '.join(others)}: one tensor serves both"
            return Trouble("tied", what)
        return None

    def trouble_below(self, path: str) -> tuple[str, Trouble] | None:
        """The first module below ``path`` (itself included) with a trouble."""
        for name, module in self.modules[path].named_modules():
            at = joined(path, name)
            if at in self.modules:
                trouble = self.trouble(at)
                if trouble is not None:
                    return at, trouble
            elif any(p is not None for p in module._parameters.values()):
                return at, Trouble("shared", f"it is the same module as {self.shared[at]}")
        return None

    # ------------------------------------------------------------ kinds

    def leaf(self, path: str) -> Leaf | None:
        """What the module at ``path`` is, where it is of a kind that roles know."""
        if path not in self._leaves:
            self._leaves[path] = self._classified(path, self.modules[path])
        return self._leaves[path]

    def _classified(self, path: str, module: nn.Module) -> Leaf | None:
        own = list(module._parameters)
        if isinstance(module, nn.Linear):
            return Leaf(path, "linear", module, (module.weight, module.bias), ("weight", "bias"))
        if isinstance(module, _ConvNd):
            if not _whole_patches(module):
                return None
            return Leaf(path, "conv", module, (module.weight, module.bias), ("weight", "bias"))
        if module._modules and list(module.children()):
            return None
        if not own and not module._buffers:
            name = self.activation(module)
            return (
                None
                if name is None
                else Leaf(path, "activation", module, (), (), frozenset({name}))
            )
        norm = norm_of(module)
        if norm is None:
            return None
        names = ("weight", "bias") if norm.kind == "layer_norm" else ("weight",)
        weights = tuple(getattr(module, name, None) for name in names)
        return Leaf(path, norm.kind, module, weights, names, norm.facts, norm.eps)

    def activation(self, held: Callable[..., Any]) -> str | None:
        """The name of what an elementwise function computes; None where it is none known."""
        key = id(held)
        if key not in self._activations:
            try:
                self._activations[key] = activation_of(held)
            except Exception as error:  # noqa: BLE001 - a host's own code, run on what it never sees
                self._activations[key] = f"{type(held).__name__} ({type(error).__name__})"
        found = self._activations[key]
        return found if found.isidentifier() else None

    def told(self, held: Callable[..., Any]) -> str:
        """What ``activation`` found, in words where it is no known function."""
        self.activation(held)
        return self._activations[id(held)]

    def functions(self, path: str) -> Iterator[tuple[str, Callable[..., Any]]]:
        """Plain functions that a module holds as attributes: (absolute path, function)."""
        for name, value in self.modules[path].__dict__.items():
            if callable(value) and not isinstance(value, type) and not name.startswith("_"):
                yield joined(path, name), value


def joined(path: str, name: str) -> str:
    """``a.b`` and ``c`` as ``a.b.c``; either may be empty."""
    return f"{path}.{name}" if path and name else path or name


def _hook_names(module: nn.Module) -> str:
    hooks = [hook for name in _HOOKS for hook in getattr(module, name, {}).values()]
    return ", ".join(getattr(hook, "__qualname__", type(hook).__name__) for hook in hooks)


def _computed_names(module: nn.Module) -> list[str]:
    """Weights that are no parameters of their module: parametrised, packed."""
    return [
        name
        for name in ("weight", "bias")
        if name not in module._parameters and isinstance(getattr(module, name, None), Tensor)
    ]


def _quantised_class(module: nn.Module) -> bool:
    home = type(module).__module__
    return home.startswith(("torch.ao.nn.quantized", "bitsandbytes", "torchao"))


def _whole_patches(conv: _ConvNd) -> bool:
    """Whether a convolution is one product over patches that don't overlap."""
    return (
        tuple(conv.kernel_size) == tuple(conv.stride)
        and not any(p != 0 for p in conv.padding)
        and all(d == 1 for d in conv.dilation)
        and conv.groups == 1
        and not conv.transposed
    )


def device_of(module: nn.Module) -> torch.device:
    """Where the first parameter of a module is."""
    near = next(module.parameters(), None)
    return torch.device("cpu") if near is None else near.device

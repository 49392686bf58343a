"""A live host: is it the one the binding is for, where are its modules, its weights.

Everything here reads. Tensors that go out are detached views of the host's own
parameters: nothing is copied and no gradient history starts.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib.metadata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from packaging.specifiers import SpecifierSet
from torch import Tensor, nn

from frtspec.dims import DimError, Shape, solve
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.standing import wrapped
from frtspec.runtime.hosts.weights import check_readable, describe_owner
from frtspec.runtime.spec import RUNTIME_ABI, HostBinding, Seat, Weight

T = TypeVar("T")

SlotValue = Tensor | tuple[Tensor, ...]

# ---------------------------------------------------------------- config expressions


def get(config: Any, *names: str) -> Any:
    """``config.a.b`` for ``get(config, "a", "b")``; None where a field is absent or None."""
    value = config
    for name in names:
        if value is None:
            return None
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return value


def first(value: T | None, otherwise: Callable[[], T]) -> T:
    """``value`` unless it is None, else ``otherwise()``."""
    return otherwise() if value is None else value


def exact_div(top: int, bottom: int) -> int:
    """``top / bottom`` where it is whole. Raises Refusal ``host.config`` otherwise."""
    if bottom == 0 or top % bottom:
        raise Refusal(
            "host.config",
            f"{top} / {bottom} is not a whole number",
            fix="check the sizes in the host's config; the binding divides them exactly",
        )
    return top // bottom


# ---------------------------------------------------------------- the host itself

_WRAPPERS: Mapping[str, str] = {
    "OptimizedModule": "model._orig_mod, and compile after attaching",
    "DistributedDataParallel": "model.module",
    "DataParallel": "model.module",
    "FullyShardedDataParallel": "the model before it is sharded",
    "PeftModel": "model.get_base_model(), or merge the adapters first with model.merge_and_unload()",
}


def check_host(binding: HostBinding, model: nn.Module) -> HostBinding:
    """The binding with the host that ``model`` is of first.

    Raises Refusal ``host.abi``, ``spec.imported``, ``host.native``, ``host.wrapped``,
    ``host.class``, ``host.package`` or ``host.version``, each with what was wanted and what
    was found.
    """
    if binding.runtime_abi != RUNTIME_ABI:
        raise Refusal(
            "host.abi",
            f"binding {binding.name} was generated for runtime ABI {binding.runtime_abi}; "
            f"this is ABI {RUNTIME_ABI}",
            fix="run `frtspec gen` again with the installed frtspec",
        )
    if binding.imported is not None:
        raise Refusal(
            "spec.imported",
            f"binding {binding.name} was imported and not verified: {binding.imported}",
            fix="verify it, then say `status draft` in its spec and generate again",
        )
    _check_native(binding)
    lineage = [cls.__name__ for cls in type(model).__mro__]
    for wrapper, instead in _WRAPPERS.items():
        if wrapper in lineage:
            raise Refusal(
                "host.wrapped",
                f"the model is wrapped in {type(model).__name__}; binding {binding.name} is for "
                f"{' or '.join(binding.classes)} itself",
                fix=f"pass {instead}",
            )
    of = [host for host in binding.hosts if set(lineage) & set(host.classes)]
    if not of:
        raise Refusal(
            "host.class",
            f"binding {binding.name} is for {' or '.join(binding.classes)}; "
            f"this model is a {type(model).__name__}",
            fix="use the binding for this class, or pass the part of the model that is one",
        )
    others = tuple(host for host in binding.hosts if host is not of[0])
    narrowed = dataclasses.replace(binding, hosts=(of[0], *others))
    _check_version(narrowed)
    return narrowed


def _check_native(binding: HostBinding) -> None:
    if not binding.classes:
        modules = ", ".join(f"{h.package} ({h.module})" for h in binding.hosts)
        raise Refusal(
            "host.native",
            f"binding {binding.name} describes implementations of their own, no model that "
            f"could be attached to: {modules}",
            fix="call the native module itself; a binding with `class …` is for a model",
        )


def _check_version(binding: HostBinding) -> None:
    if binding.versions is None:
        return
    wanted = f"{binding.package}{binding.versions}"
    try:
        found = importlib.metadata.version(binding.package)
    except importlib.metadata.PackageNotFoundError:
        raise Refusal(
            "host.package",
            f"binding {binding.name} is for {wanted}; {binding.package} is not installed",
            fix=f"pip install '{wanted}'",
        ) from None
    if not SpecifierSet(binding.versions).contains(found, prereleases=True):
        raise Refusal(
            "host.version",
            f"binding {binding.name} is for {wanted}; {binding.package} {found} is installed",
            fix=f"install {wanted}, or use a binding for {found}: module paths and call "
            "conventions move between versions",
        )


# ---------------------------------------------------------------- modules


def submodule(model: nn.Module, path: str) -> nn.Module:
    """The module at ``path``. Raises Refusal ``host.path`` that names the nearest paths."""
    module = model
    walked: list[str] = []
    for name in path.split(".") if path else []:
        child = module._modules.get(name)
        if child is None:
            raise _no_module(model, path, ".".join(walked), module, name)
        walked.append(name)
        module = child
    return module


def _no_module(model: nn.Module, path: str, at: str, parent: nn.Module, name: str) -> Refusal:
    around = wrapped(at, parent)
    if around is not None:
        return Refusal(
            "host.wrapped",
            f"no module {path}: {around}",
            fix="attach to the model before it is wrapped or compiled",
        )
    children = list(parent._modules)
    holds = f"it holds {', '.join(children)}" if children else "it holds no modules"
    near = nearest(path, (found for found, _ in model.named_modules() if found))
    return Refusal(
        "host.path",
        f"no module {path}: {at or 'the model'} ({type(parent).__name__}) has no {name}; {holds}",
        fix="use a binding for this version of the host"
        + (f"; nearest: {', '.join(near)}" if near else ""),
    )


def nearest(path: str, paths: Iterable[str], count: int = 3) -> list[str]:
    """The paths most like ``path``; those that end alike come first."""
    tail = path.rpartition(".")[2]

    def likeness(found: str) -> tuple[bool, float]:
        ratio = difflib.SequenceMatcher(None, path, found, autojunk=False).ratio()
        return found.rpartition(".")[2] == tail, ratio

    ranked = sorted(((likeness(found), found) for found in paths), key=lambda row: row[0])
    return [found for (_, ratio), found in reversed(ranked[-count:]) if ratio > 0.5]


def seat_modules(model: nn.Module, seat: Seat) -> dict[str, nn.Module]:
    """The modules that a seat replaces, by path: one, or each of its siblings."""
    paths = seat.siblings.members if seat.siblings else (seat.path,)
    return {path: submodule(model, path) for path in paths}


# ---------------------------------------------------------------- weights


def seat_weights(model: nn.Module, seat: Seat) -> dict[str, SlotValue]:
    """The seat's slots: matrices in_out, detached, sharing the host's memory.

    An optional weight that the host has not (a bias that is None) is left out. Raises
    Refusal ``host.*`` with the parameter's path when a weight can't be read as it
    stands (offloaded, meta, quantised, tied, adapter-wrapped …) or has other sizes
    than the structure and the seat's dims allow.
    """
    return _read_slots(model, seat, seat.slots)


def boundary_weights(model: nn.Module, seat: Seat) -> dict[str, Tensor]:
    """The slots that only the boundary's reference needs; as ``seat_weights``."""
    slots = seat.boundary.slots if seat.boundary else {}
    read = _read_slots(model, seat, slots)
    return {name: value for name, value in read.items() if isinstance(value, Tensor)}


def _read_slots(
    model: nn.Module, seat: Seat, slots: Mapping[str, Weight | tuple[Weight, ...]]
) -> dict[str, SlotValue]:
    read: dict[str, SlotValue] = {}
    for name, weight in slots.items():
        if isinstance(weight, Weight):
            value = read_weight(model, seat, weight, slot=name)
            if value is not None:
                read[name] = value
            elif name not in seat.structure.optional:
                raise _absent(seat, name, [weight])
            continue
        several = [read_weight(model, seat, item, slot=name) for item in weight]
        present = tuple(value for value in several if value is not None)
        absent = [w for w, v in zip(weight, several, strict=True) if v is None]
        if absent and (present or name not in seat.structure.optional):
            raise _absent(seat, name, absent)
        if present:
            read[name] = present
    solved_dims(seat, read)
    return read


def _absent(seat: Seat, slot: str, weights: Sequence[Weight]) -> Refusal:
    paths = ", ".join(str(weight.path) for weight in weights)
    return Refusal(
        "host.weight",
        f"slot {slot} is None at {paths}, and {seat.structure.key} needs it there",
        fix="this host's module has no such weight: leave this seat out",
        seat=seat.name,
    )


def read_weight(model: nn.Module, seat: Seat, weight: Weight, *, slot: str) -> Tensor | None:
    """One weight slot, in_out and detached; None where the host's parameter is None."""
    if weight.path is None:
        return _made(model, seat, weight, slot)
    value = parameter(model, weight.path, seat=seat.name)
    if value is None:
        return None
    return _viewed(value.detach(), weight, seat)


def parameter(model: nn.Module, path: str, *, seat: str | None = None) -> Tensor | None:
    """The tensor at a parameter path as the host holds it; None where it is None."""
    owner_path, _, name = path.rpartition(".")
    owner = submodule(model, owner_path)
    if name not in owner._parameters and name not in owner._buffers and not hasattr(owner, name):
        known = [*owner._parameters, *owner._buffers]
        raise Refusal(
            "host.weight",
            f"{owner_path or 'the model'} ({describe_owner(owner)}) has no parameter {name}; "
            f"it has {', '.join(known) or 'none'}",
            fix="use a binding for this version of the host",
            seat=seat,
        )
    value = getattr(owner, name)
    if value is None:
        return None
    check_readable(model, path, owner, name, value, seat=seat)
    checked: Tensor = value
    return checked


def _made(model: nn.Module, seat: Seat, weight: Weight, slot: str) -> Tensor:
    """``zeros`` and ``ones``: of the slot's shape, in the host's dtype and place."""
    shape = [axis.alternatives[0].value(seat.dims) for axis in seat.structure.shapes[slot]]
    like = next(iter(seat_modules(model, seat).values()))
    near = next(like.parameters(), None)
    if near is None:
        near = next(model.parameters())
    fill = 1.0 if weight.view == "ones" else 0.0
    return torch.full(shape, fill, dtype=near.dtype, device=near.device)


def _viewed(value: Tensor, weight: Weight, seat: Seat) -> Tensor:
    view = VIEWS.get(weight.view)
    if view is None:
        raise Refusal(
            "host.view",
            f"unknown view {weight.view} of {weight.path}",
            fix="run `frtspec gen` again with the installed frtspec",
            seat=seat.name,
        )
    try:
        value = view(value, weight)
    except (IndexError, RuntimeError, ValueError) as error:
        raise Refusal(
            "host.view",
            f"{weight.path} of shape {list(value.shape)} has no {weight.view} "
            f"{', '.join(map(str, weight.args))}: {error}",
            fix="this host stores the weight in another way: leave this seat out",
            seat=seat.name,
        ) from None
    return value.mT if weight.layout == "out_in" else value


def _axis(weight: Weight) -> int:
    """The axis of a parameter that parts lie along: that of the outputs."""
    return -1 if weight.layout == "in_out" else 0


def _chunk(value: Tensor, weight: Weight) -> Tensor:
    wanted, *names = weight.args
    return _equal_part(value, _axis(weight), names.index(wanted), len(names))


def _equal_part(value: Tensor, axis: int, which: int, count: int) -> Tensor:
    if value.shape[axis] % count:
        raise ValueError(f"{value.shape[axis]} is no multiple of {count}")
    return value.chunk(count, dim=axis)[which]


def _squeezed(value: Tensor, weight: Weight) -> Tensor:
    if value.shape[0] != 1:
        raise ValueError(f"its leading axis has {value.shape[0]} entries, not one")
    return value.squeeze(0)


VIEWS: Mapping[str, Callable[[Tensor, Weight], Tensor]] = {
    "param": lambda value, weight: value,
    "transpose": lambda value, weight: value.mT,
    "expert": lambda value, weight: value[int(weight.args[0])],
    "chunks": _chunk,
    "part": lambda value, weight: _equal_part(value, _axis(weight), *map(int, weight.args)),
    "flat": lambda value, weight: value.flatten(1),
    "squeeze": _squeezed,
}
"""Weight views of a parameter; ``zeros`` and ``ones`` are made without one."""


def solved_dims(seat: Seat, read: Mapping[str, SlotValue]) -> dict[str, int]:
    """The structure's dims on this host: the seat's own, and what its weights fix.

    Raises Refusal ``host.shape`` where a weight has another size than they allow.
    """
    shapes: dict[str, Shape] = {
        name: seat.structure.shapes[name] for name in read if name in seat.structure.shapes
    }
    actual = {
        name: (
            tuple(value.shape)
            if isinstance(value, Tensor)
            else [tuple(item.shape) for item in value]
        )
        for name, value in read.items()
        if name in shapes
    }
    try:
        return dict(solve(shapes, actual, seat.dims).values)
    except DimError as error:
        raise Refusal(
            "host.shape",
            str(error),
            fix="the binding's dims or layouts do not fit this host; layouts are shown as in_out",
            seat=seat.name,
        ) from None

"""Whether a reference, or what runs in its place, gives what its structure declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from frtspec.dims import Shape, instance
from frtspec.runtime.dtypes import DTYPES, NAMES
from frtspec.runtime.gating.reference import named
from frtspec.runtime.gating.synthetic import InnerCase, Synthetic, Value
from frtspec.runtime.spec import StructureSpec


def arguments(
    given: Synthetic,
    variants: Mapping[str, str],
    params: Mapping[str, float],
    inner: Mapping[str, InnerCase],
    dtype: torch.dtype,
) -> dict[str, Any]:
    """Everything that the reference of a case takes, by keyword."""
    spec = given.spec
    return {
        **dict(given.values(spec.inputs, dtype, weights=False)),
        **given.wires(),
        **dict(given.values(spec.slots, dtype, weights=True)),
        **given.groups(inner, dtype),
        **given.parts(dtype),
        **{name: given.sizes[dim] for name, dim in spec.sizes.items()},
        **variants,
        **params,
    }


def problems(
    given: Synthetic,
    variants: Mapping[str, str],
    params: Mapping[str, float],
    inner: Mapping[str, InnerCase],
    dtype: torch.dtype,
) -> list[str]:
    """What is wrong with what the reference of a case gives."""
    spec = given.spec
    calls = arguments(given, variants, params, inner, dtype)
    before = {name: _copy(calls[name]) for name in spec.inputs if name in calls}
    result = spec.reference(**calls)
    found = [*_declared(given, result)]
    for name, copy in before.items():
        if not _equal(calls[name], copy):
            found.append(f"the reference changed its input {name}")
    return found + shared(spec, calls, result)


def shared(spec: StructureSpec, given: Mapping[str, Any], result: Any) -> list[str]:
    """Outputs that are not the storage of the input that they are declared to be."""
    outputs = named(spec.outputs, result)
    wrong = []
    for output, source in spec.aliases.items():
        value, owner = outputs.get(output), given.get(source)
        if isinstance(value, Tensor) and isinstance(owner, Tensor) and not _one(value, owner):
            wrong.append(f"{output} is not the storage of {source}")
    return wrong


def decoded(spec: StructureSpec, result: Any, scales: Mapping[str, float]) -> Any:
    """A result with the codes of its wires as numbers: codes times their scale."""
    if not any(name in spec.wires for name in spec.outputs):
        return result
    outputs = named(spec.outputs, result)
    for name, wire in spec.wires.items():
        if isinstance(outputs.get(name), Tensor):
            outputs[name] = outputs[name].float() * scales[wire.scale]
    values = tuple(outputs.values())
    return values[0] if len(values) == 1 else values


def _declared(given: Synthetic, result: Any) -> Iterator[str]:
    """Shapes and dtypes against the spec; not a number."""
    spec = given.spec
    outputs: dict[str, Any] = dict(named(spec.outputs, result))
    for name, value in outputs.items():
        if value is None:
            continue
        head, _, index = name.partition("[")
        shape = spec.shapes[head]
        items: list[Any] = list(value) if isinstance(value, list | tuple) else [value]
        if index or isinstance(value, list | tuple):
            start = int(index.rstrip("]")) if index else 0
            shapes = [instance(shape, start + k) for k in range(len(items))]
        else:
            shapes = [shape]
        for item, wanted in zip(items, shapes, strict=True):
            if not _fits(given, item, wanted):
                axes = ", ".join(map(str, wanted))
                yield f"{name} is {tuple(item.shape)}, not [{axes}]"
            own = spec.dtypes.get(head)
            if own is not None and item.dtype != DTYPES[own]:
                yield f"{name} is {NAMES.get(item.dtype, item.dtype)}, not {own}"
            if not bool(item.float().isfinite().all()):
                yield f"{name} holds a NaN or an Inf"


def _fits(given: Synthetic, value: Tensor, shape: Shape) -> bool:
    sizes = list(value.shape)
    if len(sizes) != len(shape):
        return False
    return all(
        not axis.alternatives or size in [a.value(given.sizes) for a in axis.alternatives]
        for size, axis in zip(sizes, shape, strict=True)
    )


def _one(value: Tensor, owner: Tensor) -> bool:
    """Whether two tensors are one storage, read the same way."""
    same = value.untyped_storage().data_ptr() == owner.untyped_storage().data_ptr()
    return same and value.shape == owner.shape and value.stride() == owner.stride()


def _copy(value: Value) -> Value:
    return value.clone() if isinstance(value, Tensor) else [item.clone() for item in value]


def _equal(a: Value, b: Value) -> bool:
    left, right = ([v] if isinstance(v, Tensor) else v for v in (a, b))
    return all(
        torch.equal(
            x.float() if x.is_floating_point() else x, y.float() if y.is_floating_point() else y
        )
        for x, y in zip(left, right, strict=True)
    )

"""What is in a window or buffer: its tensors, their bits and where they lie."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from frtspec.runtime.errors import Refusal

PLAIN = (bool, int, float, str, bytes, type(None))


@dataclass(frozen=True)
class Print:
    """The content of a value: ``bits`` is a sha256, ``shapes`` and ``places`` one row a
    tensor. An absent value has no tensors and the bits of None."""

    bits: str
    shapes: tuple[tuple[tuple[int, ...], str, str], ...]
    places: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def absent(self) -> bool:
        return self.bits == ABSENT

    def same_storage(self, other: Print) -> bool:
        return self.shapes == other.shapes and self.places == other.places


ABSENT = hashlib.sha256(b"None").hexdigest()


def leaves(name: str, value: Any) -> Iterator[Any]:
    """The tensors and plain values in a value, in order: of containers, and of what a
    function returns that is called for them anew each time.

    Raises Refusal ``trace.value`` for what it cannot look into.
    """
    if isinstance(value, (Tensor, *PLAIN)):
        yield value
    elif callable(value) and not isinstance(value, type):
        yield from leaves(name, value())
    elif isinstance(value, Mapping):
        for key in value:
            yield str(key)
            yield from leaves(name, value[key])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(name, item)
    else:
        raise Refusal(
            "trace.value",
            f"{name} is a {type(value).__name__}, which holds its tensors in its own way",
            fix=f"hand in a function that returns them: {{{name!r}: lambda: [cache.keys, …]}}",
        )


def tensors(name: str, value: Any) -> list[Tensor]:
    return [leaf for leaf in leaves(name, value) if isinstance(leaf, Tensor)]


def fingerprint(name: str, value: Any) -> Print:
    """The content of a value now; tensors on a device are read back."""
    found = list(leaves(name, value))
    if found == [None]:
        return Print(ABSENT, (), ())
    digest = hashlib.sha256()
    shapes = []
    places = []
    for leaf in found:
        if not isinstance(leaf, Tensor):
            digest.update(f"{type(leaf).__name__} {leaf!r}\0".encode())
            continue
        leaf = leaf.detach()
        shapes.append((tuple(leaf.shape), str(leaf.dtype), str(leaf.device)))
        places.append((leaf.data_ptr(), tuple(leaf.stride())))
        digest.update(f"{shapes[-1]}\0".encode())
        digest.update(_bytes(leaf))
    return Print(digest.hexdigest(), tuple(shapes), tuple(places))


def _bytes(value: Tensor) -> bytes:
    """The bits of a tensor, row by row. Sub-byte and quantised tensors as stored."""
    flat = value.contiguous().reshape(-1)
    if flat.numel() == 0:
        return b""
    return flat.view(torch.uint8).cpu().numpy().tobytes()


def kept(name: str, value: Any) -> list[Any]:
    """A copy of what is in a value that no later stage can write to."""
    return [
        leaf.detach().clone() if isinstance(leaf, Tensor) else leaf for leaf in leaves(name, value)
    ]


def restore(name: str, value: Any, content: list[Any]) -> bool:
    """Write kept content back into the value's tensors; False where they no longer fit."""
    now = tensors(name, value)
    then = [leaf for leaf in content if isinstance(leaf, Tensor)]
    if [t.shape for t in now] != [t.shape for t in then]:
        return False
    with torch.no_grad():
        for target, source in zip(now, then, strict=True):
            target.copy_(source)
    return True

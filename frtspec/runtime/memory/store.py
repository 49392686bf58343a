"""Where the host's own weights lie while their seats run on packs.

A weight that a checkpoint file holds bit for bit is read back from there; every other one
is kept in host memory, pinned where it came from a GPU.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from frtspec.runtime.errors import Refusal

SUFFIX = ".safetensors"


class Stored(Protocol):
    """One weight that was put away. ``where``: checkpoint, host memory or resident."""

    @property
    def where(self) -> str: ...

    @property
    def nbytes(self) -> int: ...

    def fetch(self) -> Tensor:
        """The weight on its device, every bit as it was. Raises Refusal ``memory.*``."""


@dataclass(frozen=True)
class Resident:
    """A weight that stays where it is: already in host memory, and in no checkpoint."""

    value: Tensor
    where: str = "resident"

    @property
    def nbytes(self) -> int:
        return self.value.nbytes

    def fetch(self) -> Tensor:
        return self.value


@dataclass(frozen=True)
class InMemory:
    """A copy in host memory of a weight that was on ``device``."""

    copy: Tensor
    device: torch.device
    where: str = "host memory"

    @property
    def nbytes(self) -> int:
        return self.copy.nbytes

    def fetch(self) -> Tensor:
        return self.copy.to(self.device)


@dataclass(frozen=True)
class InFile:
    """A weight of a checkpoint file that holds just these bits, in this dtype or another that
    gives them."""

    file: Path
    key: str
    dtype: torch.dtype
    device: torch.device
    digest: str
    nbytes: int
    where: str = "checkpoint"

    def fetch(self) -> Tensor:
        try:
            value = _read(self.file, self.key, self.dtype)
        except (OSError, ValueError, RuntimeError) as error:
            raise self._gone(f"can't be read: {error}") from error
        if value is None or bits(value) != self.digest:
            raise self._gone("holds other bits than when the weight was put away")
        return value.to(self.device)

    def _gone(self, what: str) -> Refusal:
        return Refusal(
            "memory.checkpoint",
            f"{self.key} in {self.file} {what}",
            fix="put the checkpoint back as it was: the model's own weights lie there",
        )


class WeightStore:
    """Puts weights away and gives them back.

    checkpoint   a `.safetensors` file or a folder of them; None: host memory alone

    Raises Refusal ``option.checkpoint`` where there is no such file.
    """

    def __init__(self, checkpoint: str | os.PathLike[str] | None = None) -> None:
        self._files = () if checkpoint is None else _files(Path(checkpoint))
        self._keys = list(_keys(self._files))

    def put(self, name: str, value: Tensor) -> Stored:
        """Where a weight, called ``name`` on the model, can be had again; it is not touched."""
        found = self._in_file(name, value)
        if found is not None:
            return found
        if value.device.type == "cpu":
            return Resident(value)
        copy = torch.empty(value.shape, dtype=value.dtype, pin_memory=value.is_cuda)
        copy.copy_(value)
        return InMemory(copy, value.device)

    def _in_file(self, name: str, value: Tensor) -> InFile | None:
        wanted: str | None = None
        for file, key in self._keys:
            if not _same_name(key, name):
                continue
            held = _read(file, key, value.dtype, tuple(value.shape))
            if held is None:
                continue
            wanted = wanted or bits(value)
            if bits(held) == wanted:
                return InFile(file, key, value.dtype, value.device, wanted, value.nbytes)
        return None


def bits(value: Tensor) -> str:
    """sha256 of a tensor's bytes, row-major."""
    flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return hashlib.sha256(flat.numpy().data).hexdigest()


def _files(path: Path) -> tuple[Path, ...]:
    found = tuple(sorted(path.glob(f"*{SUFFIX}"))) if path.is_dir() else (path,)
    if not found or not all(file.is_file() and file.suffix == SUFFIX for file in found):
        raise Refusal(
            "option.checkpoint",
            f"checkpoint={str(path)!r} is no {SUFFIX} file, and no folder that holds one",
            fix="pass the file or the folder that the model was loaded from",
        )
    return tuple(file.resolve() for file in found)


def _keys(files: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    from safetensors import SafetensorError, safe_open

    for file in files:
        try:
            with safe_open(file, framework="pt") as held:
                yield from ((file, key) for key in held.keys())  # noqa: SIM118 - no mapping
        except SafetensorError as error:
            raise Refusal(
                "option.checkpoint",
                f"{file.name} can't be read as safetensors: {error}",
                fix="pass the file or the folder that the model was loaded from",
            ) from error


def _read(
    file: Path, key: str, dtype: torch.dtype, shape: tuple[int, ...] | None = None
) -> Tensor | None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as held:
            if shape is not None and tuple(held.get_slice(key).get_shape()) != shape:
                return None
            value: Tensor = held.get_tensor(key).to(dtype)
            return value
    except SafetensorError as error:
        raise ValueError(str(error)) from error


def _same_name(key: str, name: str) -> bool:
    """Checkpoints and models differ in what stands before: ``model.layers…``, ``layers…``."""
    return key == name or name.endswith(f".{key}") or key.endswith(f".{name}")

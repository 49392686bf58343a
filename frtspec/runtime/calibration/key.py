"""What a saved calibration belongs to: weights, host, specs, seats, dtype.

Statistics hold for exactly these. Each is a field of the key, so that a refusal can name
the one that differs.
"""

from __future__ import annotations

import hashlib
import json
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.runtime.environment import version
from frtspec.runtime.errors import Refusal
from frtspec.runtime.spec import HostBinding, SchemeSpec, Seat

SLICE = 1 << 24
"""Bytes of a tensor that are hashed at a time."""


@dataclass(frozen=True)
class Key:
    """The identity of a calibration; all fields are text.

    weights          sha256 over every parameter and persistent buffer, whole
    host             the model's class, with its module
    package          the host's package and its installed version
    binding, scheme  name and contract digest
    structures       digest over the contracts of every structure with a seat
    impls            digest over the contracts of the impls that the scheme uses there
    seats            digest over the seats: names, paths, variants, params, sizes, points
    dtype            the dtypes of the parameters
    """

    weights: str
    host: str
    package: str
    binding: str
    scheme: str
    structures: str
    impls: str
    seats: str
    dtype: str

    @staticmethod
    def of(
        model: nn.Module, binding: HostBinding, scheme: SchemeSpec, seats: Sequence[Seat]
    ) -> Key:
        """The key of a live host. Raises Refusal ``calibration.weights`` where a weight has
        no data in this process."""
        structures = {f"{s.structure.key}": s.structure.contract_digest for s in seats}
        impls = {}
        for seat in seats:
            structure = seat.structure
            route = scheme.route(structure.name, seat.seam, structure.version, seat.variants)
            if route.impl is not None:
                spec = route.impl.SPEC
                impls[f"{spec.name} {seat.target}"] = spec.contract_digest
        return Key(
            weights=weights_digest(model),
            host=f"{type(model).__module__}.{type(model).__qualname__}",
            package=f"{binding.package} {version(binding.package) or 'not installed'}",
            binding=f"{binding.name} {binding.contract_digest}",
            scheme=f"{scheme.name} {scheme.contract_digest}",
            structures=_digest(structures),
            impls=_digest(impls),
            seats=_digest([_facts(seat) for seat in seats]),
            dtype="+".join(sorted({str(p.dtype).removeprefix("torch.") for p in _floating(model)})),
        )

    @staticmethod
    def read(found: Mapping[str, str]) -> Key:
        return Key(**found)

    def to_json(self) -> dict[str, str]:
        return asdict(self)

    @property
    def digest(self) -> str:
        return _digest(self.to_json())

    def differing(self, other: Key) -> list[tuple[str, str, str]]:
        """Field, this one's value, the other's, wherever they differ."""
        pairs = [(f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        return [row for row in pairs if row[1] != row[2]]


FIXES = {
    "weights": "these are other weights: calibrate on them",
    "host": "calibrate on this host",
    "package": "calibrate with the installed version, or install the one it was made with",
    "binding": "the binding changed since: calibrate again",
    "scheme": "pass the scheme that it was made for, or calibrate again",
    "structures": "a structure's contract changed since: calibrate again",
    "impls": "an impl's contract changed since: calibrate again",
    "seats": "the model gives other seats (sizes, layers or options differ): calibrate on it",
    "dtype": "load the model in the dtype that it was made in, or calibrate again",
}
"""What to do where a field differs."""


def require_same(saved: Key, here: Key, *, what: str, other: str = "here") -> None:
    """Raises Refusal ``calibration.key`` with every field that differs, both values told."""
    rows = saved.differing(here)
    if rows:
        told = "; ".join(
            f"{name} is {mine} there and {theirs} {other}" for name, mine, theirs in rows
        )
        raise Refusal(
            "calibration.key",
            f"{what} was made for something else: {told}",
            fix="; ".join(FIXES[name] for name, _, _ in rows),
            shape={"differs": "+".join(name for name, _, _ in rows)},
        )


def _facts(seat: Seat) -> dict[str, Any]:
    return {
        **seat.facts(),
        "points": {point: str(place) for point, place in seat.points.items()},
    }


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


# ---------------------------------------------------------------- weights


@dataclass(frozen=True)
class _Known:
    """A tensor's digest and the marks under which it still holds."""

    tensor: weakref.ref[Tensor]
    marks: tuple[Any, ...]
    digest: str


_known: dict[int, _Known] = {}


def weights_digest(model: nn.Module) -> str:
    """sha256 over the names, shapes, dtypes and bytes of every parameter and persistent
    buffer.

    Streamed: no more than ``SLICE`` bytes of a tensor are copied at a time. Digests are
    remembered by tensor; one that carries the same version and the same checksum over its
    bits is not hashed again. Raises Refusal ``calibration.weights`` for a weight whose
    data is not here.
    """
    whole = hashlib.sha256()
    seen: dict[int, str] = {}
    for name, value in _tensors(model):
        if value.is_meta or type(value).__name__ == "DTensor":
            where = "on the meta device" if value.is_meta else "sharded over processes"
            raise Refusal(
                "calibration.weights",
                f"{name} is {where}: its bytes can't be told apart from those of another checkpoint",
                fix="load the whole weights before calibrating",
            )
        if id(value) not in seen:
            seen[id(value)] = _tensor_digest(value)
        whole.update(f"{name}\0{value.dtype}\0{tuple(value.shape)}\0{seen[id(value)]}\n".encode())
    return whole.hexdigest()


def _tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Everything that a checkpoint holds, by name, ties included. Modules that stand in for
    the host's give the same names and tensors."""
    for name, value in sorted(model.state_dict(keep_vars=True).items()):
        if isinstance(value, Tensor):
            yield name, value


def _floating(model: nn.Module) -> Iterator[Tensor]:
    return (p for p in model.parameters() if p.is_floating_point())


def _tensor_digest(value: Tensor) -> str:
    known = _known.get(id(value))
    marks = (value.data_ptr(), None if value.is_inference() else value._version, *_sums(value))
    if known is not None and known.tensor() is value and known.marks == marks:
        return known.digest
    digest = hashlib.sha256()
    for part in _slices(value):
        digest.update(part.cpu().numpy().data)
    found = digest.hexdigest()
    number = id(value)
    _known[number] = _Known(weakref.ref(value, lambda _: _forget(number)), marks, found)
    return found


def _forget(number: int) -> None:
    _known.pop(number, None)


def _slices(value: Tensor) -> Iterator[Tensor]:
    """The tensor's bytes, slice by slice."""
    flat = value.detach().contiguous().reshape(-1).view(torch.uint8)
    for start in range(0, flat.numel(), SLICE):
        yield flat[start : start + SLICE]


_COLUMNS = 8191


def _sums(value: Tensor) -> tuple[int, ...]:
    """Sums over the bits by column and by row, each weighted by its place: any one edit and
    any exchange shows, those made through ``.data`` too, at the pace of reading the memory."""
    flat = value.detach().contiguous().reshape(-1).view(torch.uint8)
    if flat.storage_offset() % 8:  # can't be read as words where it lies
        flat = flat.clone()
    words, rest = flat[: flat.numel() // 8 * 8].view(torch.int64), flat[flat.numel() // 8 * 8 :]
    rows = words.numel() // _COLUMNS
    table, tail = words[: rows * _COLUMNS].view(rows, _COLUMNS), words[rows * _COLUMNS :]
    parts = (table.sum(0), table.sum(1), tail, rest.long())
    return tuple(int((part * _places(part)).sum()) for part in parts)


def _places(part: Tensor) -> Tensor:
    return torch.arange(1, part.numel() + 1, device=part.device)

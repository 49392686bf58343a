"""The precision each seat really runs at, point by point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from frtspec.runtime.coverage import weight_paths
from frtspec.runtime.impl import BoundImpl
from frtspec.runtime.records import Calibration, SeatRecord
from frtspec.runtime.spec import ScaleSpec

FORMATS = {
    torch.float8_e4m3fn: "fp8_e4m3",
    torch.float8_e5m2: "fp8_e5m2",
    torch.int8: "int8",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.float32: "f32",
    torch.float64: "f64",
}
"""torch dtypes under the names that specs use."""


Inventory = Mapping[str, tuple[int, torch.dtype]]


def precision_spec(
    parameters: Inventory, records: Sequence[SeatRecord], calibration: Calibration | None
) -> dict[str, Any]:
    """seat -> {"packs": {pack: …}, "points": {point: …}}.

    A pack has dtype, granularity and scale. A point has dtype, granularity, scale (a
    list, float32 steps), method, samples and percentile; what runs at the host's
    precision says so with the host's dtype and the method ``host``.
    """
    return {record.name: _seat(parameters, record, calibration) for record in records}


def _seat(
    parameters: Inventory, record: SeatRecord, calibration: Calibration | None
) -> dict[str, Any]:
    points = {point: _at_host(parameters, record) for point in record.seat.points}
    if record.state != "bound" or record.bound is None:
        return {"packs": {}, "points": points}
    impl = record.bound.impl
    packs = {name: _pack(impl, name) for name in packed(impl)}
    for name, scale in impl.SPEC.scales.items():
        points[scale.point] = {
            **points.get(scale.point, {}),
            **_measured(scale, getattr(impl, name).reshape(-1).tolist(), calibration),
        }
    for scale in impl.SPEC.at_call:
        points[scale.point] = {**points.get(scale.point, {}), **_at_call(scale)}
    return {"packs": packs, "points": points}


def _measured(
    scale: ScaleSpec, values: list[float], calibration: Calibration | None
) -> dict[str, Any]:
    """What calibration fixed at a point: a scale, or the factors of its channels."""
    found = {
        "method": calibration.method if calibration else "given",
        "samples": calibration.samples if calibration else 0,
        "percentile": calibration.percentile if calibration else None,
    }
    if scale.kind == "balance":
        return {"balance": values, **found}
    return {
        "dtype": scale.kind,
        "granularity": f"per {scale.per}",
        "scale": values,
        **found,
    }


def _at_call(scale: ScaleSpec) -> dict[str, Any]:
    return {
        "dtype": scale.kind,
        "granularity": f"per {scale.per}",
        "scale": None,
        "method": "at each call",
    }


def packed(impl: BoundImpl) -> list[str]:
    """The names of an impl's quantised packs: those that keep a scale beside them."""
    names = {name for name, _ in impl.named_buffers()}
    return sorted(name for name in names if f"{name}_scale" in names)


def _pack(impl: BoundImpl, name: str) -> dict[str, Any]:
    """What a pack is stored in. Scales of groups and blocks are too many to tell: of NVFP4
    there is the tensor's, of others none."""
    data, scale = getattr(impl, name), getattr(impl, f"{name}_scale")
    guess = (
        FORMATS.get(data.dtype, str(data.dtype)),
        "tensor" if scale.numel() == 1 else "channel",
    )
    dtype, per = impl.SPEC.packs.get(name, guess)
    told = scale if per in ("tensor", "channel") else getattr(impl, f"{name}_tensor_scale", None)
    return {
        "dtype": dtype,
        "granularity": f"per {per}",
        "scale": None if told is None else told.reshape(-1).tolist(),
        "shape": list(data.shape),
    }


def _at_host(parameters: Inventory, record: SeatRecord) -> dict[str, Any]:
    dtypes = {parameters[path][1] for path in weight_paths(record) if path in parameters}
    return {
        "dtype": "+".join(sorted(FORMATS.get(dtype, str(dtype)) for dtype in dtypes)),
        "granularity": None,
        "scale": None,
        "method": "host",
        "samples": 0,
        "percentile": None,
    }

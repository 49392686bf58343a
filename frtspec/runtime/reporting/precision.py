"""The precision each seat really runs at, point by point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from frtspec.runtime.dtypes import NAMES
from frtspec.runtime.hosts.coverage import weight_paths
from frtspec.runtime.observation.observe import Observation
from frtspec.runtime.records import SeatRecord
from frtspec.runtime.rungs.impl import BoundImpl

Inventory = Mapping[str, tuple[int, torch.dtype]]


def precision_spec(
    parameters: Inventory, records: Sequence[SeatRecord], seen: Observation | None
) -> dict[str, Any]:
    """seat -> {"packs": {pack: …}, "points": {point: …}, "rows": […]}.

    A pack has dtype, granularity, scale and shape. A point has

        method       ``static`` (a scale from calibration), ``at each call``, ``rounded``
                     (stored in a dtype) or ``host`` (what the host computes)
        dtype, granularity, scale (a list, float32 steps; None where there is none)
        balance      factors by channel that went into the weights, where there are some
        measured     each statistic: what, over how many samples, reduced by which percentile

    ``rows``: where the impl has bands, the row counts that all of this is about.
    """
    return {record.name: _seat(parameters, record, seen) for record in records}


def _seat(parameters: Inventory, record: SeatRecord, seen: Observation | None) -> dict[str, Any]:
    host = _host_dtype(parameters, record, seen)
    points = {
        point: {
            "method": "host",
            "dtype": host,
            "granularity": None,
            "scale": None,
            "measured": _measured(record.name, point, seen),
        }
        for point in (*record.seat.points, *record.seat.placeless)
    }
    if record.state != "bound" or record.bound is None:
        return {"packs": {}, "points": points, "rows": []}
    impl = record.bound.impl
    for point, dtype in impl.SPEC.stores.items():
        points.get(point, {}).update(method="rounded", dtype=dtype)
    for scale in impl.SPEC.at_call.values():
        points[scale.point].update(
            method="at each call", dtype=scale.kind, granularity=f"per {scale.per}"
        )
    for name, scale in impl.SPEC.scales.items():
        values = getattr(impl, name).reshape(-1).tolist()
        if scale.kind == "balance":
            points[scale.point]["balance"] = values
            continue
        points[scale.point].update(
            method="static", dtype=scale.kind, granularity=f"per {scale.per}", scale=values
        )
    packs = {name: _pack(impl, name) for name in packed(impl)}
    rows = [use.rows for use in record.bound.bands if use.rung is not None]
    return {"packs": packs, "points": points, "rows": rows}


def _measured(seat: str, point: str, seen: Observation | None) -> list[dict[str, Any]]:
    if seen is None:
        return []
    return [
        {
            "statistic": str(stat),
            "samples": seen.samples_of(seat, point),
            "percentile": seen.reduced_by(seat, point, stat),
        }
        for stat in seen.stats(seat, point)
    ]


def _host_dtype(parameters: Inventory, record: SeatRecord, seen: Observation | None) -> str:
    """The dtype that the host runs in at the seat: of its inputs as seen, else of its weights."""
    if seen is not None and seen.observed(record.name):
        dtypes = {context.dtype for context in seen.form(record.name).out_dtypes}
    else:
        dtypes = {parameters[p][1] for p in weight_paths(record) if p in parameters}
    return "+".join(sorted(NAMES.get(dtype, str(dtype)) for dtype in dtypes))


def packed(impl: BoundImpl) -> list[str]:
    """The names of an impl's quantised packs: those that keep a scale beside them."""
    names = {name for name, _ in impl.named_buffers()}
    return sorted(name for name in names if f"{name}_scale" in names)


def _pack(impl: BoundImpl, name: str) -> dict[str, Any]:
    """What a pack is stored in. Scales of groups and blocks are too many to tell: of NVFP4
    there is the tensor's, of others none."""
    data, scale = getattr(impl, name), getattr(impl, f"{name}_scale")
    guess = (
        NAMES.get(data.dtype, str(data.dtype)),
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

"""Saved calibrations: one safetensors file, whose metadata holds the JSON document.

One file, so that tensors and document can't part. Statistics and captures are sections
of their own, and their tensors lie under ``statistics/`` and ``captures/``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from frtspec.runtime import store
from frtspec.runtime.calibration.data import (
    Calibration,
    CallData,
    Passed,
    PointData,
    SeatData,
    State,
)
from frtspec.runtime.calibration.key import Key
from frtspec.runtime.errors import Refusal
from frtspec.runtime.receipt import digest as digest_of
from frtspec.runtime.spec import Stat

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

SCHEMA = "frtspec.calibration/1"
ENTRY = "frtspec.calibration"
SUFFIX = ".v1.safetensors"
"""With the version of the schema: files of several may lie side by side."""

Json = dict[str, Any]


class Damaged(ValueError):
    """A file that is no whole calibration; the text says where."""


def folder() -> Path:
    """Where "auto" keeps calibrations: ``calibrations`` in the cache folder."""
    return store.cache_dir() / "calibrations"


def name_of(key: Key) -> str:
    """The file's name in a folder of calibrations."""
    return f"{key.binding.split()[0]}-{key.digest[:24]}{SUFFIX}"


def save(calibration: Calibration, path: Path) -> Path:
    """Writes the file; see ``Calibration.save``."""
    from safetensors.torch import save_file  # only saving needs it

    target = path / name_of(calibration.key) if path.is_dir() else path
    document, tensors = documented(calibration)
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    with store.locked(target):
        store.sweep(target)
        with store.replacing(target) as fresh:
            save_file(tensors, str(fresh), metadata={ENTRY: text})
    return target


def load(path: Path) -> Calibration:
    """Reads the file; see ``Calibration.load``."""
    if not path.is_file():
        raise Refusal(
            "calibration.file",
            f"there is no calibration at {path}",
            fix='save one with plan.calibration.save(path), or pass calibration="auto"',
        )
    try:
        with path.open("rb"):
            pass
    except OSError as error:  # what can't be opened is not damaged
        raise Refusal(
            "calibration.file",
            f"{path} can't be read: {error.strerror or error}",
            fix="check what stands at this path, and its permissions",
        ) from None
    try:
        return _checked(*_read(path))
    except Damaged:
        return _once_more(path)


def _once_more(path: Path) -> Calibration:
    """A file that looked damaged, read where nobody can be writing it; kept aside if it is."""
    with store.locked(path):
        try:
            return _checked(*_read(path))
        except Damaged as problem:
            kept = store.set_aside(path)
            raise Refusal(
                "calibration.corrupt",
                f"{path} is no whole calibration: {problem}; it is kept as {kept.name}",
                fix="calibrate again; the damaged file is yours to look at or remove",
            ) from None


def documented(calibration: Calibration) -> tuple[Json, dict[str, Tensor]]:
    """The JSON document and the tensors that it names."""
    tensors: dict[str, Tensor] = {}
    document = {
        "schema": SCHEMA,
        "key": calibration.key.to_json(),
        "samples": calibration.samples,
        "runs": calibration.runs,
        "statistics": {n: _statistics(n, seat, tensors) for n, seat in calibration.seats.items()},
        "captures": {
            name: {
                value: _captures(name, value, seen, tensors) for value, seen in seat.values.items()
            }
            for name, seat in calibration.seats.items()
            if seat.values
        },
    }
    document["tensors"] = {name: _tensor_digest(value) for name, value in tensors.items()}
    return {**document, "digest": digest_of(document)}, tensors


def digest(calibration: Calibration) -> str:
    """The digest of a calibration, as its file has it."""
    return str(documented(calibration)[0]["digest"])


# ---------------------------------------------------------------- to JSON


def _statistics(name: str, seat: SeatData, tensors: dict[str, Tensor]) -> Json:
    if seat.refusal is not None:
        return {"refusal": dict(seat.refusal)}
    assert seat.calls is not None
    calls = {**vars(seat.calls), "rows": {str(k): n for k, n in seat.calls.rows.items()}}
    points = {}
    for point, data in seat.points.items():
        measured = []
        for number, (stat, state) in enumerate(data.statistics.items()):
            at = f"statistics/{name}/{point}/{number}"
            parts = {part: f"{at}/{part}" for part in state}
            tensors |= {parts[part]: value.contiguous() for part, value in state.items()}
            measured.append({**vars(stat), "parts": parts})
        points[point] = {"hits": data.hits, "outside": data.outside, "measured": measured}
    plain: Json = json.loads(json.dumps({"calls": calls, "points": points}))
    return plain


def _captures(
    seat: str, value: str, seen: tuple[Passed, ...], tensors: dict[str, Tensor]
) -> list[Json]:
    rows = []
    for sample, item in enumerate(seen):
        names = None
        if item.contents is not None:
            at = f"captures/{seat}/{value}/{sample}"
            found = {f"{at}/{call}": x.contiguous() for call, x in enumerate(item.contents)}
            tensors |= found
            names = list(found)
        shapes = [list(shape) for shape in item.shapes]
        rows.append(
            {"dtypes": list(item.dtypes), "shapes": shapes, "size": item.size, "contents": names}
        )
    return rows


def _tensor_digest(value: Tensor) -> str:
    flat = value.detach().contiguous().reshape(-1).view(torch.uint8)
    head = f"{value.dtype} {tuple(value.shape)}\n".encode()
    return hashlib.sha256(head + flat.numpy().tobytes()).hexdigest()


# ---------------------------------------------------------------- from JSON


def _read(path: Path) -> tuple[Json, dict[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt", device="cpu") as file:
            text = (file.metadata() or {}).get(ENTRY)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise Damaged(f"it can't be read as safetensors ({error})") from None
    if text is None:
        raise Damaged(f"its metadata has no {ENTRY}")
    try:
        document = json.loads(text)
    except ValueError as error:
        raise Damaged(f"its document is no JSON ({error})") from None
    if not isinstance(document, dict):
        raise Damaged("its document is no JSON object")
    return document, tensors


def _checked(document: Json, tensors: Mapping[str, Tensor]) -> Calibration:
    """The calibration of a document that is whole in itself. Raises Damaged, and Refusal
    ``calibration.schema`` for one of another version."""
    schema_here = document.get("schema")
    if isinstance(schema_here, str) and schema_here != SCHEMA:
        raise Refusal(
            "calibration.schema",
            f"the calibration is of schema {schema_here}; this frtspec reads {SCHEMA}",
            fix="calibrate again, or use the version of frtspec that wrote it",
        )
    misfits = [f"{e.json_path}: {e.message}" for e in _validator().iter_errors(document)]
    if misfits:
        raise Damaged("; ".join(misfits[:3]))
    body = {name: value for name, value in document.items() if name != "digest"}
    if digest_of(body) != document["digest"]:
        raise Damaged("its document was changed: the digest does not fit")
    if tensors.keys() != document["tensors"].keys():
        only = ", ".join(sorted(tensors.keys() ^ document["tensors"].keys()))
        raise Damaged(f"tensors and document do not name the same: {only}")
    for name, value in tensors.items():
        if _tensor_digest(value) != document["tensors"][name]:
            raise Damaged(f"tensor {name} was changed: the digest does not fit")
    seats = {
        name: _seat_of(name, row, document["captures"].get(name, {}), tensors)
        for name, row in document["statistics"].items()
    }
    key = Key.read(document["key"])
    return Calibration(key, document["samples"], seats, document["runs"])


def _seat_of(name: str, row: Json, captures: Json, tensors: Mapping[str, Tensor]) -> SeatData:
    if "refusal" in row:
        return SeatData(row["refusal"])
    calls = row["calls"]
    points = {}
    for point, data in row["points"].items():
        measured = {}
        for item in data["measured"]:
            parts = {part: tensors[at] for part, at in item.pop("parts").items()}
            stat = Stat(**item)
            problem = unusable(stat, parts)
            if problem:
                raise Damaged(f"{name}, point {point}, {stat}: {problem}")
            measured[stat] = parts
        points[point] = PointData(tuple(data["hits"]), tuple(data["outside"]), measured)
    values = {
        value: tuple(
            Passed(
                tuple(item["dtypes"]),
                tuple(map(tuple, item["shapes"])),
                item["size"],
                None if item["contents"] is None else tuple(tensors[at] for at in item["contents"]),
            )
            for item in seen
        )
        for value, seen in captures.items()
    }
    known = CallData(
        calls["counts"],
        tuple(calls["per_sample"]),
        {int(rows): count for rows, count in calls["rows"].items()},
        tuple((at, auto, out) for at, auto, out in calls["out_dtypes"]),
        tuple(map(tuple, calls["widths"])),
        tuple(calls["returns"]),
        tuple(calls["styles"]),
        tuple(calls["extra"]),
    )
    return SeatData(None, known, points, values)


PARTS = {
    ("amax", "tensor"): ("largest",),
    ("amax", "channel"): ("largest", "top", "count"),
    ("amax", "block"): ("largest", "top", "count"),
    ("second_moment", "channel"): ("total",),
    ("histogram", "tensor"): ("counts", "exponent", "largest"),
}
"""What a statistic's state is made of."""


def unusable(stat: Stat, state: State) -> str:
    """Why no scale can be made of a state; empty where one can. Scales must be finite and
    greater than zero."""
    wanted = PARTS.get((str(stat.stat), stat.per))
    if wanted is None or set(wanted) != state.keys():
        return f"it is made of {', '.join(state) or 'nothing'}"
    for part, value in state.items():
        if not value.numel():
            return f"{part} is empty"
        if not bool(value.isfinite().all()):
            return f"{part} is not finite"
        if part != "exponent" and bool((value < 0).any()):
            return f"{part} is below zero"
        if part != "exponent" and not bool((value > 0).any()):
            return f"{part} is all zero"
    return ""


def schema() -> Json:
    """The JSON schema of the document (draft 2020-12)."""
    text = resources.files("frtspec.runtime.calibration").joinpath("calibration.schema.json").read_text("utf-8")
    loaded: Json = json.loads(text)
    return loaded


@cache
def _validator() -> Validator:
    from jsonschema import Draft202012Validator  # slow to import, and only loading needs it

    return Draft202012Validator(schema())

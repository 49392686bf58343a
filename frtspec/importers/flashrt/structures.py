"""What a binding of flash-rt may name: the structures of its catalog, as their YAML has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from frtspec.importers.flashrt.fields import Fields, Report
from frtspec.importers.flashrt.yamldoc import Map, Scalar, Seq, Value


@dataclass(frozen=True)
class Tensor:
    """An input, output or weight slot. ``dims``: each as it is written."""

    name: Scalar
    dims: tuple[Scalar, ...]
    dtype: Scalar | None
    optional: bool


@dataclass(frozen=True)
class Points:
    """A list of calibration points under one key of ``calibration``."""

    key: Scalar
    names: tuple[Scalar, ...]


@dataclass(frozen=True)
class PeerStructure:
    """One structure. ``stages`` maps each to whether it is optional; only a pipeline has any.

    ``reference``: the entry point's module under ``structures/``, and its name.
    """

    name: str
    path: str
    version: int
    pipeline: bool
    dims: tuple[str, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    slots: tuple[Tensor, ...]
    axes: Mapping[str, tuple[str, ...]]
    points: tuple[Points, ...]
    condition: Scalar | None
    metrics: tuple[Scalar, ...]
    stages: Mapping[str, bool]
    cadences: frozenset[str]
    embeds: tuple[str, ...]
    reference: tuple[str, str] | None

    def slot(self, name: str) -> Tensor | None:
        return next((slot for slot in self.slots if slot.name.text == name), None)


def structure(root: Map, folder: str, path: str, report: Report) -> PeerStructure | None:
    """One structure file; None where it has no name or version. ``folder``: its folder's
    name, which the catalog looks it up by."""
    fields = Fields(root, f"structure `{folder}`", report)
    name = fields.text("structure", needed=True)
    version = fields.whole("version")
    if name is None or version is None:
        return None
    kind = fields.text("kind")
    boundary = fields.mapping("boundary") or Map((), root.span)
    boundary_fields = Fields(boundary, f"the boundary of `{folder}`", report)
    calibration = fields.mapping("calibration") or Map((), root.span)
    reference = fields.mapping("reference")
    stages = fields.mappings("stages")
    return PeerStructure(
        name=folder,
        path=path,
        version=version,
        pipeline=kind is not None and kind.text == "stage_pipeline",
        dims=tuple(dim.text for dim in boundary_fields.texts("symbolic_dims")),
        inputs=_tensors(boundary_fields.mappings("inputs"), "name", folder, report),
        outputs=_tensors(boundary_fields.mappings("outputs"), "name", folder, report),
        slots=_tensors(fields.mappings("weights"), "slot", folder, report),
        axes=_axes(fields, folder, report),
        points=tuple(_points(calibration)),
        condition=_text(calibration.get("optional_when")),
        metrics=_metrics(fields),
        stages=_stages(stages),
        cadences=frozenset(c.text for stage in stages if (c := _text(stage.get("cadence")))),
        embeds=tuple(item.text for item in fields.texts("embedded_regions")),
        reference=_reference(reference),
    )


def _tensors(rows: tuple[Map, ...], key: str, folder: str, report: Report) -> tuple[Tensor, ...]:
    out = []
    for row in rows:
        fields = Fields(row, f"a row of `{folder}`", report)
        name = fields.text(key, needed=True)
        dims = row.get("dims")
        if name is None:
            continue
        items = dims.items if isinstance(dims, Seq) else ()
        out.append(
            Tensor(
                name,
                tuple(item for item in items if isinstance(item, Scalar)),
                fields.text("dtype"),
                fields.truth("optional"),
            )
        )
    return tuple(out)


def _axes(fields: Fields, folder: str, report: Report) -> dict[str, tuple[str, ...]]:
    held = fields.mapping("variants")
    if held is None:
        return {}
    axes = Fields(held, f"the variants of `{folder}`", report)
    return {key.text: tuple(v.text for v in axes.texts(key.text)) for key, _ in held}


def _points(calibration: Map) -> list[Points]:
    """``points``, and every other key that ends so (``per_token_table_points``)."""
    return [
        Points(key, tuple(item for item in value.items if isinstance(item, Scalar)))
        for key, value in calibration
        if key.text.endswith("points") and isinstance(value, Seq)
    ]


def _metrics(fields: Fields) -> tuple[Scalar, ...]:
    gates = fields.mapping("gates", needed=True)
    parity = gates.get("parity") if gates else None
    metrics = parity.get("metrics") if isinstance(parity, Map) else None
    items = metrics.items if isinstance(metrics, Seq) else ()
    return tuple(item for item in items if isinstance(item, Scalar))


def _stages(rows: tuple[Map, ...]) -> dict[str, bool]:
    out = {}
    for row in rows:
        name, optional = _text(row.get("name")), row.get("optional")
        if name is not None:
            out[name.text] = isinstance(optional, Scalar) and optional.value is True
    return out


def _reference(held: Map | None) -> tuple[str, str] | None:
    if held is None:
        return None
    module, entry = _text(held.get("module")), _text(held.get("entrypoint"))
    return None if module is None or entry is None else (module.text, entry.text)


def _text(value: Value | None) -> Scalar | None:
    return value if isinstance(value, Scalar) and isinstance(value.value, str) else None

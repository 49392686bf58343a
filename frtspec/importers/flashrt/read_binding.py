"""Reading a binding's file: which kind it is, and what a region's says."""

from __future__ import annotations

from collections.abc import Mapping

from frtspec.diag.diagnostic import Diagnostic
from frtspec.importers.flashrt.bindings import (
    CONSTANTS,
    Conditioning,
    Phase,
    Pipeline,
    Region,
    Weight,
    unknown,
)
from frtspec.importers.flashrt.fields import WRONG_KIND, Fields, Report, texts_of
from frtspec.importers.flashrt.read_pipeline import hosts_of, read_pipeline
from frtspec.importers.flashrt.structures import PeerStructure
from frtspec.importers.flashrt.yamldoc import Map, Scalar, Value


def binding(
    root: Map, stem: str, structures: Mapping[str, PeerStructure], report: Report
) -> Region | Pipeline | None:
    """The binding of one file, or None when an error keeps it from meaning anything."""
    fields = Fields(root, f"binding `{stem}`", report)
    name = fields.text("binding", needed=True)
    named = fields.text("structure", needed=True)
    if name is not None and name.text != stem:
        message = f"the file is called `{stem}.yaml` and declares the binding `{name.text}`"
        report(Diagnostic(WRONG_KIND, message, name.span, help="rename one of them"))
    if name is None or named is None:
        return None
    found = structures.get(named.text)
    if found is None:
        unknown("structure", named, structures, report)
        return None
    if found.pipeline:
        return read_pipeline(fields, name, found, structures, report)
    return _region(fields, name, found, report)


def _region(
    fields: Fields, name: Scalar, structure: PeerStructure, report: Report
) -> Region | None:
    weights = fields.mapping("weights_map", needed=True)
    dims = _dims(fields, structure, report)
    variant = fields.mapping("variant")
    dtype = fields.text("boundary_dtype")
    profile = _profile(fields, name, report)
    conditioning = _conditioning(fields, name, report)
    hosts = hosts_of(fields, name, report)
    fields.skip("coverage")
    fields.done()
    if fields.held.get("coverage") is not None:
        report(
            Diagnostic(
                WRONG_KIND,
                f"`{structure.name}` is a region: its binding has no coverage of a hot path",
                fields.held.span,
            )
        )
    read = _weights(weights, name, structure, report) if weights else None
    if read is None or dims is None:
        return None
    host, layout, slots = read
    pairs = () if variant is None else texts_of(variant, f"the variant of `{name.text}`", report)
    return Region(
        name=name,
        structure=structure,
        dims=tuple((key, size) for key, size in dims if key.text != "layers"),
        layers=next(size for key, size in dims if key.text == "layers"),
        variant=tuple(p for p in pairs if _known_value(p, structure, report)),
        dtype=dtype,
        profile=profile,
        weights_host=host,
        layout=layout,
        weights=slots,
        conditioning=conditioning,
        hosts=hosts,
    )


def _dims(
    fields: Fields, structure: PeerStructure, report: Report
) -> list[tuple[Scalar, int]] | None:
    """The dims, ``layers`` among them; None where that is missing."""
    held = fields.mapping("dims", needed=True)
    if held is None:
        return None
    rows = Fields(held, f"the dims of {fields.what}", report)
    out = []
    for key, value in held:
        size = rows.whole(key.text)
        if key.text != "layers" and key.text not in structure.dims:
            unknown(f"dim of {structure.name}", key, structure.dims, report)
        elif size is not None and size < 1:
            rows.wrong(key.text, "a number of at least 1", value)
        elif size is not None:
            out.append((key, size))
    if "layers" not in held.names():
        report(Diagnostic(WRONG_KIND, f"{rows.what} say no `layers`", held.span))
    return out if any(key.text == "layers" for key, _ in out) else None


def _known_value(pair: tuple[Scalar, Scalar], structure: PeerStructure, report: Report) -> bool:
    axis, value = pair
    values = structure.axes.get(axis.text)
    if values is None:
        unknown(f"variant of {structure.name}", axis, structure.axes, report)
    elif value.text not in values:
        unknown(f"value of {axis.text}", value, values, report)
    else:
        return True
    return False


def _weights(
    held: Map, name: Scalar, structure: PeerStructure, report: Report
) -> tuple[Scalar, Scalar | None, tuple[Weight, ...]] | None:
    """Key, layout and slots of the one host that ``weights_map`` names."""
    what = f"the weights_map of `{name.text}`"
    if len(held.entries) != 1:
        message = f"{what} names {len(held.entries)} hosts; one can be carried over"
        report(Diagnostic(WRONG_KIND, message, held.span))
        return None
    host, rows = held.entries[0]
    if not isinstance(rows, Map):
        Fields(held, what, report).wrong(host.text, "a mapping of slots", rows)
        return None
    fields = Fields(rows, what, report)
    layout = fields.text("layout")
    out = []
    for key, value in rows:
        if key.text == "layout":
            continue
        fields.skip(key.text)
        weight = _weight(key, value, fields)
        if structure.slot(key.text) is None:
            unknown(
                f"slot of {structure.name}", key, [s.name.text for s in structure.slots], report
            )
        elif weight is not None:
            out.append(weight)
    for slot in structure.slots:
        if not slot.optional and slot.name.text not in rows.names():
            message = f"{what} has no slot `{slot.name.text}`"
            report(Diagnostic(WRONG_KIND, message, host.span))
    return host, layout, tuple(out)


def _weight(key: Scalar, value: Value, fields: Fields) -> Weight | None:
    """A path template, or ``{const: zeros}``."""
    if isinstance(value, Map):
        const = Fields(value, f"slot `{key.text}`", fields.report)
        word = const.text("const", needed=True)
        const.done()
        if word is None:
            return None
        if word.text not in CONSTANTS:
            unknown("constant", word, CONSTANTS, fields.report)
            return None
        return Weight(key, None, word.text)
    path = fields.text(key.text)
    return None if path is None else Weight(key, path, None)


def _profile(fields: Fields, name: Scalar, report: Report) -> tuple[Phase, ...]:
    held = fields.mapping("m_profile")
    out = []
    for key, value in held or ():
        if not isinstance(value, Map):
            Fields(held or Map((), key.span), "m_profile", report).wrong(
                key.text, "a mapping", value
            )
            continue
        row = Fields(value, f"m_profile.{key.text} of `{name.text}`", report)
        rows, phase = row.text("m_class", needed=True), row.text("phase", needed=True)
        row.done()
        if rows is not None and phase is not None:
            out.append(Phase(key, rows, phase))
    return tuple(out)


def _conditioning(fields: Fields, name: Scalar, report: Report) -> Conditioning | None:
    held = fields.mapping("conditioning")
    if held is None:
        return None
    rows = Fields(held, f"the conditioning of `{name.text}`", report)
    source, gated = rows.text("source", needed=True), rows.truth("residual_gate")
    projection = rows.mapping("projection", needed=True)
    rows.done()
    if projection is None or source is None:
        return None
    inner = Fields(projection, f"the projection of `{name.text}`", report)
    weight, bias = inner.text("weight", needed=True), inner.text("bias")
    order = inner.texts("chunk_order", needed=True)
    inner.done()
    key = fields.held.key("conditioning")
    if weight is None or key is None:
        return None
    return Conditioning(source, weight, bias, order, gated, key)

"""A region's binding as the text of a spec."""

from __future__ import annotations

from collections.abc import Iterator

from frtspec.importers.flashrt.bindings import Region, Weight
from frtspec.importers.flashrt.conditioning import Producer
from frtspec.importers.flashrt.hosts import Settled
from frtspec.importers.flashrt.judge import Verdict
from frtspec.importers.flashrt.site import Site
from frtspec.importers.flashrt.words import (
    LAYOUTS,
    TARGET,
    exported_name,
    imported_name,
    quoted,
)
from frtspec.ir.decl import Structure

LAYERS = "L"
"""The dim that counts the layers: flash-rt calls it `layers`."""

_MATRIX_OF_POINT = {
    "decoder_ffn": (("x_after_norm", None), ("act_after_mul", "w_down")),
    "vision_ffn": (("x_after_norm", None), ("hidden_after_act", "w_fc2")),
}
"""Points of the seam, each with the slot whose module takes it; None: the seat itself."""


def region_text(
    found: Region,
    site: Site,
    producer: Producer | None,
    ours: Structure,
    verdict: Verdict,
    evidence: str,
) -> str:
    """The spec's text, not yet formatted."""
    return "\n".join(_lines(found, site, producer, ours, verdict, evidence)) + "\n"


def _lines(
    found: Region,
    site: Site,
    producer: Producer | None,
    ours: Structure,
    verdict: Verdict,
    evidence: str,
) -> Iterator[str]:
    yield from ("frt 1", "", f"binding {imported_name(found.name.text)} {{")
    yield f'"""The {found.structure.name} of flash-rt\'s binding {found.name.text}."""'
    if verdict.reason is None:
        yield "status draft"
    else:
        yield f"status imported {quoted(verdict.reason)}"
    yield f"evidence {quoted(evidence)}"
    yield _host(found, verdict.settled)
    sizes = [f"{key.text} = {size}" for key, size in found.dims]
    yield f"dims {{ {', '.join([*sizes, f'{LAYERS} = {found.layers}'])} }}"
    yield ""
    yield f"each i in 0..{LAYERS} {{"
    yield from _seat(found, site, ours, verdict.settled)
    if producer is not None:
        yield from _producer(found, producer)
    yield "}"
    yield ""
    yield from _export(found, site, verdict.settled)
    yield "}"


def _host(found: Region, settled: Settled | None) -> str:
    host = found.hosts[0]
    if settled is not None:
        classes = ", ".join(settled.classes)
        named = classes if len(settled.classes) == 1 else f"({classes})"
        return f"host {host.name.text} {quoted(settled.versions)} class {named}"
    versions = "" if host.versions is None else f" {quoted(host.versions.text)}"
    return f"host {host.name.text}{versions}"


def _seat(found: Region, site: Site, ours: Structure, settled: Settled | None) -> Iterator[str]:
    seam = f".{site.seam}" if site.seam else ""
    yield f"seat ffn : {ours.name}{seam} version {ours.version} at {site.seat} {{"
    yield f"dims {{ {', '.join(f'{key.text} = {key.text}' for key, _ in found.dims)} }}"
    given = {axis.text: value.text for axis, value in found.variant}
    settled_axes = {} if settled is None else settled.variants
    for axis in ours.variants:
        value = given.get(axis.name) or settled_axes.get(axis.name)
        if value is not None:
            yield f"variant {axis.name} = {value}"
    if settled is not None and settled.eps is not None:
        yield f"param eps = {settled.eps}"
    for weight, path in site.inside:
        yield _slot(weight, path, ours, found)
    if settled is not None:
        yield from _points(found, site)
    yield f"boundary at {site.layer} {{"
    outer = [f"{_slot(weight, path, ours, found)}," for weight, path in site.outside]
    yield from ([*_ports(site), *outer] if settled is not None else outer)
    yield "}"
    if settled is not None:
        yield from _facts(settled)
    yield "}"


def _slot(weight: Weight, path: str | None, ours: Structure, found: Region) -> str:
    """``slot w_up = up_proj.weight : out_in``"""
    if path is None:
        return f"slot {weight.slot.text} = {weight.const}"
    slot = next(s for s in ours.slots if s.name == weight.slot.text)
    matrix = slot.shape is not None and len(slot.shape) == 2
    layout = f" : {LAYOUTS[found.layout.text]}" if matrix and found.layout is not None else ""
    return f"slot {weight.slot.text} = {path}{layout}"


def _points(found: Region, site: Site) -> Iterator[str]:
    owner = {w.slot.text: (path or "").rpartition(".")[0] for w, path in site.inside}
    for point, slot in _MATRIX_OF_POINT[found.structure.name]:
        yield f"point {point} = input" + (f" of {owner[slot]}" if slot else "")


def _ports(site: Site) -> Iterator[str]:
    norm = next(path for w, path in site.outside if w.slot.text == "w_norm" and path)
    yield f"x = input of {norm.rpartition('.')[0]},"
    yield "y = output,"


def _facts(settled: Settled) -> Iterator[str]:
    yield f"expect class ({settled.mlp_class})"
    if settled.unbiased:
        yield f"expect bias none of ({', '.join(settled.unbiased)})"
    yield f"expect activation {settled.activation[0]} of {settled.activation[1]}"
    yield "expect returns tensor"


def _producer(found: Region, producer: Producer) -> Iterator[str]:
    """What makes the norm's scale, shift and gate, as a seat of its own."""
    slot = "style" if producer.style == "scale_shift_gate" else "pair"
    layout = "" if found.layout is None else f" : {LAYOUTS[found.layout.text]}"
    yield ""
    yield f"seat cond : adaln_producer version 1 at {producer.norm} {{"
    if any(key.text == "D" for key, _ in found.dims):
        yield "dims { D = D }"
    yield f"variant style = {producer.style}"
    yield f"variant style_order = {producer.order}"
    yield f"slot {slot}_w = {producer.weight}{layout}"
    if producer.bias is not None:
        yield f"slot {slot}_b = {producer.bias}"
    yield "}"


def _export(found: Region, site: Site, settled: Settled | None) -> Iterator[str]:
    """What the export needs and nothing here says: spellings and keys of the source."""
    host = found.hosts[0]
    rows = []
    if exported_name(imported_name(found.name.text)) != found.name.text:
        rows.append(f"binding = {quoted(found.name.text)}")
    if found.weights_host.text != host.name.text:
        rows.append(f"weights_map = {quoted(found.weights_host.text)}")
    if site.root:
        rows.append(f"weights_root = {quoted(site.root)}")
    if found.layout is not None and LAYOUTS[found.layout.text] != found.layout.text:
        rows.append(f"layout = {quoted(found.layout.text)}")
    if found.dtype is not None:
        rows.append(f"boundary_dtype = {quoted(found.dtype.text)}")
    if host.versions and settled and settled.versions != host.versions.text:
        rows.append(f"versions[{host.name.text}] = {quoted(host.versions.text)}")
    for phase in found.profile:
        rows.append(
            f"m_profile[{phase.name.text}] = {quoted(f'{phase.rows.text} {phase.phase.text}')}"
        )
    if found.conditioning is not None:
        rows.append(f"conditioning = {quoted(found.conditioning.source.text)}")
    if rows:
        yield f"export {TARGET} {{"
        yield ",\n".join(rows)
        yield "}"

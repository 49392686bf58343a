"""A binding of one region as a document of flash-rt's catalog."""

from __future__ import annotations

from frtspec.diag.source import Span
from frtspec.importers.flashrt.conditioning import STYLES
from frtspec.importers.flashrt.plaindoc import CannotExport, hints, joined, whole, word
from frtspec.importers.flashrt.words import LAYOUTS, TARGET
from frtspec.ir.decl import Binding, EachSeats, Export, Program, Seat, WeightView
from frtspec.syntax import ast

LAYERS = "layers"

AXES = {
    "decoder_ffn": ("activation", "norm_weight_mode", "conditioning"),
    "vision_ffn": ("activation", "norm_affine"),
}
"""Variants that flash-rt's structures have; ours tell more apart."""


def region_document(program: Program, binding: Binding, name: str) -> dict[str, object]:
    """The document of a binding whose first seat is the region. Raises ``CannotExport``."""
    group, seat = _region(binding)
    said = hints(binding, TARGET)
    structure, _ = seat.structure
    if structure not in AXES:
        message = f"flash-rt has bindings of {', '.join(AXES)} alone, not of {structure}"
        raise CannotExport(message, seat.span)
    document: dict[str, object] = {
        "binding": name,
        "structure": structure,
        "dims": _dims(binding, group, seat),
        "variant": _variant(seat),
    }
    dtype = said.get("boundary_dtype")
    if dtype is not None:
        document["boundary_dtype"] = dtype
    profile = _profile(said)
    if profile:
        document["m_profile"] = profile
    document["weights_map"] = {_weights_host(binding, said): _weights(seat, said)}
    conditioning = _conditioning(group, said)
    if conditioning is not None:
        document["conditioning"] = conditioning
    document["hosts"] = _hosts(binding, seat, said)
    return document


def _region(binding: Binding) -> tuple[EachSeats, Seat]:
    """The first seat, and the loop that it stands in."""
    for group in binding.groups:
        if group.seats and len(group.loops) == 1:
            return group, group.seats[0]
    raise CannotExport(
        f"binding `{binding.name}` has no seat that repeats once a layer",
        binding.origin.span,
        "flash-rt's format describes one region of every layer",
    )


def _dims(binding: Binding, group: EachSeats, seat: Seat) -> dict[str, int]:
    """The seat's dims as numbers, and how many layers there are."""
    known = dict(binding.dims)

    def number(expr: ast.Expr, what: str, span: Span) -> int:
        """A number, or a dim of the binding that is one."""
        named = known.get(expr.id) if isinstance(expr, ast.Name) else None
        return whole(expr if named is None else named, what, span)

    sizes = {key: number(expr, f"dim `{key}`", seat.span) for key, expr in seat.dims}
    loop = group.loops[0]
    if whole(loop.lo, "the first layer", loop.span) != 0 or loop.inclusive:
        raise CannotExport(
            "the layers are counted otherwise than from 0 and below their count", loop.span
        )
    if loop.where is not None or seat.when is not None:
        raise CannotExport(
            "not every layer has the region; in flash-rt's format each has", loop.span
        )
    return {**sizes, LAYERS: number(loop.hi, "the number of layers", loop.span)}


def _variant(seat: Seat) -> dict[str, str]:
    chosen = dict(seat.variants)
    return {
        axis: word(chosen[axis], f"variant `{axis}`", seat.span)
        for axis in AXES[seat.structure[0]]
        if axis in chosen
    }


def _profile(said: Export) -> dict[str, dict[str, str]]:
    profile = {}
    for entry in said.entries:
        if entry.key == "m_profile" and entry.sub is not None:
            rows, _, phase = entry.text.partition(" ")
            profile[entry.sub] = {"m_class": rows, "phase": phase}
    return profile


# ---------------------------------------------------------------- weights


def _weights_host(binding: Binding, said: Export) -> str:
    return said.get("weights_map") or binding.hosts[0].package


def _weights(seat: Seat, said: Export) -> dict[str, object]:
    """The layout, then every slot: a path as the host there names it, or a constant."""
    root = said.get("weights_root")
    outer = seat.boundary
    placed = [(seat.path.text, view) for view in seat.slots]
    if outer is not None and outer.path is not None:
        placed += [(outer.path.text, view) for view in outer.slots]
    layouts = {view.layout for _, view in placed if view.layout is not None}
    if len(layouts) > 1:
        raise CannotExport(
            "its matrices have several layouts; flash-rt's format has one", seat.span
        )
    ours = next(iter(layouts), "out_in")
    told = said.get("layout")
    layout = told if told is not None and LAYOUTS.get(told) == ours else ours
    slots = {view.slot: _slot(base, view, root) for base, view in placed}
    return {"layout": layout, **slots}


def _slot(base: str, view: WeightView, root: str | None) -> object:
    if view.view in ("zeros", "ones"):
        return {"const": view.view}
    if view.view != "param" or view.path is None:
        message = f"slot `{view.slot}` is a view of a parameter, which flash-rt's format lacks"
        raise CannotExport(message, view.span)
    return _there(joined(base, view.path.text), root)


def _there(path: str, root: str | None) -> str:
    """A path here as the source's host names it."""
    return path.removeprefix(f"{root}.") if root else path


def _conditioning(group: EachSeats, said: Export) -> dict[str, object] | None:
    """The second seat, where it produces the norm's style."""
    source = said.get("conditioning")
    seat = next((s for s in group.seats if s.structure[0] == "adaln_producer"), None)
    if source is None or seat is None:
        return None
    root = said.get("weights_root")
    said_of_style = [
        word(value, axis, seat.span)
        for axis, value in sorted(seat.variants)
        if axis in ("style", "style_order")
    ]
    order = next((list(o) for o, found in STYLES.items() if list(found) == said_of_style), None)
    paths = {
        view.slot.rpartition("_")[2]: _slot(seat.path.text, view, root)
        for view in seat.slots
        if view.slot.startswith(("style_", "pair_"))
    }
    if order is None or "w" not in paths:
        message = f"seat `{seat.name}` does not say what its projection gives, in which order"
        raise CannotExport(message, seat.span)
    projection: dict[str, object] = {"weight": paths["w"]}
    if "b" in paths:
        projection["bias"] = paths["b"]
    projection["chunk_order"] = order
    return {"source": source, "projection": projection, "residual_gate": "gate" in order}


def _hosts(binding: Binding, seat: Seat, said: Export) -> dict[str, object]:
    host = binding.hosts[0]
    outer = seat.boundary
    layer = outer.path.text if outer is not None and outer.path is not None else seat.path.text
    row = {"module_path": layer}
    versions = said.get("versions", host.package) or host.versions
    if versions is not None:
        row["versions"] = versions
    return {host.package: row}

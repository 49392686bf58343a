"""The projection that makes a norm's scale, shift and gate: a seat of adaln_producer."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.diagnostic import Diagnostic
from frtspec.importers.flashrt.bindings import NAME_UNKNOWN, Conditioning, Region
from frtspec.importers.flashrt.fields import WRONG_KIND, Report
from frtspec.importers.flashrt.site import PLACES, Site, full, well_formed

STYLES = {
    ("scale", "shift", "gate"): ("scale_shift_gate", "scale_first"),
    ("shift", "scale", "gate"): ("scale_shift_gate", "shift_first"),
    ("scale", "shift"): ("scale_shift", "scale_first"),
    ("shift", "scale"): ("scale_shift", "shift_first"),
}
"""Orders of the projection's chunks -> style and style_order of adaln_producer."""


@dataclass(frozen=True)
class Producer:
    """``norm``: the module that holds the projection; ``weight`` and ``bias`` below it."""

    norm: str
    weight: str
    bias: str | None
    style: str
    order: str


def producer(region: Region, site: Site, report: Report) -> Producer | None:
    """The producer of a region with a conditioning; None where there is none, or where
    what is said of it does not fit (reported)."""
    held = region.conditioning
    if held is None:
        return None
    order = tuple(item.text for item in held.chunk_order)
    if not _order_fits(held, order, report):
        return None
    weight, bias = held.weight, held.bias
    if not all(well_formed(path, report) for path in (weight, bias) if path is not None):
        return None
    owner, _, name = full(site.root, weight).rpartition(".")
    norm, _, projection = owner.rpartition(".")
    inside = norm.startswith(f"{site.layer}.")
    if bias is not None and not full(site.root, bias).startswith(f"{norm}."):
        inside = False
    if not inside:
        message = "the projection is no child of a norm in the module that the source names"
        report(Diagnostic(PLACES, message, weight.span))
        return None
    style, first = STYLES[order]
    below = None if bias is None else full(site.root, bias).removeprefix(f"{norm}.")
    return Producer(norm, f"{projection}.{name}", below, style, first)


def _order_fits(held: Conditioning, order: tuple[str, ...], report: Report) -> bool:
    if order not in STYLES:
        known = "; ".join(", ".join(names) for names in STYLES)
        at = held.chunk_order[0].span if held.chunk_order else held.key.span
        message = f"no projection has its chunks in the order {', '.join(order) or 'of nothing'}"
        report(Diagnostic(NAME_UNKNOWN, message, at, help=f"known: {known}"))
        return False
    if held.residual_gate != ("gate" in order):
        said = "has a gate" if held.residual_gate else "has none"
        message = f"the residual {said}, and the projection's chunks say otherwise"
        report(Diagnostic(WRONG_KIND, message, held.key.span))
        return False
    return True

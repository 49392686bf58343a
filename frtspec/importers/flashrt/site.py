"""Where a region's seat lies on the host, read off the paths that the source gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frtspec.diag.diagnostic import Diagnostic
from frtspec.importers.flashrt.bindings import Region, Weight
from frtspec.importers.flashrt.fields import WRONG_KIND, Report
from frtspec.importers.flashrt.words import LAYOUTS, PATH
from frtspec.importers.flashrt.yamldoc import Scalar
from frtspec.ir.decl import Structure

PLACES = "FRT0890"

SEAM = "mlp"
"""The cut that a host's MLP module is; a structure without it is seated whole."""


@dataclass(frozen=True)
class Site:
    """``root``: what the module path has before the weights' paths (``model``, or nothing).

    ``layer``: the module that the source names. ``seat``: the common parent of the slots
    inside the seam. Paths of ``inside`` are relative to the seat, of ``outside`` to the
    layer; None stands for a constant.
    """

    root: str
    layer: str
    seam: str | None
    seat: str
    inside: tuple[tuple[Weight, str | None], ...]
    outside: tuple[tuple[Weight, str | None], ...]


def site(region: Region, ours: Structure, report: Report) -> Site | None:
    """The site, or None when the paths don't fit together (reported)."""
    layer = _layer(region, report)
    fitting = [_path_ok(weight, report) for weight in region.weights]
    fitting.append(_layout_ok(region, report))
    if layer is None or not all(fitting):
        return None
    placed = [w.path for w in region.weights if w.path is not None]
    root = _root(layer.text, [path.text for path in placed])
    if root is None:
        report(
            Diagnostic(
                PLACES,
                f"the module path `{layer.text}` is no parent of the weights' paths",
                layer.span,
                notes=((placed[0].span, "one of them is here"),) if placed else (),
                help="name the module that holds every slot",
            )
        )
        return None
    seam = next((s for s in ours.seams if s.name == SEAM), None)
    within = set(seam.slots) if seam else {slot.name for slot in ours.slots}
    inner = [w for w in region.weights if w.slot.text in within]
    outer = [w for w in region.weights if w.slot.text not in within]
    owners = [full(root, w.path).rpartition(".")[0] for w in inner if w.path]
    seat = _seat(owners, inner, root) if seam and owners else layer.text
    return Site(
        root=root,
        layer=layer.text,
        seam=SEAM if seam else None,
        seat=seat,
        inside=tuple((w, below(seat, root, w.path)) for w in inner),
        outside=tuple((w, below(layer.text, root, w.path)) for w in outer),
    )


def _layer(region: Region, report: Report) -> Scalar | None:
    """The module path of the one host."""
    if len(region.hosts) != 1:
        message = f"`{region.name.text}` names {len(region.hosts)} hosts; a region here has one"
        report(Diagnostic(PLACES, message, region.name.span))
        return None
    path = region.hosts[0].module_path
    if path is None:
        message = f"host `{region.hosts[0].name.text}` has no module_path"
        report(Diagnostic(PLACES, message, region.hosts[0].name.span))
        return None
    return path if well_formed(path, report) else None


def _path_ok(weight: Weight, report: Report) -> bool:
    if weight.path is None:
        return True
    if "." not in weight.path.text:
        message = f"`{weight.path.text}` names no parameter of a module"
        report(Diagnostic(WRONG_KIND, message, weight.path.span))
        return False
    return well_formed(weight.path, report)


def well_formed(path: Scalar, report: Report) -> bool:
    if PATH.fullmatch(path.text) and "{i}" in path.text:
        return True
    if not PATH.fullmatch(path.text):
        message = f"`{path.text}` is no module path"
        help = "names and numbers with dots between them, and {i} for the layer's number"
    else:
        message = f"`{path.text}` is the same for every layer"
        help = "write {i} where the layer's number goes"
    report(Diagnostic(WRONG_KIND, message, path.span, help=help))
    return False


def _layout_ok(region: Region, report: Report) -> bool:
    if region.layout is None:
        message = f"the weights of `{region.name.text}` say no layout"
        help = f"one of {', '.join(LAYOUTS)}"
        report(Diagnostic(WRONG_KIND, message, region.weights_host.span, help=help))
    elif region.layout.text not in LAYOUTS:
        message = f"no layout is called `{region.layout.text}`"
        help = f"one of {', '.join(LAYOUTS)}"
        report(Diagnostic("FRT0885", message, region.layout.span, help=help))
    else:
        return True
    return False


def _root(layer: str, paths: Sequence[str]) -> str | None:
    """What ``layer`` has before the common parent of the paths."""
    parts = layer.split(".")
    for skipped in range(len(parts)):
        rest = ".".join(parts[skipped:])
        if all(path.startswith(f"{rest}.") for path in paths):
            return ".".join(parts[:skipped])
    return None


def full(root: str, path: Scalar) -> str:
    return f"{root}.{path.text}" if root else path.text


def below(parent: str, root: str, path: Scalar | None) -> str | None:
    return None if path is None else full(root, path).removeprefix(f"{parent}.")


def _seat(owners: Sequence[str], slots: Sequence[Weight], root: str) -> str:
    """The common parent of some modules, such that every slot is named from it: a child
    called `0` is reached through the list that holds it."""
    seat = _common(owners)
    while "." in seat and any(_numbered(below(seat, root, slot.path)) for slot in slots):
        seat = seat.rpartition(".")[0]
    return seat


def _numbered(path: str | None) -> bool:
    return path is not None and path[0] in "0123456789{"


def _common(paths: Sequence[str]) -> str:
    """The longest common leading modules."""
    common = paths[0].split(".")
    for path in paths[1:]:
        parts = path.split(".")
        same = next(
            (k for k, (a, b) in enumerate(zip(common, parts, strict=False)) if a != b), None
        )
        common = common[: min(len(common), len(parts)) if same is None else same]
    return ".".join(common)

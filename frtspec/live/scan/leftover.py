"""What no seat holds, module by module, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torch import nn
from torch.nn.modules.conv import _ConvNd

from frtspec.live.scan.found import FoundSeat, LeftOut
from frtspec.live.scan.tree import Tree, Trouble, joined
from frtspec.live.scan.watch import Watched


def left_out(
    tree: Tree,
    seats: Sequence[FoundSeat],
    rejected: Mapping[str, Trouble],
    seen: Watched | None,
) -> tuple[LeftOut, ...]:
    """Every projection, convolution, norm, attention and stack of weights in no seat, and
    every region that has a structure's shape and failed."""
    claimed = {path for seat in seats for path in seat.claims}
    modules = {p for s in seats if not (s.pattern.route or s.pattern.block) for p in s.modules()}
    # A route takes a function of its module, and none of what the module holds itself.
    routed = {seat.path for seat in seats if seat.pattern.route}
    modules |= {path for path in routed if not tree.modules[path]._parameters}
    rows = []
    for path, module in tree.modules.items():
        kind = _kind(tree, path, module)
        if path in modules or (kind is None and path not in rejected):
            continue
        if kind is not None and _held(tree, path, claimed):
            continue
        why = rejected.get(path) or _why(tree, path, kind or "module", rejected, seen)
        rows.append(LeftOut(path, kind or "region", why.code, why.text))
    rows += [
        LeftOut(path, "module", "shared", f"it is the same module as {first}")
        for path, first in tree.shared.items()
        if _kind(tree, first, tree.modules[first]) is not None
    ]
    return tuple(rows)


def _kind(tree: Tree, path: str, module: nn.Module) -> str | None:
    leaf = tree.leaf(path)
    if leaf is not None and leaf.kind != "activation":
        return {"layer_norm": "norm", "rms_norm": "norm"}.get(leaf.kind, leaf.kind)
    name = type(module).__name__
    if isinstance(module, _ConvNd):
        return "conv"
    own = [p for p in module._parameters.values() if p is not None]
    if "norm" in name.lower() and own:
        return "norm"
    if ("attention" in name.lower() or "attn" in name.lower()) and list(module.children()):
        return "attention"
    if any(p.dim() >= 3 for p in own):
        return "stack"
    if isinstance(module, nn.Embedding):
        return None
    if not own:
        return None
    return "matrix" if any(p.dim() == 2 for p in own) else "vector"


def _held(tree: Tree, path: str, claimed: set[str]) -> bool:
    own = [
        joined(path, name)
        for name, value in tree.modules[path]._parameters.items()
        if value is not None
    ]
    return bool(own) and all(name in claimed for name in own)


def _why(
    tree: Tree, path: str, kind: str, rejected: Mapping[str, Trouble], seen: Watched | None
) -> Trouble:
    trouble = tree.trouble(path)
    if trouble is not None:
        return trouble
    if seen is not None and not seen.calls.get(path):
        if path in seen.functional:
            what = f"its forward is never called; its weight is read by {seen.functional[path]}"
            return Trouble("functional", what)
        return Trouble("uncalled", "its forward was never called in the run")
    for outer in _outer(path):
        if outer in rejected:
            why = rejected[outer]
            return Trouble(why.code, f"it is a part of {outer}: {why.text}")
    return Trouble("no_pattern", _no_pattern(kind, seen))


def _no_pattern(kind: str, seen: Watched | None) -> str:
    if kind == "attention" and seen is None:
        return "what it computes between its projections is a function: only a run shows it"
    if kind == "attention":
        return "what it computes between its projections is a function that no pattern names"
    return f"no structure of the package has a pattern for this {kind}"


def _outer(path: str) -> Iterator[str]:
    while "." in path:
        path = path.rpartition(".")[0]
        yield path

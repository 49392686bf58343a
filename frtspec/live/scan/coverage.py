"""How much of a model the seats hold: by parameters, and by FLOPs of matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from frtspec.live.scan.found import Coverage, FoundSeat
from frtspec.live.scan.tree import Tree
from frtspec.live.scan.watch import Watched


def coverage(tree: Tree, seats: Sequence[FoundSeat], seen: Watched | None) -> Coverage:
    """A parameter counts once, however many modules hold it."""
    claimed = {path for seat in seats for path in seat.claims}
    sizes = {paths[0]: (value, paths) for value, paths in _parameters(tree)}
    total = sum(value for value, _ in sizes.values())
    held = sum(value for value, paths in sizes.values() if claimed & set(paths))
    if seen is not None and seen.total_flops:
        modules = {m for seat in seats if _counts(seat) for m in seat.modules()}
        outermost = [m for m in modules if not any(m.startswith(f"{o}.") for o in modules)]
        seated = sum(seen.flops.get(module, 0) for module in outermost)
        routed = {seat.path for seat in seats if seat.pattern.route is not None}
        seated += sum(_own(path, seen) for path in routed)
        return Coverage(total, held, seen.total_flops, seated, True)
    products = [row for row in _products(tree)]
    flops = sum(2 * size for _, size in products)
    seated = sum(2 * size for path, size in products if path in claimed)
    return Coverage(total, held, flops, seated, False)


def _counts(seat: FoundSeat) -> bool:
    """Whether all that the seat's modules compute is the seat's: a route takes a function of
    its module, a block leaves parts to the host."""
    return seat.pattern.route is None and not seat.pattern.block


def _own(path: str, seen: Watched) -> int:
    """FLOPs of a module outside those below it: of the functions that it looks up."""
    own = seen.flops.get(path, 0)
    inside: list[str] = []
    for name in sorted(seen.flops):
        below = name.startswith(f"{path}.")
        if below and not any(name.startswith(f"{outer}.") for outer in inside):
            inside.append(name)
            own -= seen.flops[name]
    return own


def _parameters(tree: Tree) -> list[tuple[int, tuple[str, ...]]]:
    sizes = {
        id(p): p.numel()
        for m in tree.modules.values()
        for p in m._parameters.values()
        if p is not None
    }
    return [(sizes[key], paths) for key, paths in tree.owners.items()]


def _products(tree: Tree) -> list[tuple[str, int]]:
    """(path, elements) of the weights that a product reads: matrices and stacks of them, but
    no embedding."""
    from torch import nn

    rows = []
    for path, module in tree.modules.items():
        if isinstance(module, nn.Embedding):
            continue
        for name, value in module._parameters.items():
            if value is not None and value.dim() >= 2:
                rows.append((f"{path}.{name}" if path else name, value.numel()))
    return rows

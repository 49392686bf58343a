"""Whole blocks: a structure that owns what a module holds, and leaves parts of it to the host.

A copy of the block with random weights runs on a call that the host's own block had, with
random values in the structure's inputs. The reference runs beside it. A part of the host is
given back what the copy's gave, and has to be called with what the copy's was; then points
and outputs are compared. So all is proven but the inside of the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from frtspec.live.scan.blockproof import Fit, Proof, arguments, leaves_of
from frtspec.live.scan.blocktrace import Call
from frtspec.live.scan.found import FoundSeat
from frtspec.live.scan.prove import made_like, numbers
from frtspec.live.scan.seats import place
from frtspec.live.scan.tree import Tree, Trouble
from frtspec.live.scan.watch import Watched
from frtspec.runtime.hosts.patterns import Pattern
from frtspec.runtime.spec import Boundary, Expect, InputOf, OutputOf, StructureSpec


@dataclass
class Blocks:
    """``rejected`` gains why a block that has the shape of one is none."""

    tree: Tree
    structures: Sequence[StructureSpec]
    seen: Watched
    rejected: dict[str, Trouble]

    def all(self, forward: Callable[[], Any]) -> list[FoundSeat]:
        """Every block that is proven. Runs the model once more where there are candidates."""
        places = list(self._candidates())
        makes = {path: made_like(self.tree.modules[path]) for path, _, _ in places}
        first: dict[Any, str] = {}
        for path, _, _ in places:
            first.setdefault(makes[path], path)
        calls = _calls(self.tree, list(first.values()), forward) if places else {}
        proofs: dict[Any, Fit | Trouble] = {}
        found = []
        for path, structure, pattern in places:
            key = (makes[path], id(pattern))
            if key not in proofs:
                at = first[makes[path]]
                proofs[key] = Proof(self.tree, at, structure, pattern).of(calls.get(at))
            proof = proofs[key]
            if isinstance(proof, Trouble):
                self.rejected.setdefault(path, proof)
            else:
                found.append(self._seat(path, structure, pattern, proof))
        return found

    def _candidates(self) -> Iterator[tuple[str, StructureSpec, Pattern]]:
        """Modules that take what the structure does and hold leaves enough of each kind."""
        patterns = [(s, p) for s in self.structures for p in s.discover if p.block]
        for path, module in self.tree.modules.items():
            if not path or not module._modules or not self.seen.calls.get(path):
                continue
            for structure, pattern in patterns:
                if not arguments(module, pattern) or not _enough(self.tree, path, pattern):
                    continue
                trouble = self.tree.trouble_below(path)
                if trouble is None and self.seen.returns.get(path) == "tensor":
                    yield path, structure, pattern
                elif trouble is not None:
                    at, why = trouble
                    self.rejected.setdefault(path, Trouble(why.code, f"{at}: {why.text}"))

    def _seat(self, path: str, structure: StructureSpec, pattern: Pattern, fit: Fit) -> FoundSeat:
        fit = fit.at(self.tree, path, structure, pattern)
        named = arguments(self.tree.modules[path], pattern) or {}
        ports = {
            n: OutputOf(path) if at.kind == "output" else InputOf(path, named.get(n))
            for n, at in pattern.ports.items()
        }
        leaves = fit.filled.leaves
        return FoundSeat(
            structure=structure,
            pattern=pattern,
            path=path,
            variants=dict(pattern.variants),
            params={**structure.params, **numbers(pattern, leaves)},
            dims=fit.filled.dims,
            slots=fit.filled.slots,
            points={n: place(at, path, leaves) for n, at in pattern.points.items()},
            claims=frozenset(w.path for w in fit.filled.slots.values() if w.path),
            boundary=Boundary(
                path=path,
                inputs={n: at for n, at in ports.items() if n in structure.inputs},
                outputs={n: at for n, at in ports.items() if n in structure.outputs},
            ),
            expects=(
                Expect("class", (type(self.tree.modules[path]).__name__,)),
                Expect("returns", ("tensor",)),
            ),
            proof=f"a copy with random weights: relative distance {fit.distance:.0e}",
        )


def _enough(tree: Tree, path: str, pattern: Pattern) -> bool:
    """Whether each kind of leaf with a name or a weight is there as often as in the pattern."""
    kinds = [leaf.kind for leaf in leaves_of(tree, path)]
    wanted = [role.kind for role in pattern.roles if role.kind == "linear"]
    return all(kinds.count(kind) >= wanted.count(kind) for kind in wanted)


def _calls(tree: Tree, paths: Sequence[str], forward: Callable[[], Any]) -> dict[str, Call]:
    """What each module is called with first, in float32 on the CPU."""
    found: dict[str, Call] = {}

    def see(path: str) -> Callable[..., None]:
        def hook(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if path not in found:
                found[path] = tree_map(_plain, (args, kwargs))

        return hook

    handles = [
        tree.modules[path].register_forward_pre_hook(see(path), with_kwargs=True) for path in paths
    ]
    try:
        with torch.no_grad():
            forward()
    finally:
        for handle in handles:
            handle.remove()
    return found


def _plain(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    value = value.detach().to("cpu", copy=True)
    return value.float() if value.is_floating_point() else value

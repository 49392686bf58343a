"""Standalone proof: a copy of a module with random weights, run beside the structure.

What sizes can't tell (gate or up, which variant, how many experts a row takes) is tried
and decided by numbers. The copy's weights are random, so that a zero or a one in the
host's own can't hide a difference; the host itself is neither run nor changed.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.dims import DimError
from frtspec.live.scan.match import Filled
from frtspec.live.scan.tree import Leaf, Tree
from frtspec.runtime.hosts.patterns import Pattern
from frtspec.runtime.spec import StructureSpec, Weight

CLOSE = 2e-5
"""Relative L2 in float32 within which two computations are one. The two GELUs, the closest
pair that is told apart, differ by ten times as much."""

_LEADS = ((2, 3), (6,))
"""Leading axes that are tried; some towers work on rows without a batch."""

_FREE = 4
_FAILS = (RuntimeError, TypeError, ValueError, AttributeError, IndexError, KeyError, AssertionError)


@dataclass(frozen=True)
class Proven:
    """A filling that computes what the module does. ``number``: which one it is."""

    filled: Filled
    number: int
    variants: Mapping[str, str]
    dims: Mapping[str, int]
    distance: float


@dataclass(frozen=True)
class Unproven:
    """Why no filling does. ``code`` as of ``reasons``."""

    code: str
    reason: str


def prove(
    tree: Tree, path: str, structure: StructureSpec, pattern: Pattern, fillings: Iterable[Filled]
) -> Proven | Unproven:
    """The one filling and choice of variants with which the structure computes what the
    module at ``path`` does, on random inputs and weights."""
    twin = Twin.of(tree.modules[path])
    if twin is None:
        return Unproven("opaque", f"{type(tree.modules[path]).__name__} can't be copied")
    closest: tuple[float, str] | None = None
    found: list[Proven] = []
    untold: str | None = None
    for number, filled in enumerate(fillings):
        chosen = list(choices(structure, pattern, filled))
        if not chosen:
            untold = untold or _untold(tree, pattern, filled)
            continue
        for variants, dims in product(chosen, _dims(tree, path, structure, filled)):
            trial = Trial(structure, pattern, path, filled, variants, dims)
            distance, told = trial.run(twin)
            if distance is not None and distance <= CLOSE:
                found.append(Proven(filled, number, variants, dims, distance))
            elif closest is None or (distance is not None and distance < closest[0]):
                closest = (float("inf") if distance is None else distance, told)
    if found:
        return found[0]
    if closest is not None:
        return Unproven("disagrees", closest[1])
    return Unproven("activation" if untold else "no_pattern", untold or "nothing here fits")


def _untold(tree: Tree, pattern: Pattern, filled: Filled) -> str | None:
    """What an activation is, where it is none that the pattern knows."""
    for role in pattern.roles:
        leaf = filled.leaves.get(role.name)
        if leaf is None or role.kind != "activation":
            continue
        known = {fact for facts in role.tells.values() for fact in facts}
        if not leaf.facts & known:
            wanted = " or ".join(sorted(known))
            return f"its activation is {tree.told(leaf.held)}, and the structure takes {wanted}"
    return None


def made_like(module: nn.Module) -> tuple[Any, ...]:
    """What decides how a module computes, apart from the values of its weights: classes,
    sizes, plain attributes and functions of it and of all below it."""
    rows: list[Any] = []
    for name, inner in module.named_modules():
        plain = {
            key: value if isinstance(value, _PLAIN) else id(value)
            for key, value in inner.__dict__.items()
            if isinstance(value, _PLAIN) or inspect.isroutine(value)
        }
        sizes = [(n, None if p is None else tuple(p.shape)) for n, p in inner._parameters.items()]
        rows.append((name, type(inner), tuple(sorted(plain.items())), tuple(sizes)))
    return tuple(rows)


_PLAIN = (bool, int, float, str, type(None))


# ---------------------------------------------------------------- what is tried


def choices(structure: StructureSpec, pattern: Pattern, filled: Filled) -> Iterator[dict[str, str]]:
    """Every choice of the variants that the cut reads, that fits what was told and what
    is there. Axes outside a seam are not chosen here."""
    axes = structure.variants
    if pattern.seam is not None:
        axes = {a: v for a, v in axes.items() if a in structure.seams[pattern.seam].variants}
    allowed = {axis: list(values) for axis, values in axes.items()}
    for axis, value in pattern.variants.items():
        if axis in allowed:
            allowed[axis] = [value]
    for role in pattern.roles:
        leaf = filled.leaves.get(role.name)
        for axis, facts in role.tells.items() if leaf is not None else ():
            if axis in allowed and leaf is not None:
                told = {facts[fact] for fact in leaf.facts if fact in facts}
                if not leaf.facts and leaf.kind != "activation":
                    continue  # a norm without a weight shows nothing of how it takes one
                allowed[axis] = [value for value in allowed[axis] if value in told]
    for values in product(*allowed.values()):
        chosen = dict(zip(allowed, values, strict=True))
        if _exists(pattern, filled, chosen):
            yield chosen


def _exists(pattern: Pattern, filled: Filled, chosen: Mapping[str, str]) -> bool:
    """Whether exactly those slots are filled that exist with these variants."""
    whole = _Open(chosen)
    if pattern.excluded is not None and whole.asks(pattern.excluded):
        return False
    for role in pattern.roles:
        if role.where == "around":
            continue
        for held in role.holds:
            there = all(slot in filled.slots for slot in held.slots)
            exists = held.when is None or whole.asks(held.when)
            if there != exists and not (exists and held.optional):
                return False
    return True


class _Open(dict[str, str]):
    """Variants where an axis that was not chosen matches nothing."""

    def __missing__(self, axis: str) -> str:
        return ""

    def asks(self, test: Callable[[Mapping[str, str]], bool]) -> bool:
        return test(self)


def _dims(
    tree: Tree, path: str, structure: StructureSpec, filled: Filled
) -> Iterator[dict[str, int]]:
    """The dims of a filling; a size that only the reference takes (how many experts a row
    goes to) is each small number that the module holds."""
    missing = [dim for dim in structure.sizes.values() if dim not in filled.dims]
    if not missing:
        yield dict(filled.dims)
        return
    numbers = sorted(
        {
            value
            for module in tree.modules[path].modules()
            for value in module.__dict__.values()
            if type(value) is int and 1 <= value <= 64
        }
    )
    for values in product(numbers, repeat=len(missing)):
        yield {**filled.dims, **dict(zip(missing, values, strict=True))}


# ---------------------------------------------------------------- running


@dataclass(frozen=True)
class Twin:
    """A float32 copy of a module on the CPU with random weights."""

    module: nn.Module

    @classmethod
    def of(cls, module: nn.Module) -> Twin | None:
        generator = torch.Generator().manual_seed(3)
        memo: dict[int, Any] = {}
        for held in module.parameters():
            memo[id(held)] = nn.Parameter(_random(held.shape, generator), requires_grad=False)
        for buffer in module.buffers():
            memo[id(buffer)] = buffer.detach().cpu()
        for inner in module.modules():  # a config is shared, however large it is
            config = inner.__dict__.get("config")
            memo[id(config)] = config
        try:
            return cls(copy.deepcopy(module, memo).eval())
        except _FAILS:
            return None

    def weight(self, relative: str, weight: Weight) -> Tensor:
        """A slot of the copy, in_out. ``relative``: the parameter's path in the module."""
        value: Tensor = self.module.get_parameter(relative).detach()
        if weight.view == "chunks":
            wanted, *names = weight.args
            parts: tuple[Tensor, ...] = value.chunk(len(names), dim=0)
            value = parts[names.index(wanted)]
        if weight.view == "flat":
            value = value.flatten(1)
        if weight.view == "squeeze":
            value = value.squeeze(0)
        return value.mT if weight.layout == "out_in" else value


@torch.no_grad()
def computes(
    twin: Twin,
    path: str,
    structure: StructureSpec,
    slots: Mapping[str, Weight],
    variants: Mapping[str, str],
    dims: Mapping[str, int],
) -> bool:
    """Whether the copy of the module at ``path`` computes the whole structure, from its first
    input to its one output."""
    name = structure.inputs[0]
    sizes = [
        1 if axis.rows else axis.alternatives[0].value(dims) for axis in structure.shapes[name]
    ]
    generator = torch.Generator().manual_seed(5)
    given = {name: torch.randn(2, 3, *sizes[1:], generator=generator)}
    weights = {s: twin.weight(_relative(w.path, path), w) for s, w in slots.items()}
    extra = {name: dims[dim] for name, dim in structure.sizes.items()}
    try:
        theirs = twin.module(*given.values())
        mine = structure.reference(**given, **weights, **variants, **structure.params, **extra)
    except _FAILS:
        return False
    return (
        isinstance(theirs, Tensor)
        and isinstance(mine, Tensor)
        and mine.shape == theirs.shape
        and float((mine - theirs).norm() / theirs.norm().clamp_min(1e-30)) <= CLOSE
    )


def _random(shape: torch.Size, generator: torch.Generator) -> Tensor:
    """Matrices that keep the size of what they multiply; vectors around a half."""
    if len(shape) < 2:
        return torch.rand(shape, generator=generator) + 0.1
    return torch.randn(shape, generator=generator) / math.sqrt(max(shape[-1], 1))


@dataclass(frozen=True)
class Trial:
    """One filling with one choice of variants and dims."""

    structure: StructureSpec
    pattern: Pattern
    path: str
    filled: Filled
    variants: Mapping[str, str]
    dims: Mapping[str, int]

    def run(self, twin: Twin) -> tuple[float | None, str]:
        """(relative distance between module and structure, what to say of it)."""
        distance, told = self._run(twin, _LEADS[0])
        return (distance, told) if distance is not None else self._run(twin, _LEADS[1])

    @torch.no_grad()
    def _run(self, twin: Twin, lead: tuple[int, ...]) -> tuple[float | None, str]:
        try:
            given = self._inputs(lead)
        except DimError as error:
            return None, str(error)
        name = type(twin.module).__name__
        try:
            theirs = twin.module(*given.values())
        except _FAILS as error:
            return None, f"{name} can't be run on {_shapes(given)}: {type(error).__name__}: {error}"
        if not isinstance(theirs, Tensor):
            return None, f"{name} returns {_kind(theirs)}, and a seat returns a tensor"
        try:
            mine = self._structure(twin, given)
        except _FAILS as error:
            return None, f"{self.structure.key} can't be run: {type(error).__name__}: {error}"
        if not isinstance(mine, Tensor) or mine.shape != theirs.shape:
            return None, f"{name} returns {list(theirs.shape)}"
        distance = float((mine - theirs).norm() / theirs.norm().clamp_min(1e-30))
        spoken = ", ".join(f"{axis} {value}" for axis, value in self.variants.items())
        what = f"{self.structure.key}{f' ({spoken})' if spoken else ''}"
        if math.isnan(distance):
            return None, f"{name} gives NaN on random input"
        return distance, (
            f"{name} computes something else than {what}: relative distance {distance:.1e} on "
            "random input"
        )

    def _inputs(self, lead: tuple[int, ...]) -> dict[str, Tensor]:
        """The values that the module is called with, in the order of its places."""
        generator = torch.Generator().manual_seed(5)
        return {
            name: torch.randn(self._sizes(name, lead), generator=generator)
            for name in self._names()
        }

    def _names(self) -> tuple[str, ...]:
        if self.pattern.seam is not None:
            return self.structure.seams[self.pattern.seam].sources
        inputs = self.structure.inputs
        return tuple(n for n in inputs if n in self.pattern.ports)

    def _sizes(self, name: str, lead: tuple[int, ...]) -> tuple[int, ...]:
        shape = self.structure.shapes.get(name)
        if shape is None:  # a point: it has the shape of the first input
            shape = self.structure.shapes[self.structure.inputs[0]]
        out: list[int] = []
        for axis in shape:
            if axis.rows:
                out += lead
            elif not axis.alternatives:
                out.append(_FREE)
            else:
                sizes = {symbol: self.dims.get(symbol, _FREE) for symbol in axis.symbols()}
                out.append(axis.alternatives[0].value(sizes))
        return tuple(out)

    def _structure(self, twin: Twin, given: Mapping[str, Tensor]) -> Any:
        slots = {
            slot: twin.weight(_relative(weight.path, self.path), weight)
            for slot, weight in self.filled.slots.items()
        }
        params = self._params()
        if self.pattern.seam is not None:
            seam = self.structure.seams[self.pattern.seam]
            used = {n: v for n, v in slots.items() if n in seam.slots}
            own = {n: v for n, v in params.items() if n in seam.params}
            return seam.call(*given.values(), **used, **self.variants, **own)
        sizes = {name: self.dims[dim] for name, dim in self.structure.sizes.items()}
        return self.structure.reference(**given, **slots, **self.variants, **params, **sizes)

    def _params(self) -> dict[str, float]:
        return numbers(self.pattern, self.filled.leaves)


def numbers(pattern: Pattern, leaves: Mapping[str, Leaf]) -> dict[str, float]:
    """Params that the pattern's roles give."""
    return {
        role.gives: leaf.number
        for role in pattern.roles
        if role.gives is not None
        and (leaf := leaves.get(role.name)) is not None
        and leaf.number is not None
    }


def _relative(path: str | None, base: str) -> str:
    assert path is not None
    return path[len(base) + 1 :] if base else path


def _kind(value: object) -> str:
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def _shapes(given: Mapping[str, Tensor]) -> str:
    return ", ".join(str(list(value.shape)) for value in given.values())

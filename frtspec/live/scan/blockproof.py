"""The proof of one block: who is which role, and whether the numbers agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.live.scan import match
from frtspec.live.scan.blocktrace import Call, Differs, Parts, Trace, apart
from frtspec.live.scan.prove import CLOSE, Twin, numbers
from frtspec.live.scan.tree import Leaf, Tree, Trouble, joined
from frtspec.runtime.hosts.patterns import Pattern, Role
from frtspec.runtime.seats.calls import Signature
from frtspec.runtime.spec import StructureSpec, Weight

_FAILS = (RuntimeError, TypeError, ValueError, AttributeError, IndexError, KeyError)


def arguments(module: nn.Module, pattern: Pattern) -> dict[str, str] | None:
    """Port -> the argument that it is, of those that have names; None where one is missing."""
    known = Signature.of(module).names
    out = {}
    for port, at in pattern.ports.items():
        if at.arg is not None:
            names = [n for n in (*pattern.called.get(at.arg, ()), at.arg) if n in known]
            if not names:
                return None
            out[port] = names[0]
    return out


def leaves_of(tree: Tree, path: str) -> list[Leaf]:
    names = [name for name, _ in tree.modules[path].named_modules() if name]
    found = [tree.leaf(at) for name in names if (at := joined(path, name)) in tree.modules]
    return [leaf for leaf in found if leaf is not None]


@dataclass(frozen=True)
class Fit:
    """``roles``: role -> path below the block. ``number``: which of its fillings it is."""

    roles: Mapping[str, str]
    filled: match.Filled
    number: int
    distance: float

    def at(self, tree: Tree, path: str, structure: StructureSpec, pattern: Pattern) -> Fit:
        """The same on another block of the same make."""
        filled = list(_filled(tree, path, structure, pattern, self.roles))[self.number]
        return replace(self, filled=filled)


def _filled(
    tree: Tree,
    path: str,
    structure: StructureSpec,
    pattern: Pattern,
    roles: Mapping[str, str],
) -> Iterator[match.Filled]:
    leaves: dict[str, Leaf] = {}
    for role in pattern.roles:
        at = joined(path, roles[role.name])
        if role.kind == "parameter":
            value = tree.modules[path]._parameters[roles[role.name]]
            assert value is not None
            leaves[role.name] = Leaf(at, "parameter", value, (_bare(value),), ("",))
        else:
            leaf = tree.leaf(at)
            assert leaf is not None
            leaves[role.name] = leaf
    for found in match.solved(structure, list(pattern.roles), leaves):
        slots = dict(found.slots)
        for role in pattern.roles:
            held = leaves[role.name].held
            if role.kind == "parameter" and _bare(held) is not held:
                slot = role.holds[0].slots[0]
                slots[slot] = Weight(slots[slot].path, slots[slot].layout, "squeeze")
        yield replace(found, slots=slots)


def _bare(value: Tensor) -> Tensor:
    """A table without the axis of one row that it is added along."""
    return value.squeeze(0) if value.dim() > 2 and value.shape[0] == 1 else value


@dataclass
class Proof:
    tree: Tree
    path: str
    structure: StructureSpec
    pattern: Pattern
    deepest: int = 0
    agreed: int = 0

    def of(self, call: Call | None) -> Fit | Trouble:
        module = self.tree.modules[self.path]
        if not self._tables():
            return Trouble("no_pattern", self._tableless())
        twin = Twin.of(module)
        if twin is None or call is None:
            return Trouble("opaque", f"{type(module).__name__} can't be copied")
        try:
            given, call = self._given(module, call)
            trace = Trace()
            theirs = trace.run(twin, call)
        except _FAILS as error:
            told = f"{type(module).__name__} can't be run on inputs of {self.structure.key}"
            return Trouble("disagrees", f"{told}: {type(error).__name__}: {error}")
        closest: dict[int, str] = {}  # how many values agreed before -> what did not
        for roles in self._ordered(trace):
            fillings = _filled(self.tree, self.path, self.structure, self.pattern, roles)
            for number, filled in enumerate(fillings):
                try:
                    distance = self._compare(twin, trace, given, theirs, filled, roles)
                    return Fit(roles, filled, number, distance)
                except Differs as differs:
                    closest.setdefault(self.agreed, str(differs))
        if closest:
            return Trouble("disagrees", closest[max(closest)])
        return Trouble("no_pattern", self._missing())

    def _missing(self) -> str:
        roles = self._called_roles()
        role = roles[min(self.deepest, len(roles) - 1)]
        return (
            f"it calls no {role.kind} that could be `{role.name}` of {self.structure.key}, in "
            "the order that its pattern has"
        )

    def _tableless(self) -> str:
        held = [role.holds[0].slots[0] for role in self.pattern.roles if role.kind == "parameter"]
        return f"it holds no parameter of its own for {', '.join(held)} of {self.structure.key}"

    def _given(self, module: nn.Module, call: Call) -> tuple[dict[str, Tensor], Call]:
        """Random values for the structure's inputs, and the call with them in their places."""
        args, kwargs = list(call[0]), dict(call[1])
        names = Signature.of(module).names
        named = arguments(module, self.pattern) or {}
        generator = torch.Generator().manual_seed(5)
        given: dict[str, Tensor] = {}
        for port in self.pattern.ports:
            if port not in self.structure.inputs:
                continue
            name = named.get(port, names[0])
            position = names.index(name)
            if not given:
                shape = (args[0] if args else kwargs[name]).shape
                lead, width = shape[:-1], shape[-1]
            else:
                axes = self.structure.shapes[port][len(lead) :]
                known = {symbol: width for axis in axes for symbol in axis.symbols()}
                shape = (*lead, *(axis.alternatives[0].value(known) for axis in axes))
            given[port] = torch.randn(shape, generator=generator)
            if position < len(args):
                args[position] = given[port]
            else:
                kwargs[name] = given[port]
        return given, (tuple(args), kwargs)

    # ------------------------------------------------------------ who is which role

    def _called_roles(self) -> list[Role]:
        return [role for role in self.pattern.roles if role.kind != "parameter"]

    def _tables(self) -> list[str]:
        """The module's own parameters that could be the pattern's."""
        held = self.tree.modules[self.path]._parameters
        ranks = {
            len(self.structure.shapes[role.holds[0].slots[0]])
            for role in self.pattern.roles
            if role.kind == "parameter"
        }
        return [n for n, p in held.items() if p is not None and _bare(p).dim() in ranks]

    def _ordered(self, trace: Trace) -> Iterator[dict[str, str]]:
        """Every way to give the roles leaves, in the order in which they are called."""
        times = trace.entered()
        leaves = [
            (times[name], name, leaf)
            for leaf in leaves_of(self.tree, self.path)
            if (name := leaf.relative(self.path)) in times
        ]
        leaves.sort(key=lambda row: row[0])
        tables = [role.name for role in self.pattern.roles if role.kind == "parameter"]
        for table in self._tables():
            for found in self._from(0, leaves, {}):
                yield {**dict.fromkeys(tables, table), **found}

    def _from(
        self, start: int, leaves: Sequence[tuple[int, str, Leaf]], chosen: dict[str, str]
    ) -> Iterator[dict[str, str]]:
        roles = self._called_roles()
        self.deepest = max(self.deepest, len(chosen))
        if len(chosen) == len(roles):
            yield dict(chosen)
            return
        role = roles[len(chosen)]
        for at in range(start, len(leaves)):
            _, name, leaf = leaves[at]
            if _fits(role, name, leaf):
                yield from self._from(at + 1, leaves, {**chosen, role.name: name})

    # ------------------------------------------------------------ numbers

    def _compare(
        self,
        twin: Twin,
        trace: Trace,
        given: Mapping[str, Tensor],
        theirs: Any,
        filled: match.Filled,
        roles: Mapping[str, str],
    ) -> float:
        """The largest distance of any point and output. Raises Differs where one is far."""
        self.agreed = 0
        eps = {leaf.number for leaf in filled.leaves.values() if leaf.number is not None}
        if len(eps) > 1:
            raise Differs(f"its norms have {len(eps)} different eps, and the structure has one")
        times = trace.entered()
        inside = {name for r, name in roles.items() if name in times}
        found = {n: times[roles[at.role]] for n, at in self.pattern.points.items() if at.role}
        distances: list[float] = []

        def record(point: str, value: Tensor) -> None:
            if point in found:
                distances.append(self._near(f"at `{point}`", value, trace.events[found[point]][2]))

        parts = Parts(trace, times, inside)
        weights = {
            slot: twin.weight(weight.path[len(self.path) + 1 :], weight)
            for slot, weight in filled.slots.items()
            if weight.path is not None
        }
        try:
            mine = self.structure.reference(
                **given,
                **weights,
                **{name: parts.part(name) for name in self.structure.parts},
                **self.pattern.variants,
                **{**self.structure.params, **numbers(self.pattern, filled.leaves)},
                record=record,
            )
        except _FAILS as error:
            raise Differs(f"{self.structure.key} can't be run: {error}") from error
        outputs = mine if isinstance(mine, tuple) else (mine,)
        there = [value for value in outputs if value is not None]
        if len(there) != 1:
            raise Differs("it has one output, and the structure has several")
        distances.append(self._near("in what it returns", there[0], theirs))
        return max(distances)

    def _near(self, where: str, mine: Tensor, theirs: Any) -> float:
        distance = apart(mine, theirs)
        if distance <= CLOSE:
            self.agreed += 1
            return distance
        raise Differs(
            f"{type(self.tree.modules[self.path]).__name__} computes something else than "
            f"{self.structure.key} {where}: relative distance {distance:.1e} on random input"
        )


def _fits(role: Role, name: str, leaf: Leaf) -> bool:
    if leaf.kind != role.kind:
        return False
    names = [n for several in role.called for n in several]
    if names and name.rpartition(".")[2] not in names:
        return False
    present = [weight for weight in leaf.weights if weight is not None]
    return len(present) <= len(role.holds)

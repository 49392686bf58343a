"""Slots that are structures: which one is meant, what of it is settled, how it is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

from frtspec.ir import decl as ir
from frtspec.ir import expr as irx
from frtspec.ir.canon import contract_digest
from frtspec.ir.types import Tensor
from frtspec.sema.combos import Combo, combos
from frtspec.sema.context import Context, listing
from frtspec.sema.target import Built, Target, resolve
from frtspec.sema.typing import infer
from frtspec.syntax import ast

if TYPE_CHECKING:
    from frtspec.sema.exprs import Exprs

INNER = "FRT0321"
TOO_LARGE = "FRT0317"

MOST = 64
"""Structures that one can be made of, on all levels together: a reader follows no more, and
what is called twice on each of many levels would grow without end."""


@dataclass
class Compositions:
    """The composition slots of one structure, by name."""

    context: Context
    structures: Mapping[str, Mapping[int, Built]]
    slots: dict[str, ir.Inner] = field(default_factory=dict)
    broken: bool = False
    count: int = 0

    def add(self, node: ast.SlotDecl) -> None:
        """Resolve one slot; what can't be resolved was reported and has no entry."""
        assert node.structure is not None
        target = resolve(self.context, node.structure, self.structures)
        if target is None:
            return
        self.count += 1 + made_of(target.structure)
        if self.count > MOST:
            message = f"with slot `{node.name.id}` this is made of more than {MOST} structures"
            help = "make what belongs together one structure with a reference of its own"
            self.context.error(TOO_LARGE, message, node.name.span, help=help)
            return
        pins = self._pins(node, target)
        if node.index is not None or node.dims is not None:
            message = "a slot that is a structure has no shape and is not repeated"
            help = f"write `slot {node.name.id} : structure …`; of several, each is a slot"
            self.context.error(INNER, message, node.name.span, help=help)
        inner = ir.Inner(
            name=target.structure.name,
            version=target.structure.version,
            seam=None if target.seam is None else target.seam.name,
            pins=pins,
            digest=contract_digest(target.structure),
            inputs=(),
            outputs=(),
            whole=target.structure,
        )
        if target.seam is None:
            order = sorted(target.structure.inputs, key=lambda p: p.optional or p.when is not None)
            inner = replace(inner, inputs=tuple(order), outputs=target.structure.outputs)
        else:
            sources = _edges(inner, target.seam.sources)
            targets = _edges(inner, target.seam.targets)
            inner = replace(inner, inputs=sources, outputs=targets)
        self.slots[node.name.id] = inner

    def _pins(self, node: ast.SlotDecl, target: Target) -> tuple[tuple[str, str], ...]:
        known = {variant.name: variant.values for variant in target.variants}
        out: dict[str, str] = {}
        for pin in node.pins:
            if isinstance(pin, ast.ErrorNode):
                continue
            if not isinstance(pin, ast.Is) or len(pin.values) != 1:
                message = "what is settled about a slot is written `axis is value`"
                help = "one value for an axis; what is left open is set by the seat"
                self.context.error(INNER, message, pin.span, help=help)
            elif pin.axis.id not in known:
                self.context.unknown("variant", pin.axis, known)
            elif pin.values[0].id not in known[pin.axis.id]:
                values = known[pin.axis.id]
                self.context.unknown(f"value of variant {pin.axis.id}", pin.values[0], values)
            elif pin.axis.id in out:
                message = f"`{pin.axis.id}` is settled twice"
                self.context.error("FRT0208", message, pin.span, help="leave one of the two out")
            else:
                out[pin.axis.id] = pin.values[0].id
        if len(out) < len(node.pins):  # what it leaves open is not known
            self.context.dropped.add((node.name.id,))
        return tuple(out.items())


def made_of(structure: ir.Structure) -> int:
    """How many structures one is made of, on all levels together."""
    inner = [slot.inner.whole for slot in structure.slots if slot.inner is not None]
    return len(inner) + sum(made_of(one) for one in inner)


def settled(inner: ir.Inner) -> Iterator[dict[str, str]]:
    """Every choice of variants of an inner structure that its pins leave."""
    pins = dict(inner.pins)
    axes = [
        [(v.name, value) for value in ((pins[v.name],) if v.name in pins else v.values)]
        for v in inner.whole.variants
    ]
    for values in product(*axes):
        plain = Combo(values, frozenset())
        if not any(plain.holds(cond) for cond in inner.whole.excluded):
            yield dict(values)


def _edges(inner: ir.Inner, names: tuple[str, ...]) -> tuple[ir.Port, ...]:
    """The ends of a seam as ports."""
    pins = set(inner.pins)
    types: dict[str, Tensor] = {}
    for combo in combos(inner.whole):
        if types.keys() >= set(names):
            break
        if pins <= set(combo.variants):
            found = infer(inner.whole, combo).values
            for name in names:
                value = found.get(name)
                if isinstance(value, Tensor):
                    types.setdefault(name, value)
    seam = inner.whole.seam(inner.seam or "")
    return tuple(
        ir.Port(
            direction="in",
            name=name,
            index=None,
            optional=False,
            shape=types[name].shape,
            dtype=types[name].dtype,
            scale=None,
            default=None,
            updates=None,
            aliases=None,
            when=None,
            span=seam.span,
        )
        for name in names
        if name in types
    )


# ---------------------------------------------------------------- calls


@dataclass
class InnerCall:
    """``ffn(h)`` or ``norm(x, cond).gate``: an inner structure called in a reference."""

    exprs: Exprs
    node: ast.Call
    depth: int

    def build(self, output: ast.Name | None) -> irx.Expr:
        """The call; ``output``: which of several outputs is meant."""
        name, node, exprs = self.node.func.id, self.node, self.exprs
        exprs.context.use("part", name)
        inner = exprs.inner[name]
        given = self._given(inner)
        if given is None:
            return irx.Invalid(node.span)
        chosen = self._output(inner, frozenset(given), output)
        if chosen is None or not self._fits(inner, frozenset(given)):
            return irx.Invalid(node.span)
        if any(isinstance(value, irx.Invalid) for value in given.values()):
            return irx.Invalid(node.span)
        attrs: dict[str, irx.Attr] = {"given": tuple(given), "output": chosen}
        called = irx.Ref(name, "inner", None, node.func.span)
        return irx.Op("inner", (called, *given.values()), tuple(sorted(attrs.items())), node.span)

    def _given(self, inner: ir.Inner) -> dict[str, irx.Expr] | None:
        """Input -> what it is given; None when the arguments don't fit the inputs."""
        names = [port.name for port in inner.inputs]
        given: dict[str, irx.Expr] = {}
        right = True
        for place, arg in enumerate(self.node.args):
            if isinstance(arg.value, ast.Granularity | ast.OverDim | ast.EachExpr):
                right = False
                continue
            value = self.exprs.expr(arg.value, self.depth + 1)
            wanted = names[place] if arg.name is None and place < len(names) else None
            if arg.name is not None:
                wanted = arg.name.id if arg.name.id in names else None
            if wanted is None or wanted in given:
                right = False
            else:
                given[wanted] = value
        if right:
            return given
        written = f"{self.node.func.id}({', '.join(names)})"
        message = f"`{self.node.func.id}` is called {written}"
        help = "give its inputs in this order, or by name; no other arguments"
        self.exprs.bad("FRT0310", message, self.node.span, help)
        return None

    def _fits(self, inner: ir.Inner, given: frozenset[str]) -> bool:
        """Whether what is given is what the inner structure takes, however it is set."""
        for port in inner.inputs:
            there = _existence(inner, port, given)
            if port.name in given and False in there:
                self._unsettled(inner, port, "is given")
                return False
            if port.name not in given and not port.optional and True in there:
                if False in there:
                    self._unsettled(inner, port, "is not given")
                else:
                    message = f"`{self.node.func.id}` needs `{port.name}`"
                    help = f"write `{self.node.func.id}({port.name} = …)`"
                    self.exprs.bad("FRT0310", message, self.node.span, help)
                return False
        return True

    def _output(
        self, inner: ir.Inner, given: frozenset[str], output: ast.Name | None
    ) -> str | None:
        there = {p.name: _existence(inner, p, given) for p in inner.outputs}
        certain = [name for name, found in there.items() if True in found]
        if output is None and len(certain) != 1:
            self.exprs.bad(
                "FRT0310",
                f"`{self.node.func.id}` has {len(certain)} outputs: which one is meant?",
                self.node.span,
                f"write {listing([f'{self.node.func.id}(…).{name}' for name in certain])}",
            )
            return None
        name = certain[0] if output is None else output.id
        if name not in there:
            assert output is not None
            self.exprs.context.unknown("output", output, certain)
            return None
        port = next(p for p in inner.outputs if p.name == name)
        if False in there[name]:
            self._unsettled(inner, port, "is read")
            return None
        return name

    def _unsettled(self, inner: ir.Inner, port: ir.Port, what: str) -> None:
        if self.node.func.id in self.exprs.context.dropped:
            return
        self.exprs.bad(
            INNER,
            f"`{port.name}` of `{self.node.func.id}` {what}, and it exists in some variants of "
            f"{inner.name} only",
            self.node.span,
            f"settle them: slot {self.node.func.id} : structure {inner.name} … with (axis is value)",
        )


def _existence(inner: ir.Inner, port: ir.Port, given: frozenset[str]) -> set[bool]:
    """Whether a port exists, over every choice that the pins leave."""
    return {Combo(tuple(v.items()), given).holds(port.when) for v in settled(inner)}

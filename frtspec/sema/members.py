"""Members of a structure other than its reference."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from frtspec.ir import decl as ir
from frtspec.ir import expr as irx
from frtspec.ir import words
from frtspec.ir.types import DTYPES
from frtspec.sema.common import metrics, named_once, one_of, only_one
from frtspec.sema.context import Context
from frtspec.sema.exprs import Exprs
from frtspec.sema.scope import Scope
from frtspec.sema.sizes import Sizes, whole
from frtspec.syntax import ast

T = TypeVar("T")


@dataclass
class Members:
    """Reads members one by one. ``unknown``: ports and slots whose type was reported."""

    context: Context
    scope: Scope
    exprs: Exprs
    nodes: tuple[object, ...]
    unknown: set[str] = field(default_factory=set)
    vague: bool = False
    """Whether a condition of a port or slot was reported, so that what exists is open."""

    def all_of(self, kind: type[T]) -> list[T]:
        return [m for m in self.nodes if isinstance(m, kind)]

    def index(self, node: ast.IndexDecl) -> ir.IndexVar:
        ends = [
            whole(end.value) if isinstance(end, ast.Number) else None
            for end in (node.range.lo, node.range.hi)
        ]
        lo, hi = ends[0], ends[1]
        if lo is None or hi is None:
            message = "the range of an index is written in whole numbers"
            self.context.error("FRT0312", message, node.range.span)
            return ir.IndexVar(node.name.id, 1, 1, node.span)
        hi = hi if node.range.inclusive else hi - 1
        if hi < lo or lo < 1:
            problem = "is empty" if hi < lo else "starts below 1"
            message = f"the range of index `{node.name.id}` {problem}"
            self.context.error("FRT0312", message, node.range.span)
        return ir.IndexVar(node.name.id, lo, hi, node.span)

    def param(self, node: ast.ParamDecl) -> ir.Param:
        default = None
        if node.default is not None:
            value = self.exprs.expr(node.default)
            negative = isinstance(value, irx.Op) and value.op == "neg"
            inner = value.args[0] if isinstance(value, irx.Op) and negative else value
            if isinstance(inner, irx.Const):
                default = -inner.value if negative else inner.value
            elif not isinstance(inner, irx.Invalid):
                message = f"the default of param `{node.name.id}` is a number"
                self.context.error("FRT0310", message, node.default.span)
        return ir.Param(node.name.id, default, node.span)

    def at_index(self, index: ast.Name | None) -> Sizes:
        """Sizes in a declaration that is repeated over ``index``."""
        if index is not None:
            symbol = self.scope.find(index.id)
            if symbol is None or symbol.kind != "index":
                known = [m.name.id for m in self.all_of(ast.IndexDecl)]
                self.context.unknown("index", index, known)
            self.context.use("index", index.id)
        sizes = self.exprs.sizes
        return Sizes(self.context, sizes.dims, sizes.indexed, None if index is None else index.id)

    def port(self, node: ast.PortDecl) -> ir.Port:
        shape = self.at_index(node.index).shape(node.dims)
        self.extra_modifiers(node)
        default = None
        if node.default is not None:
            default = node.default.id if isinstance(node.default, ast.Name) else None
            if default not in ("zeros", "ones"):
                message = "an absent input stands for `zeros` or `ones`"
                self.context.error("FRT0310", message, node.default.span)
                default = "zeros"
        for target in (node.updates, node.aliases):
            if target is not None:
                inputs = [m.name.id for m in self.all_of(ast.PortDecl) if m.direction == "in"]
                if target.id not in inputs:
                    self.context.unknown("input", target, inputs)
        dtype = one_of(self.context, "dtype", node.type.name, DTYPES)
        if shape is None or dtype is None:
            self.unknown.add(node.name.id)
            shape, dtype = shape or (), dtype or "host"
        return ir.Port(
            direction=node.direction,
            name=node.name.id,
            index=None if node.index is None else node.index.id,
            optional=node.optional,
            shape=shape,
            dtype=dtype,
            scale=None if node.type.scale is None else node.type.scale.id,
            default=default,
            updates=None if node.updates is None else node.updates.id,
            aliases=None if node.aliases is None else node.aliases.id,
            when=self.when(node),
            span=node.name.span,
        )

    def when(self, node: ast.PortDecl | ast.SlotDecl) -> irx.Cond | None:
        """The condition of a port or slot; one that was reported leaves its type open."""
        if node.when is None:
            return None
        cond = self.exprs.cond(node.when)
        if cond is None:
            self.unknown.add(node.name.id)
            self.vague = True
        return cond

    def extra_modifiers(self, node: ast.PortDecl) -> None:
        """Modifiers that the other direction has."""
        if node.direction == "in":
            wrong = [("updates", node.updates), ("aliases", node.aliases)]
        else:
            wrong = [("?", node.name if node.optional else None)]
        for word, at in wrong:
            if at is not None:
                message = f"`{word}` has no meaning on an {node.direction}put"
                self.context.error("FRT0314", message, at.span)
        if node.direction == "out" and node.default is not None:
            message = "a default has no meaning on an output"
            self.context.error("FRT0314", message, node.default.span)
        if node.default is not None and not node.optional and node.direction == "in":
            self.context.error(
                "FRT0314",
                f"input `{node.name.id}` is always given: its default is never used",
                node.default.span,
                help=f"write `in {node.name.id}? …`, or leave the default out",
            )

    def slot(self, node: ast.SlotDecl) -> ir.Slot:
        sizes = self.at_index(node.index)
        shape = None if node.dims is None else sizes.shape(node.dims)
        for item in node.dims or ():
            if item.rows or not item.alternatives:
                word = "rows" if item.rows else "*"
                message = f"a weight has axes of its own size: `{word}` has no place here"
                self.context.error("FRT0301", message, item.span)
        dtype = None
        if node.type is not None:
            dtype = one_of(self.context, "dtype", node.type.name, DTYPES)
        inner = self.exprs.inner.get(node.name.id)
        if (shape is None and inner is None) or (node.type is not None and dtype is None):
            self.unknown.add(node.name.id)
        return ir.Slot(
            name=node.name.id,
            index=None if node.index is None else node.index.id,
            optional=node.optional,
            shape=shape,
            dtype=dtype,
            inner=inner,
            when=self.when(node),
            span=node.name.span,
        )

    def part(self, node: ast.PartDecl) -> ir.Part:
        return ir.Part(
            node.name.id,
            tuple(p.id for p in node.params),
            tuple(r.id for r in node.results),
            None if node.when is None else self.exprs.cond(node.when),
            node.name.span,
        )

    def variant(self, node: ast.VariantDecl) -> ir.Variant:
        named_once(self.context, f"value of variant {node.name.id}", node.values)
        values = tuple(dict.fromkeys(v.id for v in node.values))
        default = node.default
        if default is not None and default.id not in values:
            self.context.unknown(f"value of variant {node.name.id}", default, values)
        for value in node.retired:
            if value.id in values:
                message = f"`{value.id}` is retired: its name cannot be used again"
                self.context.error("FRT0204", message, value.span)
        return ir.Variant(
            node.name.id,
            values,
            None if default is None else default.id,
            tuple(v.id for v in node.retired),
            node.name.span,
        )

    def excluded(self) -> tuple[irx.Cond, ...]:
        decls = self.all_of(ast.CombinationsDecl)
        only_one(self.context, decls, "combinations")
        conds = [self.exprs.cond(c) for d in decls for c in d.excluded]
        return tuple(c for c in conds if c is not None)

    def gates(self) -> tuple[ir.Gate, ...]:
        out: list[ir.Gate] = []
        for node in self.all_of(ast.GateDecl):
            kind = one_of(self.context, "gate", node.kind, words.GATE_KINDS)
            if kind is None:
                continue
            if kind in {gate.kind for gate in out}:
                message = f"gate {kind} is given twice"
                self.context.error("FRT0208", message, node.kind.span)
            out.append(self.gate(kind, node))
        return tuple(out)

    def gate(self, kind: str, node: ast.GateDecl) -> ir.Gate:
        known: Iterable[str] = words.METRICS if kind == "boundary" else words.LATENCY_RULES
        bounds = metrics(self.context, node.metrics, known, f"gate {kind}")
        if kind == "boundary" and not any(b.op for b in bounds) and not self.context.dropped:
            self.context.error(
                "FRT0316",
                "this gate judges nothing: no metric has a bound",
                node.span,
                help="write one, such as `cosine >= 0.999`",
            )
        extras = {
            "on": (node.on, "distribution", words.DISTRIBUTIONS, "boundary"),
            "per": (node.per, "unit of judging", words.LATENCY_PER, "latency"),
            "including": (node.including, "cost", words.INCLUDING, "latency"),
        }
        found: dict[str, str | None] = {}
        for word, (name, what, table, belongs) in extras.items():
            found[word] = None if name is None else one_of(self.context, what, name, table)
            if name is not None and belongs != kind:
                message = f"`{word}` has no meaning in a gate {kind}"
                self.context.error("FRT0316", message, name.span)
        named_once(self.context, "baseline", node.against)
        against = [one_of(self.context, "baseline", n, words.BASELINES) for n in node.against]
        return ir.Gate(
            kind,
            found["on"],
            found["per"],
            bounds,
            found["including"],
            tuple(dict.fromkeys(a for a in against if a is not None)),
            node.span,
        )

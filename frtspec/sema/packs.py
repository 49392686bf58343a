"""Packs: weights as a form stores them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from frtspec.diag.source import Span
from frtspec.dims import DimError
from frtspec.ir import decl as ir
from frtspec.ir import expr as irx
from frtspec.ir import words
from frtspec.ir.opcall import OpCall
from frtspec.ir.ops import OPS
from frtspec.ir.types import OpError, Tensor, Unknown, ValueType
from frtspec.ir.walk import parts
from frtspec.sema.common import granularity, one_of
from frtspec.sema.context import Context
from frtspec.sema.sizes import Sizes
from frtspec.sema.target import Target
from frtspec.sema.typing import summed
from frtspec.syntax import ast

PACK = "FRT0401"
HOW = "a pack is built from slots by .T, cat(…), cat(each i => …) and quantize(…, format, per …)"


@dataclass
class Packs:
    """Builds the packs of one impl."""

    context: Context
    target: Target
    sizes: Sizes
    packed: dict[str, ast.Name] = field(default_factory=dict)

    def build(self, nodes: Sequence[ast.PackDecl]) -> tuple[ir.Pack, ...] | None:
        """Every pack; None when one of them was reported."""
        built = [self.pack(node) for node in nodes]
        return None if None in built else tuple(b for b in built if b is not None)

    def pack(self, node: ast.PackDecl) -> ir.Pack | None:
        value, format, grain = node.value, None, None
        if isinstance(value, ast.Call) and value.func.id == "quantize":
            opened = self.quantize(value)
            if opened is None:
                return None
            value, format, grain = opened
        expr = self.expr(value, None)
        if isinstance(expr, irx.Invalid):
            return None
        flips = {self.flipped(leaf) for leaf in self.leaves(expr)}
        if len(flips) > 1:
            self.bad("the parts of a pack are all transposed or none is", node.value.span)
            return None
        try:
            type_ = self.type_of(expr)
        except (OpError, DimError) as error:
            self.bad(str(error), node.value.span)
            return None
        if format is not None and isinstance(type_, Tensor) and len(type_.shape) != 2:
            self.bad(f"`quantize` packs a matrix, not {type_}", node.value.span)
            return None
        if format is not None and grain is not None:
            attrs: tuple[tuple[str, irx.Attr], ...] = (
                ("format", format),
                ("granularity", (grain[0], str(grain[1] or ""))),
            )
            expr = irx.Op("quantize", (expr,), attrs, node.value.span)
        slots = [p.name for p in parts(expr) if isinstance(p, irx.Ref)]
        index = None if node.index is None else node.index.id
        return ir.Pack(
            node.name.id, expr, format, grain, tuple(slots), index, flips == {True}, node.span
        )

    def bad(self, message: str, span: Span, help: str = HOW) -> None:
        self.context.error(PACK, message, span, help=help)

    def quantize(self, call: ast.Call) -> tuple[ast.Expr, str, tuple[str, int | None]] | None:
        """The operand, format and granularity of ``quantize(E, fp8_e4m3, per tensor)``."""
        plain = [a.value for a in call.args if a.name is None]
        if len(plain) != 3 or len(call.args) != 3:
            self.bad("`quantize` takes a weight, a format and a granularity", call.span)
            return None
        value, format, grain = plain
        if not isinstance(format, ast.Name) or not isinstance(grain, ast.Granularity):
            self.bad("`quantize` takes a weight, a format and a granularity", call.span)
            return None
        kind = one_of(self.context, "format", format, words.FORMATS)
        per = granularity(self.context, grain, words.GRANULARITIES, PACK)
        if kind is None or per is None or isinstance(value, ast.Granularity | ast.OverDim):
            return None
        return value, kind, per

    def expr(self, node: object, index: str | None) -> irx.Expr:
        """Slots, transposes and joins; anything else is no pack."""
        span: Span = node.span  # type: ignore[attr-defined]
        match node:
            case ast.Name():
                return self.slot(node, None, node)
            case ast.Index(base=ast.Name() as base, items=(ast.Name(id=item),)):
                if item != index:
                    self.bad(f"`{base.id}[{item}]` needs `each {item} => …` around it", span)
                    return irx.Invalid(span)
                return self.slot(base, item, node)
            case ast.Field(base=base, name=ast.Name(id="T")):
                inner = self.expr(base, index)
                if isinstance(inner, irx.Invalid):
                    return inner
                return irx.Op("transpose", (inner,), (), span)
            case ast.Call(func=ast.Name(id="cat"), args=args):
                built = [self.part(arg.value) for arg in args if arg.name is None]
                if any(arg.name is not None for arg in args) or not built:
                    self.bad("`cat` in a pack joins along the first axis", span)
                    return irx.Invalid(span)
                if any(isinstance(item, irx.Invalid) for item in built):
                    return irx.Invalid(span)
                return irx.Op("cat", tuple(built), (("axis", 0),), span)
            case ast.ErrorNode():
                return irx.Invalid(span)
            case _:
                self.bad("this is no pack", span)
                return irx.Invalid(span)

    def part(self, node: object) -> irx.Expr:
        if not isinstance(node, ast.EachExpr):
            return self.expr(node, None)
        known = [i.name for i in self.target.structure.indexes]
        if node.index.id not in known:
            self.context.unknown("index", node.index, known)
            return irx.Invalid(node.span)
        inner = self.expr(node.value, node.index.id)
        if isinstance(inner, irx.Invalid):
            return inner
        return irx.EachOf(node.index.id, inner, node.span)

    def slot(self, name: ast.Name, index: str | None, node: ast.Name | ast.Index) -> irx.Expr:
        slots = {s.name: s for s in self.target.slots}
        found = slots.get(name.id)
        if found is None:
            self.context.unknown("slot", name, slots)
            return irx.Invalid(node.span)
        if found.index != index:
            how = f"each {found.index} => {name.id}[{found.index}]"
            message = f"slot `{name.id}` is {'' if found.index else 'not '}repeated"
            self.bad(message, node.span, f"cat({how})" if found.index else HOW)
            return irx.Invalid(node.span)
        before = self.packed.setdefault(name.id, name)
        if before is not name:
            self.context.error(
                PACK,
                f"slot `{name.id}` is packed twice",
                name.span,
                notes=((before.span, "first here"),),
                help="every rung reads the one pack a slot is in",
            )
        return irx.Ref(name.id, "slot", index, node.span)

    def leaves(self, expr: irx.Expr) -> list[irx.Expr]:
        """The parts that are joined: slots, each with its transposes around it."""
        match expr:
            case irx.Op(op="cat", args=args):
                return [leaf for arg in args for leaf in self.leaves(arg)]
            case irx.EachOf(value=value):
                return self.leaves(value)
            case _:
                return [expr]

    def flipped(self, leaf: irx.Expr) -> bool:
        count = sum(isinstance(p, irx.Op) and p.op == "transpose" for p in parts(leaf))
        return count % 2 == 1

    def type_of(self, expr: irx.Expr) -> ValueType:
        """The type of a pack before quantisation. Raises what the rules raise."""
        match expr:
            case irx.Ref(name=name):
                slot = next(s for s in self.target.slots if s.name == name)
                return Unknown() if slot.shape is None else Tensor(slot.shape, slot.dtype or "host")
            case irx.EachOf(index=index, value=value):
                total = summed(self.type_of(value), index, 0)
                if total is None:
                    raise OpError("shape", f"the sizes of `each {index}` cannot be added up")
                return total
            case irx.Op(op=op, args=args, attrs=attrs):
                types = tuple(self.type_of(arg) for arg in args)
                if any(isinstance(t, Unknown) for t in types):
                    return Unknown()
                return OPS[op].rule(OpCall(op, types, dict(attrs)))
            case _:
                return Unknown()

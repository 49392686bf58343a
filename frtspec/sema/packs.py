"""Packs: weights as a form stores them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from frtspec.diag.source import Span
from frtspec.dims import DimError, divides
from frtspec.ir import decl as ir
from frtspec.ir import expr as irx
from frtspec.ir import words
from frtspec.ir.opcall import OpCall
from frtspec.ir.ops import OPS
from frtspec.ir.types import OpError, Tensor, Unknown, ValueType
from frtspec.ir.walk import parts
from frtspec.sema.common import granularity, one_of
from frtspec.sema.context import Context
from frtspec.sema.repeated import summed
from frtspec.sema.scales import fitting
from frtspec.sema.target import Target
from frtspec.syntax import ast

PACK, LAYOUT = "FRT0401", "FRT0411"
HOW = (
    "a pack is built from slots by .T, cat(…), cat(each i => …), bf16(…), fp16(…) and "
    "quantize(…, format, per …)"
)


_NO_VALUE = (ast.Granularity, ast.OverDim, ast.EachExpr)
_TILES = ("fp8_e4m3", "block")
"""What is cut along both sides of a matrix; every other size cuts rows."""


@dataclass
class Packs:
    """Builds the packs of one impl.

    ``balances``: pack -> the scale that it is balanced by, as written. ``needs``: rules on
    dims that the packs' granularities bring along. ``torn``: a slot went to two packs, so
    which weights the other one holds is not known.
    """

    context: Context
    target: Target
    packed: dict[str, ast.Name] = field(default_factory=dict)
    balances: dict[str, ast.Name] = field(default_factory=dict)
    needs: list[ir.Need] = field(default_factory=list)
    torn: bool = False

    def build(self, nodes: Sequence[ast.PackDecl]) -> tuple[ir.Pack, ...] | None:
        """Every pack; None when one of them was reported."""
        built = [self.pack(node) for node in nodes]
        whole = not self.torn and None not in built
        return tuple(b for b in built if b is not None) if whole else None

    def pack(self, node: ast.PackDecl) -> ir.Pack | None:
        opened = self.opened(node)
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
        if format is not None and grain is not None:
            if not self.quantisable(node, type_, format, grain, flips == {True}):
                return None
            attrs: tuple[tuple[str, irx.Attr], ...] = (
                ("format", format),
                ("granularity", (grain[0], str(grain[1] or ""))),
            )
            expr = irx.Op("quantize", (expr,), attrs, node.value.span)
        slots = [p.name for p in parts(expr) if isinstance(p, irx.Ref)]
        index = None if node.index is None else node.index.id
        by = self.balances.get(node.name.id)
        return ir.Pack(
            node.name.id,
            expr,
            format,
            grain,
            tuple(slots),
            index,
            flips == {True},
            node.span,
            None if by is None else by.id,
        )

    def opened(
        self, node: ast.PackDecl
    ) -> tuple[ast.Expr, str | None, ir.Granularity | None] | None:
        """A pack without its format around it, and without what balances it."""
        value = node.value
        match value:
            case ast.Call(func=ast.Name(id="quantize")):
                found = self.quantize(value)
                if found is None:
                    return None
                inner, format, grain = found
                match inner:
                    case ast.Call(func=ast.Name(id="balance"), args=(first, second)):
                        return self.balanced(node, inner, first, second, format, grain)
                return inner, format, grain
            case ast.Call(func=ast.Name(id=format), args=(ast.Arg(value=inner, name=None),)) if (
                format in words.PLAIN_FORMATS and not isinstance(inner, _NO_VALUE)
            ):
                return inner, format, None
            case _:
                return value, None, None

    def balanced(
        self,
        node: ast.PackDecl,
        call: ast.Call,
        first: ast.Arg,
        second: ast.Arg,
        format: str,
        grain: ir.Granularity,
    ) -> tuple[ast.Expr, str, ir.Granularity] | None:
        """``balance(w.T, in_b)``: the weight, each channel multiplied by its factor."""
        if not isinstance(second.value, ast.Name) or isinstance(first.value, _NO_VALUE):
            self.bad("`balance` takes a weight and a scale here", call.span)
            return None
        self.balances[node.name.id] = second.value
        self.context.use("scale", second.value.id)
        return first.value, format, grain

    def quantisable(
        self,
        node: ast.PackDecl,
        type_: ValueType,
        format: str,
        grain: ir.Granularity,
        transposed: bool,
    ) -> bool:
        """Whether a pack can be in codes; notes what its sizes have to be."""
        span = node.value.span
        if isinstance(type_, Tensor) and len(type_.shape) not in (2, 3):
            self.bad(f"`quantize` packs a matrix or a stack of them, not {type_}", span)
            return False
        if not fitting(self.context, "a pack", format, grain, words.PACK_GRANULARITIES, span):
            return False
        balanced = node.name.id in self.balances
        if (grain[0] != "tensor" or balanced) and not transposed:
            said = "balance acts" if balanced else f"codes are scaled per {grain[0]}"
            self.context.error(
                LAYOUT,
                f"{said} along rows [out, in], and this pack is [in, out]",
                span,
                help="transpose its weights: w.T",
            )
            return False
        if grain[1] is not None and isinstance(type_, Tensor):
            sides = type_.shape[-2:] if (format, grain[0]) == _TILES else type_.shape[-1:]
            why = f"pack {node.name.id} per {grain[0]} {grain[1]}"
            for side in sides:
                size = side.alternatives[0] if side.alternatives else None
                if size is not None:
                    self.needs.append(ir.Need(divides(grain[1], size), why))
        return True

    def bad(self, message: str, span: Span, help: str = HOW) -> None:
        self.context.error(PACK, message, span, help=help)

    def quantize(self, call: ast.Call) -> tuple[ast.Expr, str, ir.Granularity] | None:
        """The operand, format and granularity of ``quantize(E, fp8_e4m3, per tensor)``."""
        plain = [a.value for a in call.args if a.name is None]
        if len(plain) != 3 or len(call.args) != 3:
            self.bad("`quantize` takes a weight, a format and a granularity", call.span)
            return None
        value, format, grain = plain
        if not isinstance(format, ast.Name) or not isinstance(grain, ast.Granularity):
            self.bad("`quantize` takes a weight, a format and a granularity", call.span)
            return None
        if format.id in words.PLAIN_FORMATS:
            self.bad(f"`{format.id}` has no codes", format.span, f"write {format.id}(…)")
            return None
        kind = one_of(self.context, "format", format, words.FORMATS)
        per = granularity(self.context, grain, words.GRANULARITIES, PACK)
        if kind is None or per is None or isinstance(value, _NO_VALUE):
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
            self.torn = True
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
            case irx.Op(op="transpose", args=(inner,)):
                found = self.type_of(inner)
                if not isinstance(found, Tensor) or len(found.shape) < 2:
                    return found
                *stack, rows, columns = found.shape
                return Tensor((*stack, columns, rows), found.dtype)
            case irx.Op(op=op, args=args, attrs=attrs):
                types = tuple(self.type_of(arg) for arg in args)
                if any(isinstance(t, Unknown) for t in types):
                    return Unknown()
                return OPS[op].rule(OpCall(op, types, dict(attrs)))
            case _:
                return Unknown()

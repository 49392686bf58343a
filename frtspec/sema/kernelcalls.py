"""A rung's call of one entry: which arguments the entry gets."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from frtspec.diag.source import Span
from frtspec.ir import decl as ir
from frtspec.ir import words
from frtspec.ir.stepops import LITERALS
from frtspec.sema.arms import complete_arms
from frtspec.sema.common import one_of
from frtspec.sema.context import Context, listing
from frtspec.sema.scope import Scope
from frtspec.sema.sizes import Sizes
from frtspec.sema.target import Target
from frtspec.syntax import ast

RUNG, AT_CALL = "FRT0404", "FRT0420"
CASTS = ("f32", "bf16", "fp16")


@dataclass
class KernelCalls:
    """Builds calls of one entry. ``scope``: packs and scales of the impl; ``two_level``: packs
    with a scale of the whole tensor; ``dynamic``: scales that are taken at each call."""

    context: Context
    target: Target
    sizes: Sizes
    scope: Scope
    two_level: Collection[str] = ()
    dynamic: Collection[str] = ()

    def bad(self, message: str, span: Span, help: str | None = None) -> None:
        self.context.error(RUNG, message, span, help=help)

    def call(self, node: ast.CallDecl) -> ir.KernelCall:
        if isinstance(node.entry, ast.Name):
            only = (None, node.entry.id, self.arguments(node.args))
            return ir.KernelCall(None, (only,), node.span)
        axis = node.entry.subject
        axes = {v.name: v.values for v in self.target.variants}
        if not isinstance(axis, ast.Name) or axis.id not in axes:
            if isinstance(axis, ast.Name):
                self.context.unknown("variant", axis, axes)
            else:
                self.bad("an entry is chosen by a variant", axis.span)
            return ir.KernelCall(None, (), node.span)
        shared = self.arguments(node.args) if node.args else None
        arms: list[tuple[str | None, str, tuple[ir.KernelArg, ...]]] = []
        for values, arm in complete_arms(self.context, node.entry, axis.id, axes[axis.id]) or ():
            entry, args = self.arm(arm, shared)
            arms += [(value, entry, args) for value in values if entry]
        return ir.KernelCall(axis.id, tuple(arms), node.span)

    def arm(
        self, arm: ast.MatchArm, shared: tuple[ir.KernelArg, ...] | None
    ) -> tuple[str, tuple[ir.KernelArg, ...]]:
        """Entry and arguments of one arm: its own, or those behind the choice."""
        value = arm.value
        if isinstance(value, ast.Name):
            if shared is None:
                self.bad(f"entry `{value.id}` has no arguments", value.span, "write them behind it")
            return value.id, shared or ()
        if isinstance(value, ast.Call):
            if shared is not None:
                message = f"entry `{value.func.id}` has arguments of its own and shared ones"
                self.bad(message, value.span, "leave one of the two out")
            return value.func.id, self.arguments(value.args)
        if not isinstance(value, ast.ErrorNode):
            self.bad("an arm names an entry", value.span)
        return "", ()

    def arguments(self, args: tuple[ast.Arg, ...]) -> tuple[ir.KernelArg, ...]:
        built = [self.argument(arg) for arg in args]
        found = tuple(arg for arg in built if arg is not None)
        if args and len(found) == len(args):
            self.taken_at_call(found, args[0].span)
        return found

    def argument(self, arg: ast.Arg) -> ir.KernelArg | None:
        keyword = None if arg.name is None else arg.name.id
        match arg.value:
            case ast.Name() as name:
                kind = self.kind_of(name)
                return None if kind is None else ir.KernelArg(keyword, kind, name.id)
            case ast.Number(value=value):
                return ir.KernelArg(keyword, "const", plain_text(value))
            case ast.String(value=text):
                return ir.KernelArg(keyword, "text", text)
            case ast.Field(
                base=ast.Name() as base, name=ast.Name(id="scale" | "tensor_scale") as of
            ):
                return self.pack_scale(keyword, base, of)
            case ast.Call(func=ast.Name(id=cast), args=(ast.Arg(value=ast.Name() as name),)) if (
                cast in CASTS
            ):
                kind = self.kind_of(name)
                return None if kind is None else ir.KernelArg(keyword, kind, name.id, cast=cast)
            case ast.Call(func=ast.Name(id="quantize"), args=inner):
                return self.quantized(arg, keyword, inner)
            case ast.Call(func=ast.Name(id="sum"), args=_) as call:
                poly = self.sizes.poly(call)
                return None if poly is None else ir.KernelArg(keyword, "dim", str(poly))
            case ast.ErrorNode():
                return None
            case _:
                self.bad(
                    "this is no argument of a kernel",
                    arg.span,
                    "arguments are tensors handed in, packs, pack.scale, pack.tensor_scale, scales, slots, dims and "
                    "numbers; bf16(x) casts and quantize(x, fp8_e4m3, s) quantises first",
                )
                return None

    def pack_scale(self, keyword: str | None, base: ast.Name, of: ast.Name) -> ir.KernelArg | None:
        if self.symbol_kind(base) != "pack":
            packs = [n for n, s in self.scope.names.items() if s.kind == "pack"]
            self.context.unknown("pack", base, packs)
            return None
        self.context.use("pack", base.id)
        if of.id == "tensor_scale" and base.id not in self.two_level:
            message = f"pack `{base.id}` has one level of scales"
            self.bad(message, of.span, f"write {base.id}.scale; nvfp4 has a tensor_scale as well")
            return None
        return ir.KernelArg(keyword, f"pack_{of.id}", base.id)

    def taken_at_call(self, args: tuple[ir.KernelArg, ...], span: Span) -> None:
        """A scale that is taken at each call exists where the call quantises something by it."""
        there = {arg.quantize[1] for arg in args if arg.quantize is not None}
        for arg in args:
            if arg.kind == "scale" and arg.name in self.dynamic and arg.name not in there:
                self.context.error(
                    AT_CALL,
                    f"scale `{arg.name}` is taken at each call, and this one quantises nothing by it",
                    span,
                    help=f"hand over quantize(x, format, {arg.name}) as well",
                )

    def quantized(
        self, arg: ast.Arg, keyword: str | None, inner: tuple[ast.Arg, ...]
    ) -> ir.KernelArg | None:
        values = [a.value for a in inner]
        if len(values) != 3 or not all(isinstance(v, ast.Name) for v in values):
            self.bad("`quantize` takes a tensor, a format and a scale here", arg.span)
            return None
        tensor, format, scale = (v for v in values if isinstance(v, ast.Name))
        kind = self.kind_of(tensor)
        known = one_of(self.context, "format", format, words.FORMATS)
        if self.symbol_kind(scale) != "scale":
            scales = [n for n, s in self.scope.names.items() if s.kind == "scale"]
            self.context.unknown("scale", scale, scales)
            return None
        self.context.use("scale", scale.id)
        if kind is None or known is None:
            return None
        return ir.KernelArg(keyword, kind, tensor.id, quantize=(known, scale.id))

    def symbol_kind(self, name: ast.Name) -> str | None:
        symbol = self.scope.find(name.id)
        return None if symbol is None else symbol.kind

    def kind_of(self, name: ast.Name) -> str | None:
        """What an argument's name stands for, or None when it was reported."""
        kind = self.symbol_kind(name)
        slots = [s.name for s in self.target.slots]
        if kind is not None:
            self.context.use(kind, name.id)
            return kind
        if name.id in self.target.handed_in:
            return "point"
        if name.id in slots:
            return "slot"
        if name.id in self.sizes.dims:
            return "dim"
        if name.id in [param.name for param in self.target.params]:
            return "param"
        if name.id in LITERALS:
            return "literal"
        inside = [p.name for p in self.target.points]
        if name.id in inside:
            self.bad(
                f"`{name.id}` lies inside {self.target.text}: a kernel is not handed it",
                name.span,
                f"handed in: {listing(self.target.handed_in)}",
            )
            return None
        known = [*self.scope.names, *self.target.handed_in, *slots, *self.sizes.dims]
        self.context.unknown("argument", name, known)
        return None


def plain_text(value: Decimal) -> str:
    """A number as text without an exponent where it is whole."""
    return str(int(value)) if value == value.to_integral_value() else str(value)

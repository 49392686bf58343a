"""Rungs: envelopes, kernel calls and lowerings checked against what they are for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal

from frtspec.diag.source import Span
from frtspec.ir import decl as ir
from frtspec.ir import expr as irx
from frtspec.ir import words
from frtspec.ir.ops import OPS, PRODUCTS_OF_CODES, TORCH_LOWERINGS
from frtspec.ir.regions import REGION_TEXTS, REGIONS
from frtspec.ir.stepops import LITERALS
from frtspec.ir.walk import ops
from frtspec.sema.arms import complete_arms
from frtspec.sema.combos import Combo, combos
from frtspec.sema.common import named_once, one_of, only_one, version
from frtspec.sema.context import Context, listing
from frtspec.sema.scope import Scope
from frtspec.sema.sizes import Sizes, whole
from frtspec.sema.steps import Steps
from frtspec.sema.target import Target
from frtspec.syntax import ast

RUNG, LOWER, BAND, SERVES = "FRT0404", "FRT0405", "FRT0408", "FRT0409"
REGION, AT_CALL, PARTS = "FRT0415", "FRT0420", "FRT0421"
CASTS = ("f32", "bf16", "fp16")


@dataclass
class Rungs:
    """Builds the rungs of one impl. ``scope`` holds its packs and scales; ``codes`` says
    whether some product is one of codes in a format. ``two_level``: packs whose format has a
    scale of the whole tensor on top; ``joint``: packs with the rows of several weights; ``dynamic``,
    ``static``: scales that are taken at each call, or fixed."""

    context: Context
    target: Target
    sizes: Sizes
    scope: Scope
    codes: Callable[[str], bool | None]
    two_level: Collection[str] = ()
    dynamic: Collection[str] = ()
    joint: Collection[str] = ()
    static: Collection[str] = ()
    only: Sequence[tuple[str, tuple[str, ...]]] = ()

    def ladder(self, nodes: Sequence[ast.RungDecl]) -> tuple[ir.Rung, ...]:
        built = [self.rung(node) for node in nodes]
        rungs = tuple(rung for rung in built if rung is not None)
        first: dict[tuple[str, str | None, int | None], list[ir.Rung]] = {}
        for rung in rungs:
            alike = first.setdefault((rung.kind, rung.package, rung.version), [])
            before = next((one for one in alike if not _apart(one, rung)), None)
            alike.append(rung)
            if before is not None and rung.kind != "torch":
                self.context.error(
                    RUNG,
                    f"this rung `{rung.kind}` is given twice",
                    rung.span,
                    notes=((before.span, "first here"),),
                    help="the second is never reached: leave it out",
                )
        return rungs

    def rung(self, node: ast.RungDecl) -> ir.Rung | None:
        kind = one_of(self.context, "kind of rung", node.kind, words.RUNGS)
        if kind is None:
            return None
        calls = [m for m in node.members if isinstance(m, ast.CallDecl | ast.CallStepsDecl)]
        prepared = [m for m in node.members if isinstance(m, ast.StepDecl)]
        lowers = [m for m in node.members if isinstance(m, ast.LowerDecl)]
        envelopes = [m for m in node.members if isinstance(m, ast.EnvelopeDecl)]
        broken = any(isinstance(m, ast.ErrorNode) for m in node.members)
        only_one(self.context, calls, "call")
        only_one(self.context, envelopes, "envelope")
        if kind in ("hub", "local"):
            self.packaged(node, kind, lowers, bool(calls) or broken)
            self.whole(node)
        else:
            self.unpackaged(node, kind, [*calls, *prepared], bool(lowers) or broken)
        rules = tuple(rule for e in envelopes for rule in self.sizes.rules(e.rules))
        onlys = [m for m in node.members if isinstance(m, ast.OnlyDecl)]
        call = self.call(calls[0]) if calls and isinstance(calls[0], ast.CallDecl) else None
        serves = served(self.context, self.target.structure, onlys)
        steps = self.steps(node, prepared, calls, serves)
        lowered = [self.lower(m) for m in lowers]
        number = None if node.version is None else version(self.context, node.version)
        return ir.Rung(
            kind,
            None if node.package is None else node.package.value,
            number,
            rules,
            call,
            tuple(pair for pair in lowered if pair is not None),
            node.span,
            serves,
            *steps,
        )

    def steps(
        self,
        node: ast.RungDecl,
        prepared: Sequence[ast.StepDecl],
        calls: Sequence[ast.CallDecl | ast.CallStepsDecl],
        serves: tuple[tuple[str, tuple[str, ...]], ...],
    ) -> tuple[tuple[ir.Step, ...], tuple[ir.Step, ...]]:
        """What is prepared, and the steps of a call that has several."""
        several = calls[0] if calls and isinstance(calls[0], ast.CallStepsDecl) else None
        if prepared and several is None and node.kind.id in ("hub", "local"):
            self.bad(
                "what is prepared is read by steps, and this rung has none",
                prepared[0].span,
                "write the call as steps: call { yield y = entry(…) }",
            )
        if node.kind.id not in ("hub", "local") or (several is None and not prepared):
            return (), ()
        builder = Steps(
            self.context,
            self.target,
            self.sizes,
            self.scope,
            self.joint,
            self.two_level,
            self.static,
        )
        return builder.build(prepared, several, (*self.only, *serves))

    def bad(self, message: str, span: Span, help: str | None = None) -> None:
        self.context.error(RUNG, message, span, help=help)

    def packaged(
        self, node: ast.RungDecl, kind: str, lowers: list[ast.LowerDecl], calls: bool
    ) -> None:
        if node.package is None or node.version is None:
            missing = "package" if node.package is None else "version"
            help = f'write: rung {kind} "org/name" version 1 {{ … }}'
            self.bad(f"`rung {kind}` does not say which {missing}", node.kind.span, help)
        elif kind == "hub" and node.package.value.count("/") != 1:
            message = f'"{node.package.value}" is no package of the Hub'
            self.bad(message, node.package.span, 'it is written "org/name"')
        for lower in lowers:
            self.bad(f"`lower` has no meaning in a rung {kind}", lower.span)
        if not calls:
            help = "add `call entry (…)` with the kernel's arguments"
            self.bad(f"this rung {kind} calls no entry", node.kind.span, help)

    def whole(self, node: ast.RungDecl) -> None:
        """A kernel can't call back into the host."""
        found = [op.args[0] for op in ops(self.target.body) if op.op in ("part", "inner")]
        served = [c for c in combos(self.target.structure) if self.serves(c)]
        parts = {p.name: p for p in self.target.structure.parts}
        names = dict.fromkeys(
            f"`{ref.name}`"
            for ref in found
            if isinstance(ref, irx.Ref)
            and (ref.name not in parts or any(c.holds(parts[ref.name].when) for c in served))
        )
        if names:
            self.context.error(
                PARTS,
                f"{self.target.text} calls {listing(list(names))} of the host, which no kernel can",
                node.kind.span,
                help="lower its products in a rung torch, or write the kernel for a structure of "
                "what lies between the parts",
            )

    def serves(self, combo: Combo) -> bool:
        """Whether the impl is for these variants."""
        chosen = dict(combo.variants)
        return all(chosen.get(axis) in values for axis, values in self.only)

    def unpackaged(
        self,
        node: ast.RungDecl,
        kind: str,
        calls: Sequence[ast.CallDecl | ast.CallStepsDecl | ast.StepDecl],
        lowers: bool,
    ) -> None:
        for extra in (node.package, node.version):
            if extra is not None:
                self.bad(f"`rung {kind}` has no package", extra.span)
        for call in calls:
            word = "prepare" if isinstance(call, ast.StepDecl) else "call"
            self.bad(f"`{word}` has no meaning in a rung {kind}", call.span)
        if kind == "torch" and not lowers:
            self.bad(
                "this rung torch lowers nothing: it would be the reference again",
                node.kind.span,
                "add `lower matmul to scaled_mm`",
            )
        if kind == "emulate" and node.members:
            self.bad(
                "`rung emulate` follows from packs, scales and numerics: it has no members",
                node.kind.span,
            )

    # ------------------------------------------------------------ lowerings

    def lower(self, node: ast.LowerDecl) -> tuple[str, str] | None:
        op = one_of(self.context, "op", node.op, OPS)
        target = one_of(self.context, "library op", node.target, TORCH_LOWERINGS)
        if op is None or target is None:
            return None
        if op not in TORCH_LOWERINGS[target]:
            stands = listing(TORCH_LOWERINGS[target])
            message = f"`{target}` cannot take the place of `{op}`"
            self.context.error(LOWER, message, node.target.span, help=f"it stands for {stands}")
            return None
        if op not in {found.op for found in ops(self.target.body)} and self.target.body:
            message = f"there is no `{op}` in {self.target.text}"
            self.context.error(LOWER, message, node.op.span, help="leave the line out")
            return None
        region = REGIONS.get(target)
        if region is not None and self.target.body and region(self.target.body) is None:
            self.context.error(
                REGION,
                f"`{target}` stands for more than `{op}`, and {self.target.text} has no such region",
                node.target.span,
                help=f"it is for {REGION_TEXTS[target]}",
            )
            return None
        format = PRODUCTS_OF_CODES.get(target)
        if format is not None and self.codes(format) is False:
            self.context.error(
                LOWER,
                f"`{target}` multiplies codes in {format}, and no product here is one of them",
                node.target.span,
                help="both operands need codes: a pack per tensor or channel, and a scale per "
                "tensor or row of the point that meets it",
            )
            return None
        return op, target

    # ------------------------------------------------------------ calls

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

    # ------------------------------------------------------------ bands

    def band(self, node: ast.BandDecl) -> ir.Band:
        rows = [
            symbol
            for port in self.target.structure.inputs
            for axis in port.shape
            if axis.rows
            for symbol in axis.symbols()
        ]
        if node.dim.id not in self.sizes.dims:
            self.context.unknown("dim", node.dim, self.sizes.dims)
        elif node.dim.id not in rows:
            message = f"`{node.dim.id}` does not count rows: a band is about row counts"
            known = f"{listing(rows)} does" if rows else None
            self.context.error(BAND, message, node.dim.span, help=known)
        ends: list[int | None] = []
        for end in (node.range.lo, node.range.hi):
            number = whole(end.value) if isinstance(end, ast.Number) else None
            if end is not None and number is None:
                self.context.error(BAND, "a band is written in whole numbers", end.span)
            ends.append(number)
        lo, hi = ends[0] or 1, ends[1]
        hi = hi if hi is None or node.range.inclusive else hi - 1
        if hi is not None and hi < lo:
            self.context.error(BAND, "this band is empty", node.range.span)
        rungs = self.ladder([r for r in node.rungs if isinstance(r, ast.RungDecl)])
        return ir.Band(node.dim.id, lo, hi, rungs, node.otherwise_host, node.span)


def served(
    context: Context, structure: ir.Structure, nodes: Sequence[ast.OnlyDecl]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The variants that ``only`` lines leave, of an impl or of one of its rungs."""
    axes = {v.name: v.values for v in structure.variants}
    out: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        if node.axis.id not in axes:
            context.unknown("variant", node.axis, axes)
            continue
        known = axes[node.axis.id]
        for value in node.values:
            if value.id not in known:
                context.unknown(f"value of variant {node.axis.id}", value, known)
        values = tuple(dict.fromkeys(v.id for v in node.values if v.id in known))
        named_once(context, f"value of variant {node.axis.id}", node.values)
        if node.axis.id in out:
            context.error("FRT0208", f"`only {node.axis.id}` is given twice", node.axis.span)
        if set(values) == set(known):
            context.error(
                SERVES,
                f"`only {node.axis.id}` names every value: it restricts nothing",
                node.span,
                help=f"leave it out; without it {listing(known)} are all served",
            )
        out[node.axis.id] = values
    return tuple(out.items())


def _apart(one: ir.Rung, other: ir.Rung) -> bool:
    """Whether no variant is served by both."""
    served = dict(one.only)
    return any(axis in served and not {*served[axis]} & {*values} for axis, values in other.only)


def plain_text(value: Decimal) -> str:
    """A number as text without an exponent where it is whole."""
    return str(int(value)) if value == value.to_integral_value() else str(value)

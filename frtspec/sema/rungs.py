"""Rungs: envelopes, kernel calls and lowerings checked against what they are for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from frtspec.diag.source import Span
from frtspec.ir import decl as ir
from frtspec.ir import expr as irx
from frtspec.ir import words
from frtspec.ir.ops import OPS, PRODUCTS_OF_CODES, TORCH_LOWERINGS
from frtspec.ir.regions import REGION_TEXTS, REGIONS
from frtspec.ir.walk import ops
from frtspec.sema.combos import Combo, combos
from frtspec.sema.common import named_once, one_of, only_one, version
from frtspec.sema.context import Context, listing
from frtspec.sema.kernelcalls import KernelCalls
from frtspec.sema.scope import Scope
from frtspec.sema.sizes import Sizes, whole
from frtspec.sema.steps import Steps
from frtspec.sema.target import Target
from frtspec.syntax import ast

RUNG, LOWER, BAND, SERVES = "FRT0404", "FRT0405", "FRT0408", "FRT0409"
REGION, PARTS = "FRT0415", "FRT0421"


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
    static: Mapping[str, str | None] = field(default_factory=dict)
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
        one = calls[0] if calls and isinstance(calls[0], ast.CallDecl) else None
        call = None if one is None else self.one_call(one)
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

    def one_call(self, node: ast.CallDecl) -> ir.KernelCall:
        builder = KernelCalls(
            self.context, self.target, self.sizes, self.scope, self.two_level, self.dynamic
        )
        return builder.call(node)

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

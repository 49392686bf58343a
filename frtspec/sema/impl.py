"""Impls: packs, scales, numerics and admissions checked against what they are for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeVar

from frtspec.diag.source import SourceFile, Span
from frtspec.dims import divides
from frtspec.ir import decl as ir
from frtspec.ir import words
from frtspec.sema.bands import check_bands
from frtspec.sema.common import metrics, named_once, one_of, only_one, origin, status, version
from frtspec.sema.context import Context, listing
from frtspec.sema.packs import Packs
from frtspec.sema.rungs import Rungs, served
from frtspec.sema.scales import Scales
from frtspec.sema.scope import Scope, Symbol, declare
from frtspec.sema.sizes import Sizes
from frtspec.sema.target import Target
from frtspec.syntax import ast

T = TypeVar("T")

DTYPES = ("f32", "bf16", "fp16")
NUMERICS, NO_RUNG, UNUSED, SERVES, PARAM = "FRT0403", "FRT0406", "FRT0407", "FRT0409", "FRT0414"

FORM, GATE, LOOSER = "FRT0416", "FRT0418", "FRT0419"

_KINDS = {ast.PackDecl: "pack", ast.ScaleDecl: "scale", ast.ParamDecl: "param"}


def joint(structure: ir.Structure, pack: ir.Pack) -> bool:
    """Whether a pack holds the rows of several weights."""
    repeated = {slot.name for slot in structure.slots if slot.index is not None}
    return len(pack.slots) > 1 or not repeated.isdisjoint(pack.slots)


def build_impl(source: SourceFile, node: ast.ImplDecl, target: Target, context: Context) -> ir.Impl:
    """The impl as far as it could be understood; findings go to ``context``."""
    return _Builder(source, node, target, context).build()


@dataclass
class _Builder:
    source: SourceFile
    node: ast.ImplDecl
    target: Target
    context: Context
    scope: Scope = field(default_factory=Scope)

    def members(self, kind: type[T]) -> list[T]:
        return [m for m in self.node.members if isinstance(m, kind)]

    def build(self) -> ir.Impl:
        for member in self.node.members:
            if isinstance(member, ast.PackDecl | ast.ScaleDecl | ast.ParamDecl):
                kind = _KINDS[type(member)]
                declare(self.context, self.scope, kind, member.name, Symbol(kind, member.name.span))
        structure = self.target.structure
        sizes = Sizes(self.context, structure.dims, dict(structure.indexed_dims))
        params = self.params()
        packing = Packs(self.context, self.target)
        packs = packing.build(self.members(ast.PackDecl))
        by_slot = None if packs is None else {slot: p for p in packs for slot in p.slots}
        scaling = Scales(self.context, self.target, by_slot, {p.name: p for p in params})
        scales = scaling.build(self.members(ast.ScaleDecl))
        scaling.check_balances(scales, packing.balances)
        unread = self.context.dropped.any_of(("pack", "scale"))
        whole = len(scales) == len(self.members(ast.ScaleDecl)) and not unread
        only = served(self.context, structure, self.members(ast.OnlyDecl))
        # What was reported may be anything: nothing is said of how a step uses it.
        lost = frozenset(member.name.id for member in self.members(ast.PackDecl))
        built = {scale.name for scale in scales}
        open_scales: dict[str, str | None] = {
            m.name.id: None for m in self.members(ast.ScaleDecl) if m.name.id not in built
        }
        rungs = Rungs(
            self.context,
            self.target,
            sizes,
            self.scope,
            lambda format: scaling.meets_codes(scales, format) if whole else None,
            lost if packs is None else frozenset(p.name for p in packs if p.format == "nvfp4"),
            frozenset(scale.name for scale in scales if scale.kind == "dynamic"),
            lost if packs is None else frozenset(p.name for p in packs if joint(structure, p)),
            open_scales | {s.name: s.format for s in scales if s.kind == "static"},
            only,
        )
        ladder = rungs.ladder(self.members(ast.RungDecl))
        banded = [(m, rungs.band(m)) for m in self.members(ast.BandDecl)]
        bands = tuple(band for _, band in banded)
        check_bands(self.context, self.members(ast.RungDecl), banded)
        if not ladder and not bands and "rung" not in self.context.dropped:
            self.context.error(
                NO_RUNG,
                f"impl `{self.node.name.id}` has no rung: nothing can run it",
                self.node.name.span,
                help="add one; `rung emulate` needs nothing more",
            )
        for param in params:
            self.context.unused("param", param.name, param.span, "no scale reads it")
        if packs is not None:
            every = [*ladder, *(r for band in bands for r in band.rungs)]
            self.unused(every)
        only_one(self.context, self.members(ast.StatusDecl), "status")
        return ir.Impl(
            name=self.node.name.id,
            structure=(structure.name, structure.version),
            seam=self.target.seam.name if self.target.seam else None,
            version=version(self.context, self.node.version),
            doc=self.node.doc.text if self.node.doc else "",
            status=status(self.context, self.members(ast.StatusDecl)),
            packs=packs or (),
            scales=scales,
            numerics=self.numerics(),
            admits=self.admits(),
            only=only,
            rungs=ladder,
            bands=bands,
            origin=origin(self.source, self.node.span),
            evidence=tuple(m.text.text for m in self.members(ast.EvidenceDecl)),
            params=params,
            needs=tuple(self.needs(sizes, packing, scaling, scales)),
            wire=self.wire(),
            gates=self.gates(),
        )

    # ------------------------------------------------------------ gates

    def gates(self) -> tuple[ir.Gate, ...]:
        """What the gate harness holds the impl to on synthetic data. A bound that asks less than
        the structure's needs its reason: evidence."""
        out: list[ir.Gate] = []
        for node in self.members(ast.GateDecl):
            kind = one_of(self.context, "gate of an impl", node.kind, words.IMPL_GATES)
            if kind is None:
                continue
            if kind in {gate.kind for gate in out}:
                self.context.error("FRT0208", f"gate {kind} is given twice", node.kind.span)
            if kind == "seam" and self.target.seam is None:
                message = f"{self.target.text} is a whole structure: it has no seam to judge"
                self.context.error(GATE, message, node.kind.span, help="write gate boundary")
            extra = [word for word in (node.per, node.including, *node.against) if word is not None]
            if node.on is None or extra:
                self.context.error(
                    GATE,
                    "an impl's gate is for the harness, and has bounds only",
                    (extra[0] if extra else node.kind).span,
                    help=f"write gate {kind} on synthetic {{ cosine >= 0.97 }}",
                )
            elif one_of(self.context, "distribution", node.on, words.IMPL_DISTRIBUTIONS) is None:
                continue
            bounds = metrics(self.context, node.metrics, words.METRICS, f"gate {kind}")
            self.judges(node, bounds)
            self.reasoned(kind, bounds)
            out.append(ir.Gate(kind, "synthetic", None, bounds, None, (), node.span))
        return tuple(out)

    def judges(self, node: ast.GateDecl, bounds: Sequence[ir.MetricBound]) -> None:
        idle = [bound for bound in bounds if bound.op is None]
        if idle or (not bounds and not self.context.dropped):
            span = idle[0].span if idle else node.span
            message = f"`{idle[0].metric}` has no bound" if idle else "this gate judges nothing"
            self.context.error(GATE, message, span, help="write a bound: cosine >= 0.97")

    def reasoned(self, kind: str, bounds: Sequence[ir.MetricBound]) -> None:
        """A looser bound without evidence is a threshold that was moved until it held."""
        if self.members(ast.EvidenceDecl) or "evidence" in self.context.dropped:
            return
        stated = self.target.bounds(kind)
        for bound in bounds:
            own = stated.get(bound.metric)
            if bound.bound is None or own is None:
                continue
            looser = bound.bound < own if bound.op == ">=" else bound.bound > own
            if looser:
                self.context.error(
                    LOOSER,
                    f"{self.target.text} asks for {bound.metric} {bound.op} {own}: this is less, "
                    "and nothing says why",
                    bound.span,
                    help='say what of the format can\'t do better: evidence """…"""',
                )

    # ------------------------------------------------------------ form

    def wire(self) -> str | None:
        """The format of ``form wire (fp8_e4m3)``: an impl that a chain's producer is run by."""
        forms = self.members(ast.FormDecl)
        only_one(self.context, forms, "form")
        for node in forms[:1]:
            if node.name.id != "wire":
                message = f"an impl has no form `{node.name.id}`"
                help = "`form wire (fp8_e4m3)` makes it the producer of a chain; how a seat stands "
                self.form_error(message, node.name.span, f"{help}in its host is for bindings")
                return None
            args = [arg.value for arg in node.params if arg.name is None]
            if len(args) != 1 or not isinstance(args[0], ast.Name) or len(node.params) != 1:
                self.form_error("a wire has one format", node.span, "write form wire (fp8_e4m3)")
                return None
            if not self.writes_one():
                message = f"{self.target.text} has no single output in the host's dtype to carry"
                self.form_error(message, node.name.span)
            return one_of(self.context, "format of a wire", args[0], words.CHAINED)
        return None

    def writes_one(self) -> bool:
        outputs = self.target.structure.outputs
        whole = self.target.seam is None and len(outputs) == 1
        return whole and outputs[0].dtype == "host" and outputs[0].index is None

    def form_error(self, message: str, span: Span, help: str | None = None) -> None:
        self.context.error(FORM, message, span, help=help)

    # ------------------------------------------------------------ params and needs

    def params(self) -> tuple[ir.ImplParam, ...]:
        """Numbers that a scheme's route may set; each is read by some scale."""
        found = []
        for node in self.members(ast.ParamDecl):
            default = Decimal(1)  # within every limit, where the spec's own was reported
            if isinstance(node.default, ast.Number):
                default = node.default.value
            elif not isinstance(node.default, ast.ErrorNode):
                message = f"param `{node.name.id}` of an impl has a number as its default"
                span = node.span if node.default is None else node.default.span
                self.context.error(PARAM, message, span, help=f"write param {node.name.id} = 0.5")
            param = ir.ImplParam(node.name.id, default, node.span, *self.limits(node))
            if isinstance(node.default, ast.Number) and not param.holds(default):
                message = f"the default of param `{param.name}` lies outside its own limits"
                self.context.error(PARAM, message, node.default.span)
            found.append(param)
        return tuple(found)

    def limits(self, node: ast.ParamDecl) -> tuple[Decimal | None, Decimal | None]:
        """The least and the largest value of a param."""
        ends = [node.least, node.most]
        lo, hi = (end.value if isinstance(end, ast.Number) else None for end in ends)
        unread = [
            e for e in ends if e is not None and not isinstance(e, ast.Number | ast.ErrorNode)
        ]
        if unread or (lo is not None and hi is not None and hi < lo):
            message = f"the limits of param `{node.name.id}` are no two numbers in order"
            span = unread[0].span if unread else node.name.span
            self.context.error(PARAM, message, span, help="write from 0 to 1")
            return None, None
        return lo, hi

    def needs(
        self, sizes: Sizes, packs: Packs, scaling: Scales, scales: Sequence[ir.Scale]
    ) -> list[ir.Need]:
        """Rules on dims: those that the spec states, and those that groups bring along."""
        stated = [r for m in self.members(ast.RequireDecl) for r in sizes.rules(m.rules)]
        found = [ir.Need(rule, None) for rule in stated] + packs.needs
        for scale in scales:
            size = scale.granularity[1]
            if size is None:
                continue
            why = f"scale {scale.name} per {scale.granularity[0]} {size}"
            sides = [axis for axis in scaling.contracted(scale.point) if axis.alternatives]
            found += [ir.Need(divides(size, side.alternatives[0]), why) for side in sides]
        once: dict[str, ir.Need] = {}
        for need in found:
            once.setdefault(need.rule.text, need)
        return list(once.values())

    # ------------------------------------------------------------ numerics and what is served

    def numerics(self) -> ir.Numerics:
        decls = self.members(ast.NumericsDecl)
        only_one(self.context, decls, "numerics")
        acc: str | None = None
        out: str | None = None
        stores: dict[str, str] = {}
        for role, value, dtype in (item for d in decls for item in d.items):
            word = one_of(self.context, "numerics", role, words.NUMERICS)
            kind = one_of(self.context, "dtype", dtype, DTYPES)
            if word is None or kind is None:
                continue
            if (word == "store") != (value is not None):
                how = "names the value: store g bf16" if word == "store" else f"is {word} bf16"
                self.context.error(NUMERICS, f"`{word}` {how}", role.span)
                continue
            if value is not None:
                known = (*self.target.handed_in, *self.target.values)
                if value.id not in known:
                    self.context.unknown("value", value, dict.fromkeys(known))
                repeated, stores[value.id] = value.id in stores, kind
            elif word == "acc":
                repeated, acc = acc is not None, kind
            else:
                repeated, out = out is not None, kind
            if repeated:
                self.context.error("FRT0208", f"`{word}` is given twice", role.span)
        return ir.Numerics(acc or "f32", tuple(stores.items()), out)

    def admits(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        out: dict[str, tuple[str, ...]] = {}
        for node in self.members(ast.AdmitsDecl):
            if node.point.id not in self.target.handed_in:
                self.not_handed_in(node.point)
                continue
            named_once(self.context, "dtype", node.dtypes)
            kinds = [one_of(self.context, "dtype", d, DTYPES) for d in node.dtypes]
            if node.point.id in out:
                message = f"what `{node.point.id}` admits is given twice"
                self.context.error("FRT0208", message, node.point.span)
            out[node.point.id] = tuple(dict.fromkeys(k for k in kinds if k is not None))
        return tuple(out.items())

    def not_handed_in(self, name: ast.Name) -> None:
        if name.id not in [point.name for point in self.target.points]:
            self.context.unknown("input", name, self.target.handed_in)
            return
        self.context.error(
            SERVES,
            f"`{name.id}` lies inside {self.target.text}: nobody hands it in",
            name.span,
            help=f"handed in: {listing(self.target.handed_in)}",
        )

    def unused(self, rungs: list[ir.Rung]) -> None:
        """Packs and scales that no rung uses; torch and emulate rungs use every one."""
        if not rungs or any(rung.kind in ("torch", "emulate") for rung in rungs):
            return
        for name, symbol in self.scope.names.items():
            if (symbol.kind, name) not in self.context.used and name not in self.context.dropped:
                self.context.error(
                    UNUSED,
                    f"{symbol.kind} `{name}` is used by no rung",
                    symbol.span,
                    help="hand it to a call, or leave it out",
                )

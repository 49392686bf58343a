"""Impls: packs, scales, numerics and admissions checked against what they are for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from frtspec.diag.source import SourceFile
from frtspec.ir import decl as ir
from frtspec.ir import expr as irx
from frtspec.ir import words
from frtspec.ir.walk import ops, parts
from frtspec.sema.common import granularity, named_once, one_of, only_one, origin, status, version
from frtspec.sema.context import Context, listing
from frtspec.sema.packs import Packs
from frtspec.sema.rungs import Rungs
from frtspec.sema.scope import Scope, Symbol, declare
from frtspec.sema.sizes import Sizes
from frtspec.sema.target import Target
from frtspec.syntax import ast

T = TypeVar("T")

DTYPES = ("f32", "bf16", "fp16")
SCALE, NUMERICS, SERVES, NO_RUNG, UNUSED = "FRT0402", "FRT0403", "FRT0409", "FRT0406", "FRT0407"


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
            if isinstance(member, ast.PackDecl | ast.ScaleDecl):
                kind = "pack" if isinstance(member, ast.PackDecl) else "scale"
                declare(self.context, self.scope, kind, member.name, Symbol(kind, member.name.span))
        structure = self.target.structure
        sizes = Sizes(self.context, structure.dims, dict(structure.indexed_dims))
        packs = Packs(self.context, self.target, sizes).build(self.members(ast.PackDecl))
        scales = [self.scale(m) for m in self.members(ast.ScaleDecl)]
        found = tuple(s for s in scales if s is not None)
        rungs = Rungs(self.context, self.target, sizes, self.scope)
        ladder = rungs.ladder(self.members(ast.RungDecl))
        bands = tuple(rungs.band(m) for m in self.members(ast.BandDecl))
        if not ladder and not bands and "rung" not in self.context.dropped:
            self.context.error(
                NO_RUNG,
                f"impl `{self.node.name.id}` has no rung: nothing can run it",
                self.node.name.span,
                help="add one; `rung emulate` needs nothing more",
            )
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
            scales=found,
            numerics=self.numerics(),
            admits=self.admits(),
            only=self.only(),
            rungs=ladder,
            bands=bands,
            origin=origin(self.source, self.node.span),
            evidence=tuple(m.text.text for m in self.members(ast.EvidenceDecl)),
        )

    # ------------------------------------------------------------ scales

    def scale(self, node: ast.ScaleDecl) -> ir.Scale | None:
        call = node.value
        if isinstance(call, ast.ErrorNode):
            return None
        if not isinstance(call, ast.Call) or not call.args:
            self.context.error(
                SCALE,
                f"scale `{node.name.id}` does not say what it scales",
                call.span,
                help="write static(point), or dynamic(point, per row)",
            )
            return None
        kind = one_of(self.context, "kind of scale", call.func, words.SCALES)
        point = call.args[0].value
        rest = [a.value for a in call.args[1:]]
        if (
            not isinstance(point, ast.Name)
            or len(rest) > 1
            or (rest and not isinstance(rest[0], ast.Granularity))
        ):
            message = f"`{call.func.id}` takes a point and a granularity"
            self.context.error(SCALE, message, call.span, help="write static(x, per tensor)")
            return None
        grain = self.granularity(rest[0] if rest else None)
        known = [p.name for p in self.target.points]
        if point.id not in known:
            self.context.unknown("point", point, known)
            return None
        if kind is None or grain is None:
            return None
        if not self.enters_product(point.id):
            self.context.error(
                SCALE,
                f"`{point.id}` enters no product: nothing is scaled by `{node.name.id}`",
                point.span,
                help="a scale belongs to an operand of @, linear or contract",
            )
        return ir.Scale(node.name.id, kind, point.id, grain, node.span)

    def granularity(self, node: object) -> tuple[str, int | None] | None:
        if not isinstance(node, ast.Granularity):
            return ("tensor", None)
        return granularity(self.context, node, words.SCALE_GRANULARITIES, SCALE)

    def enters_product(self, point: str) -> bool:
        """Whether a value is an operand of a product, cast or not."""
        names = {point, self.target.aliases().get(point, point)}
        products = [op for op in ops(self.target.body) if op.op in ("matmul", "linear", "contract")]
        operands = [part for op in products for arg in op.args for part in parts(arg)]
        return any(isinstance(p, irx.Ref) and p.name in names for p in operands)

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
                if value.id not in self.target.values:
                    self.context.unknown("value", value, self.target.values)
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

    def only(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        axes = {v.name: v.values for v in self.target.structure.variants}
        out: dict[str, tuple[str, ...]] = {}
        for node in self.members(ast.OnlyDecl):
            if node.axis.id not in axes:
                self.context.unknown("variant", node.axis, axes)
                continue
            known = axes[node.axis.id]
            for value in node.values:
                if value.id not in known:
                    self.context.unknown(f"value of variant {node.axis.id}", value, known)
            values = tuple(dict.fromkeys(v.id for v in node.values if v.id in known))
            named_once(self.context, f"value of variant {node.axis.id}", node.values)
            if node.axis.id in out:
                message = f"`only {node.axis.id}` is given twice"
                self.context.error("FRT0208", message, node.axis.span)
            if set(values) == set(known):
                self.context.error(
                    SERVES,
                    f"`only {node.axis.id}` names every value: it restricts nothing",
                    node.span,
                    help=f"leave it out; without it {listing(known)} are all served",
                )
            out[node.axis.id] = values
        return tuple(out.items())

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

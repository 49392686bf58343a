"""A structure: its members collected, its reference built and typed, its seams cut."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from frtspec.diag.source import SourceFile
from frtspec.ir import decl as ir
from frtspec.ir import expr as irx
from frtspec.ir import words
from frtspec.ir.types import UNKNOWN, ValueType
from frtspec.ir.walk import conditions, statements
from frtspec.sema.combos import MOST, asked_for, combos, count
from frtspec.sema.common import metrics, named_once, one_of, only_one, origin, status, version
from frtspec.sema.composition import Compositions
from frtspec.sema.context import Context, Notes
from frtspec.sema.discover import build_discover
from frtspec.sema.elaborate import elaborate
from frtspec.sema.exprs import Exprs
from frtspec.sema.innertypes import Unified
from frtspec.sema.liveness import unread
from frtspec.sema.members import Members
from frtspec.sema.reference import References
from frtspec.sema.rules import Rules
from frtspec.sema.scope import Scope, Symbol, article, declare
from frtspec.sema.seams import build_seam
from frtspec.sema.sizes import Sizes
from frtspec.sema.storage import check_storage
from frtspec.sema.target import Built
from frtspec.sema.typing import Problem, Typing, infer
from frtspec.syntax import ast

T = TypeVar("T")

_RULES = (ast.RequireDecl, ast.QualifyDecl)


def build_structure(
    source: SourceFile,
    node: ast.StructureDecl,
    context: Context,
    structures: Mapping[str, Mapping[int, Built]] | None = None,
    forms: Collection[str] = (),
) -> ir.Structure:
    """The structure as far as it could be understood; findings go to ``context``.

    ``structures``: those that its slots may be; ``forms``: names of its impls.
    """
    return _Builder(source, node, context, structures or {}, forms).build()


@dataclass
class _Builder:
    source: SourceFile
    node: ast.StructureDecl
    context: Context
    structures: Mapping[str, Mapping[int, Built]]
    forms: Collection[str]
    scope: Scope = field(default_factory=Scope)
    read: Members = field(init=False)

    def members(self, kind: type[T]) -> list[T]:
        return [m for m in self.node.members if isinstance(m, kind)]

    def build(self) -> ir.Structure:
        self.declare_names()
        dims = [name for d in self.members(ast.DimDecl) for name, index in d.names if not index]
        repeated = {
            name.id: index.id for d in self.members(ast.DimDecl) for name, index in d.names if index
        }
        axes = {v.name.id: tuple(x.id for x in v.values) for v in self.members(ast.VariantDecl)}
        sizes = Sizes(self.context, tuple(d.id for d in dims), repeated)
        composed = Compositions(self.context, self.structures)
        for slot in self.members(ast.SlotDecl):
            if slot.structure is not None:
                composed.add(slot)
        exprs = Exprs(
            self.context,
            sizes,
            self.scope,
            axes,
            self.givable(),
            parts={m.name.id: m for m in self.members(ast.PartDecl)},
            outputs=frozenset(
                m.name.id for m in self.members(ast.PortDecl) if m.direction == "out"
            ),
            inner=composed.slots,
        )
        structure = self.shell(exprs, tuple(d.id for d in dims), tuple(repeated.items()))
        structure = self.with_reference(structure, exprs)
        self.unused(structure)
        return structure

    # ------------------------------------------------------------ names

    def declare_names(self) -> None:
        """Every name of the structure shares one space: a reference's arguments and locals."""
        for member in self.node.members:
            match member:
                case ast.DimDecl(names=names):
                    for name, index in names:
                        self.declare("dim", name, index)
                        self.used_index(index)
                case ast.IndexDecl(name=name):
                    self.declare("index", name)
                case ast.ParamDecl(name=name):
                    self.declare("param", name)
                case ast.PortDecl(name=name, index=index, direction=direction):
                    self.declare("input" if direction == "in" else "output", name, index)
                    if member.type.scale is not None:
                        self.declare("scale", member.type.scale)
                case ast.SlotDecl(name=name, index=index, structure=None):
                    self.declare("slot", name, index)
                case ast.SlotDecl(name=name) | ast.PartDecl(name=name):
                    self.declare("part", name)
                case ast.VariantDecl(name=name):
                    self.declare("variant", name)

    def declare(self, kind: str, name: ast.Name, index: ast.Name | None = None) -> None:
        symbol = Symbol(kind, name.span, None if index is None else index.id)
        declare(self.context, self.scope, kind, name, symbol)

    def used_index(self, index: ast.Name | None) -> None:
        known = [m.name.id for m in self.members(ast.IndexDecl)]
        if index is not None and index.id in known:
            self.context.use("index", index.id)
        elif index is not None:
            self.context.unknown("index", index, known)

    def givable(self) -> frozenset[str]:
        ports = [m for m in self.members(ast.PortDecl) if m.direction == "in"]
        items: list[ast.PortDecl | ast.SlotDecl] = [*ports, *self.members(ast.SlotDecl)]
        return frozenset(m.name.id for m in items if m.optional or m.when is not None)

    # ------------------------------------------------------------ members

    def shell(
        self, exprs: Exprs, dims: tuple[str, ...], repeated: tuple[tuple[str, str], ...]
    ) -> ir.Structure:
        """Everything but the reference and what follows from it."""
        read = self.read = Members(self.context, self.scope, exprs, self.node.members)
        ports = [read.port(m) for m in self.members(ast.PortDecl)]
        only_one(self.context, self.members(ast.StatusDecl), "status")
        return ir.Structure(
            name=self.node.name.id,
            version=version(self.context, self.node.version),
            doc=self.node.doc.text if self.node.doc else "",
            status=status(self.context, self.members(ast.StatusDecl)),
            dims=dims,
            indexed_dims=repeated,
            indexes=tuple(read.index(m) for m in self.members(ast.IndexDecl)),
            params=tuple(read.param(m) for m in self.members(ast.ParamDecl)),
            inputs=tuple(p for p in ports if p.direction == "in"),
            outputs=tuple(p for p in ports if p.direction == "out"),
            slots=tuple(read.slot(m) for m in self.members(ast.SlotDecl)),
            parts=tuple(read.part(m) for m in self.members(ast.PartDecl)),
            variants=tuple(read.variant(m) for m in self.members(ast.VariantDecl)),
            excluded=read.excluded(),
            reference=(),
            points=(),
            seams=(),
            gates=read.gates(),
            rules=(),
            evidence=tuple(m.text.text for m in self.members(ast.EvidenceDecl)),
            origin=origin(self.source, self.node.span),
        )

    # ------------------------------------------------------------ reference

    def with_reference(self, structure: ir.Structure, exprs: Exprs) -> ir.Structure:
        decls = self.members(ast.ReferenceDecl)
        only_one(self.context, decls, "reference")
        outputs = {n: s for n, s in self.scope.names.items() if s.kind == "output"}
        builder = References(self.context, exprs, outputs)
        body = builder.build(decls[0].body) if decls else ()
        if not decls and "reference" not in self.context.dropped:
            self.context.error(
                "FRT0209",
                f"structure `{structure.name}` has no reference",
                self.node.name.span,
                help="a reference says what the region computes: reference { … yield y = … }",
            )
        if decls and not structure.outputs and not self.context.dropped:
            self.context.error(
                "FRT0209",
                f"structure `{structure.name}` has no output",
                self.node.name.span,
                help="a region gives something: out y [rows M, D] : host",
            )
        structure = replace(structure, reference=body, points=self.points(builder, exprs))
        if decls:
            structure = self.typed(structure)
        structure = replace(structure, seams=self.seams(structure))
        check_storage(self.context, structure)
        rules = Rules(self.context, exprs, structure, self.forms)
        read = [rules.read(m) for m in self.node.members if isinstance(m, _RULES)]
        structure = replace(structure, rules=tuple(rule for group in read for rule in group))
        patterns = build_discover(self.context, structure, self.members(ast.DiscoverDecl))
        return replace(structure, discover=patterns)

    def points(self, builder: References, exprs: Exprs) -> tuple[ir.Point, ...]:
        out = [
            ir.Point(name, kind, when, True, span, was)
            for name, (kind, when, span, was) in builder.points.items()
        ]
        for node in self.members(ast.PointDecl):
            kind = one_of(self.context, "kind of point", node.kind, words.POINT_KINDS)
            symbol = self.scope.find(node.name.id)
            if node.name.id in builder.points or symbol is None:
                declare(
                    self.context, self.scope, "point", node.name, Symbol("point", node.name.span)
                )
            elif symbol.kind != "input":
                self.context.error(
                    "FRT0314",
                    f"`{node.name.id}` is {article(symbol.kind)}: a point declared here stands on "
                    "an input, or on nothing",
                    node.name.span,
                    help=f"define it in the reference: `point NAME {node.kind.id} = "
                    f"{node.name.id}`",
                )
            else:
                self.context.use("input", node.name.id)
            when = None if node.when is None else exprs.cond(node.when)
            was = None if node.was is None else node.was.id
            out.append(ir.Point(node.name.id, kind or "statistic", when, False, node.span, was))
        return tuple(out)

    def typed(self, structure: ir.Structure) -> ir.Structure:
        """Type every combination, report what is wrong, settle the axes of the ops."""
        total = count(structure)
        if total > MOST:
            shown = str(total) if total < 10**6 else "millions of"
            self.context.error(
                "FRT0315",
                f"there are {shown} combinations of variants and optional inputs to check, "
                f"{MOST} at most",
                self.node.name.span,
                help="split the structure, or drop variants that only change the execution",
            )
            return structure
        every = combos(structure)
        if not every:
            message = "`combinations` excludes every combination of the variants"
            self.context.error("FRT0318", message, self.members(ast.CombinationsDecl)[0].span)
            return structure
        unknown = frozenset(self.read.unknown)
        typings = [infer(structure, combo, unknown) for combo in every]
        seen: dict[Problem, list[str]] = {}
        for typing in typings:
            for problem in typing.problems:
                seen.setdefault(problem, []).append(typing.combo.text())
        for problem, where in seen.items():
            self.report(problem, where, len(every))
        structure = self.composed(structure, typings)
        structure, differing = elaborate(structure, typings)
        for op in differing:
            message = f"the axes that `{op.op}` works on differ between variants"
            help = "name the value apart in each variant, or count the axis from the end"
            self.context.error("FRT0303", message, op.span, help=help)
        types: dict[str, ValueType] = {}
        for typing in typings:
            types.update({n: value for n, value in typing.values.items() if value != UNKNOWN})
        return replace(structure, types=types)

    def composed(self, structure: ir.Structure, typings: list[Typing]) -> ir.Structure:
        """The sizes of inner structures in terms of this one's, as typing found them."""
        found: dict[str, Unified] = {}
        for typing in typings:
            for _, call, _ in typing.calls:
                before = found.setdefault(call.slot, call)
                if before.of_slots() != call.of_slots():
                    span = next(s.span for s in structure.slots if s.name == call.slot)
                    message = f"the sizes of `{call.slot}` differ between variants"
                    self.context.error("FRT0303", message, span)
        slots = tuple(
            (
                replace(
                    slot,
                    inner=replace(
                        slot.inner, dims=tuple(sorted(found[slot.name].of_slots().items()))
                    ),
                )
                if slot.inner is not None and slot.name in found
                else slot
            )
            for slot in structure.slots
        )
        return replace(structure, slots=slots)

    def report(self, problem: Problem, where: list[str], total: int) -> None:
        words_in = set(problem.message.replace("`", " ").split())
        if problem.code == "FRT0306" and self.context.dropped.any_of(words_in):
            return
        if problem.code == "FRT0304" and self.read.vague:
            return
        notes: Notes = ()
        if len(where) < total:
            more = f" ({len(where)} of {total} combinations)" if len(where) > 1 else ""
            notes = ((None, f"when {where[0]}{more}"),)
        self.context.error(
            problem.code, problem.message, problem.span, notes=notes, help=problem.help
        )

    def seams(self, structure: ir.Structure) -> tuple[ir.Seam, ...]:
        nodes = self.members(ast.SeamDecl)
        named_once(self.context, "seam", [n.name for n in nodes])
        out = []
        for node in nodes:
            symbol = self.scope.find(node.name.id)
            if symbol is not None and symbol.kind == "part":  # what runs in its place is NAME_with
                self.context.error(
                    "FRT0202",
                    f"seam `{node.name.id}` is called like a slot or a part",
                    node.name.span,
                    notes=((symbol.span, "declared here"),),
                    help="give one of the two another name",
                )
            gates = metrics(self.context, node.gates, words.METRICS, f"seam {node.name.id}")
            seam = build_seam(self.context, structure, node, gates)
            out += [] if seam is None else [seam]
        return tuple(out)

    # ------------------------------------------------------------ unused

    def unused(self, structure: ir.Structure) -> None:
        """Report names that nothing uses; what the reference asks about counts as used."""
        for cond in self.conditions(structure):
            for test in conditions(cond):
                if isinstance(test, irx.AxisIs):
                    self.context.use("variant", test.axis)
        for name in asked_for(structure):
            self.context.use("asked", name)
        why = {
            "dim": "no shape, rule or value mentions it: use it or leave it out",
            "index": "nothing is repeated over it: use it or leave it out",
            "param": "the reference does not read it: use it or leave it out",
            "input": "the reference does not read it: use it or leave it out",
            "slot": "the reference does not read it: use it or leave it out",
            "part": "the reference does not call it: use it or leave it out",
            "scale": "the reference does not quantise by it: use it or leave it out",
            "variant": "the reference does not depend on it; what only execution chooses belongs "
            "to impls",
        }
        if not self.members(ast.ReferenceDecl):
            return
        for name, symbol in self.scope.names.items():
            if symbol.kind in why:
                self.context.unused(symbol.kind, name, symbol.span, why[symbol.kind])
        kept = {t for seam in self.members(ast.SeamDecl) for n in seam.targets for t in (n.id,)}
        for let in unread(structure.reference, frozenset(kept)):
            if let.name not in self.context.dropped:
                self.context.unused_value(let.name, let.span)

    def conditions(self, structure: ir.Structure) -> list[irx.Cond | None]:
        items: list[ir.Port | ir.Slot] = [*structure.inputs, *structure.slots, *structure.outputs]
        found: list[irx.Cond | None] = [item.when for item in (*items, *structure.parts)]
        found += [s.when for s in statements(structure.reference) if isinstance(s, irx.Let)]
        return found

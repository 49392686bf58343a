"""One seat of a binding, checked against the structure or seam it places."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from frtspec.diag.source import Span
from frtspec.ir import decl as ir
from frtspec.ir import words
from frtspec.sema.boundary import Boundaries
from frtspec.sema.common import named_once, one_of, only_one
from frtspec.sema.context import Context, listing
from frtspec.sema.forms import SeatForm, seat_form
from frtspec.sema.hostexpr import HostExprs
from frtspec.sema.hostparts import HostParts
from frtspec.sema.places import Places
from frtspec.sema.settings import Settings, settings
from frtspec.sema.target import Built, Target, resolve
from frtspec.sema.views import Views
from frtspec.syntax import ast

T = TypeVar("T")

VARIANT, SLOT, POINT, SIBLINGS, FACT = "FRT0603", "FRT0604", "FRT0605", "FRT0608", "FRT0609"


@dataclass
class Seats:
    """Builds the seats of one binding. ``host``: the config expressions in scope."""

    context: Context
    structures: Mapping[str, Mapping[int, Built]]
    host: HostExprs

    def build(self, node: ast.SeatDecl) -> ir.Seat | None:
        """The seat, or None when it is not known what it places."""
        self.host.path(node.path)
        if node.when is not None:
            self.host.check(node.when)
        target = resolve(self.context, node.target, self.structures)
        if target is None:
            self.bare(node)
            return None
        return _Builder(self.context, node, target, self.host).build()

    def bare(self, node: ast.SeatDecl) -> None:
        """Mark what the members of a seat read, when nothing can be said about them."""
        for member in node.members:
            if isinstance(member, ast.DimsDecl):
                for _, value in member.items:
                    self.host.check(value)
            elif isinstance(member, ast.ParamSet):
                self.host.check(member.value)
            elif isinstance(member, ast.ExpectDecl):
                expect(self.context, self.host, member)


@dataclass
class _Builder:
    context: Context
    node: ast.SeatDecl
    target: Target
    host: HostExprs

    def members(self, kind: type[T]) -> list[T]:
        return [m for m in self.node.members if isinstance(m, kind)]

    @cached_property
    def settings(self) -> Settings:
        nodes = self.members(ast.VariantSet)
        return settings(self.target.structure, nodes, self.context.imported)

    def build(self) -> ir.Seat:
        views = Views(self.context, self.target, self.host)
        siblings = self.members(ast.SiblingsDecl)
        only_one(self.context, siblings, "siblings")
        members = tuple(siblings[0].members) if siblings else ()
        slots = views.build(self.members(ast.SlotMap))
        shared = views.build(members)
        self.slots_filled(views)
        if siblings:
            self.siblings(siblings[0])
        structure = self.target.structure
        return ir.Seat(
            name=self.node.name.id,
            structure=(structure.name, structure.version),
            seam=self.target.seam.name if self.target.seam else None,
            path=self.node.path,
            when=self.node.when,
            form=self.form.name,
            variants=self.variants(),
            params=self.params(),
            dims=self.dims(),
            slots=slots,
            points=self.points(),
            placeless=self.placeless(),
            siblings=shared,
            prove=tuple(f.id for f in siblings[0].facts) if siblings else (),
            boundary=self.boundary(bool(siblings)),
            expects=tuple(
                e for m in self.members(ast.ExpectDecl) if (e := expect(self.context, self.host, m))
            ),
            route=self.form.route,
            cadence=self.form.cadence,
            span=self.node.span,
            parts=self.parts(),
        )

    def parts(self) -> tuple[ir.PartRef, ...]:
        places = Places(self.context, self.host)
        builder = HostParts(self.context, self.target, self.host, places, self.form.name)
        return builder.build(self.members(ast.PartMap))

    # ------------------------------------------------------------ choices and numbers

    @cached_property
    def form(self) -> SeatForm:
        nodes = self.members(ast.FormDecl)
        only_one(self.context, nodes, "form")
        siblings = bool(self.members(ast.SiblingsDecl))
        return seat_form(self.context, nodes[0] if nodes else None, siblings)

    def once(self, what: str, nodes: Sequence[T], name: Callable[[T], ast.Name]) -> list[T]:
        """Each node under its name, the first of each; repeats are reported."""
        named_once(self.context, what, [name(n) for n in nodes])
        first: dict[str, T] = {}
        for node in nodes:
            first.setdefault(name(node).id, node)
        return list(first.values())

    def variants(self) -> tuple[tuple[str, ast.Expr], ...]:
        axes = {v.name: v for v in self.target.structure.variants}
        out: dict[str, ast.Expr] = {}
        for node in self.once("variant", self.members(ast.VariantSet), lambda n: n.axis):
            if node.axis.id not in axes:
                self.context.unknown("variant", node.axis, axes)
                continue
            self.variant_value(node.axis.id, axes[node.axis.id].values, node.value)
            out[node.axis.id] = node.value
        missing = [n for n, v in axes.items() if n not in out and v.default is None]
        self.missing(
            VARIANT,
            "variant",
            missing,
            lambda n: f"add `variant {n} = …`: one of {listing(axes[n].values)}",
        )
        return tuple(out.items())

    def variant_value(self, axis: str, known: tuple[str, ...], value: ast.Expr) -> None:
        """A value of the axis, or a choice of one by the host's config."""
        match value:
            case ast.Name():
                if value.id not in known:
                    self.context.unknown(f"value of variant {axis}", value, known)
            case ast.Match(subject=subject):
                self.host.check(subject)
                for arm in self.host.arms(value):
                    if not (isinstance(arm.value, ast.Name) and arm.value.id == "refuse"):
                        self.variant_value(axis, known, arm.value)
            case ast.ErrorNode():
                pass
            case _:
                self.context.error(
                    VARIANT,
                    f"variant `{axis}` is set to one of its values",
                    value.span,
                    help=f"one of {listing(known)}, or match config.… {{ … => {known[0]} }}",
                )

    def params(self) -> tuple[tuple[str, ast.Expr], ...]:
        known = {p.name: p for p in self.target.structure.params}
        out: dict[str, ast.Expr] = {}
        for node in self.once("param", self.members(ast.ParamSet), lambda n: n.name):
            self.host.check(node.value)
            if node.name.id not in known:
                self.context.unknown("param", node.name, known)
                continue
            out[node.name.id] = node.value
        missing = [n for n, p in known.items() if p.default is None and n not in out]
        self.missing("FRT0604", "param", missing, lambda n: f"add `param {n} = config.…`")
        return tuple(out.items())

    def dims(self) -> tuple[tuple[str, ast.Expr], ...]:
        structure = self.target.structure
        ranges = {i.name: i.hi for i in structure.indexes}
        known = list(structure.dims)
        for name, index in structure.indexed_dims:
            known += [f"{name}[{k}]" for k in range(min(ranges.get(index, 1), 64))]
        items = [i for m in self.members(ast.DimsDecl) for i in m.items]
        only_one(self.context, self.members(ast.DimsDecl), "dims")
        out = []
        for key, value in self.once("dim", items, lambda item: item[0]):
            self.host.check(value)
            if key.id not in known:
                self.context.unknown(f"dim of {structure.name}", key, known)
                continue
            out.append((key.id, value))
        return tuple(out)

    def missing(
        self, code: str, what: str, names: Iterable[str], help: Callable[[str], str]
    ) -> None:
        if self.context.imported:
            return
        for name in names:
            if name not in self.context.dropped and not self.context.misspelt(what, name):
                message = f"seat `{self.node.name.id}` does not set the {what} `{name}`"
                self.context.error(code, message, self.node.name.span, help=help(name))

    # ------------------------------------------------------------ slots and points

    def slots_filled(self, views: Views) -> None:
        """Every slot that can be there has a place on the host, and no other has one."""
        for slot in self.target.slots:
            if slot.name in self.context.dropped or self.context.misspelt("slot", slot.name):
                continue
            if slot.name in views.given and self.settings.ruled_out(slot):
                first = next(iter(views.given[slot.name].values()))
                self.context.error(
                    SLOT,
                    f"slot `{slot.name}` does not exist in the variants this seat sets",
                    first.slot.span,
                    help="leave it out",
                )
            if slot.name in views.given or not self.settings.needed(slot):
                continue
            if slot.inner is not None:
                continue  # its weights are those of seats of its own
            layout = " : out_in" if slot.shape is not None and len(slot.shape) == 2 else ""
            place = f"{slot.name}[0]" if slot.index else slot.name
            self.context.error(
                SLOT,
                f"seat `{self.node.name.id}` has no place for the slot `{slot.name}`",
                self.node.name.span,
                help=f"add `slot {place} = ….weight{layout}`",
            )

    def points(self) -> tuple[tuple[str, ir.PlaceRef], ...]:
        known = [p.name for p in self.target.points]
        places = Places(self.context, self.host, self.form.route)
        out = {}
        nodes: list[ast.PointMap | ast.PointNone] = [
            *self.members(ast.PointMap),
            *self.members(ast.PointNone),
        ]
        for node in self.once("point", nodes, lambda n: n.point):
            place = None if isinstance(node, ast.PointNone) else places.of(node.place)
            if node.point.id not in known:
                self.context.unknown("point", node.point, known)
                continue
            out[node.point.id] = place
        self.all_placed(out)
        return tuple((name, place) for name, place in out.items() if place is not None)

    def all_placed(self, out: Collection[str]) -> None:
        """Every point that a statistic may be asked of has a place, or a reason for none."""
        for point in self.target.points:
            needed = point.kind == "statistic" and self.settings.needed(point)
            lost = point.name not in out and point.name not in self.context.dropped
            if needed and lost and not self.context.misspelt("point", point.name):
                self.context.error(
                    POINT,
                    f"seat `{self.node.name.id}` does not say where the point `{point.name}` is",
                    self.node.name.span,
                    help=f"add `point {point.name} = input of …`, or `point {point.name} none "
                    '"reason"` where the host shows it nowhere',
                )

    def placeless(self) -> tuple[tuple[str, str], ...]:
        known = {p.name for p in self.target.points}
        nodes = [node for node in self.members(ast.PointNone) if node.point.id in known]
        return tuple({node.point.id: node.reason.value for node in nodes}.items())

    def boundary(self, siblings: bool) -> ir.BoundaryRef | None:
        nodes = self.members(ast.BoundaryDecl)
        only_one(self.context, nodes, "boundary")
        places = Places(self.context, self.host, self.form.route)
        builder = Boundaries(self.context, self.node, self.target, self.host, self.settings, places)
        return builder.build(nodes[0] if nodes else None, siblings)

    # ------------------------------------------------------------ siblings and facts

    def siblings(self, node: ast.SiblingsDecl) -> None:
        named_once(self.context, "fact", node.facts)
        for fact in node.facts:
            one_of(self.context, "fact", fact, words.PROOFS)
        if not node.facts:
            self.context.error(
                SIBLINGS,
                "siblings have to prove that they share their input",
                node.span,
                help="write: siblings prove (shared_input, call_order) { … }",
            )
        indexes = {i.name: i for i in self.target.structure.indexes}
        repeated = {s.name: s for s in self.target.slots if s.index in indexes}
        if not repeated:
            message = f"{self.target.text} has no repeated slot: nothing in it has siblings"
            self.context.error(SIBLINGS, message, node.span)
            return
        counts: dict[str, list[int]] = {}
        for member in node.members:
            if member.slot.id in repeated and member.index is not None:
                counts.setdefault(member.slot.id, []).append(int(member.index.value))
        sizes = {name: len(places) for name, places in counts.items()}
        for name, places in counts.items():
            index = indexes[repeated[name].index or ""]
            if sorted(places) != list(range(len(places))):
                missing = next(k for k in range(len(places)) if k not in places)
                self.bad_siblings(f"`{name}[{missing}]` is missing: places count from 0", node.span)
            elif max(places) < index.hi and not index.lo <= len(places) <= index.hi:
                self.bad_siblings(
                    f"`{name}` has {len(places)} members; {self.target.text} takes "
                    f"{index.lo} to {index.hi}",
                    node.span,
                )
        if len(set(sizes.values())) > 1:
            shown = listing([f"{count} of `{name}`" for name, count in sizes.items()])
            self.bad_siblings(f"siblings have equal counts, not {shown}", node.span)

    def bad_siblings(self, message: str, span: Span) -> None:
        self.context.error(SIBLINGS, message, span)


def expect(context: Context, host: HostExprs, node: ast.ExpectDecl) -> ir.Expect | None:
    """One host fact; None when it was reported."""
    for path in node.of:
        host.path(path)
    fact = one_of(context, "host fact", node.fact, words.FACTS)
    if fact is None:
        return None
    named_once(context, "value", node.values)
    for value in node.values if fact in words.FACT_VALUES else ():
        one_of(context, f"value of `expect {fact}`", value, words.FACT_VALUES[fact])
    if (fact in words.FACTS_OF_MODULES) != bool(node.of) and fact != "class":
        how = "names the modules it is about: of (…)" if not node.of else "is about the seat"
        context.error(FACT, f"`expect {fact}` {how}", node.span)
    return ir.Expect(fact, tuple(v.id for v in node.values), node.of, node.span)

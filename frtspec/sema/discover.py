"""`discover` blocks: what a module looks like that a structure or a seam can sit on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from frtspec.diag.source import Span
from frtspec.ir import decl as ir
from frtspec.ir import words
from frtspec.ir.rolekinds import ROLE_KINDS, RoleKind
from frtspec.sema.combos import may_be_absent
from frtspec.sema.common import named_once, one_of, only_one
from frtspec.sema.context import Context, listing
from frtspec.sema.forms import seat_form
from frtspec.sema.target import Target
from frtspec.sema.wholepattern import Whole
from frtspec.syntax import ast

HOLDS, FILLED, TELLS = "FRT0740", "FRT0741", "FRT0742"
WHERE = "FRT0745"


def build_discover(
    context: Context, structure: ir.Structure, nodes: Sequence[ast.DiscoverDecl]
) -> tuple[ir.Discover, ...]:
    """The patterns of a structure; findings go to ``context``."""
    found = []
    for node in nodes:
        seam = None
        if node.seam is not None:
            seams = {s.name: s for s in structure.seams}
            seam = seams.get(node.seam.id)
            if seam is None:
                context.unknown("seam", node.seam, seams)
                continue
        found.append(_Pattern(context, Target(structure, seam), node).build())
    return tuple(found)


@dataclass
class _Pattern:
    """``held``: slot -> where the role that holds it stands."""

    context: Context
    target: Target
    node: ast.DiscoverDecl
    held: dict[str, Span] = field(default_factory=dict)
    route: ir.RouteRef | None = None
    update: bool = False
    block: bool = False

    def build(self) -> ir.Discover:
        roles = tuple(self.role(m) for m in self.node.members if isinstance(m, ast.RoleDecl))
        named_once(self.context, "role", [self._name(r) for r in roles])
        forms = [m for m in self.node.members if isinstance(m, ast.FormDecl)]
        only_one(self.context, forms, "form")
        if forms:
            self.formed(forms[0])
        points = [m for m in self.node.members if isinstance(m, ast.RolePoint)]
        named_once(self.context, "point", [m.point for m in points])
        boundaries = [m for m in self.node.members if isinstance(m, ast.DiscoverBoundary)]
        only_one(self.context, boundaries, "boundary")
        boundary = boundaries[0] if boundaries else None
        called = tuple(self.arguments(roles))
        found = ir.Discover(
            seam=None if self.target.seam is None else self.target.seam.name,
            roles=roles,
            points=tuple(self.point(m, roles) for m in points),
            variants=tuple(self.variants()),
            around=boundary is not None and boundary.where == "around",
            ports=() if boundary is None else tuple(self.ports(boundary, roles)),
            placeless=tuple(self.placeless()),
            dims=tuple(self.sizes()),
            route=self.route,
            called=called,
            update=self.update,
            block=self.block,
            span=self.node.span,
        )
        if not self.lost:
            at = self.node.seam.span if self.node.seam else self.node.span
            Whole(self.context, self.target, found, boundary, self.held, at).check()
        return found

    def formed(self, node: ast.FormDecl) -> None:
        """The function that a seat's module looks up, or that its result changes slowly; other
        forms follow from the roles."""
        if node.name.id == "update":
            self.update = True
            self.slow(node)
            return
        if node.name.id == "block" and self.target.structure.parts and self.target.seam is None:
            self.block = True
            return
        form = seat_form(self.context, node, siblings=False)
        if form.route is None and node.name.id in words.FORMS:
            self.context.error(
                WHERE,
                f"a pattern has no `form {node.name.id}`",
                node.span,
                help="a route is written `form route (attention)`, an update `form update`, a "
                "whole structure with parts `form block`; swap and siblings follow from the roles",
            )
        self.route = form.route

    def slow(self, node: ast.FormDecl) -> None:
        """An update is any module that a run shows to change slowly: nothing else tells it."""
        if node.params:
            self.context.error(
                WHERE,
                "how often an update runs is the caller's, and no pattern shows it",
                node.span,
                help="write `form update`",
            )
        for member in self.node.members:
            if isinstance(member, ast.RoleDecl):
                self.context.error(
                    WHERE,
                    f"role `{member.name.id}`: what an update computes is the host's own",
                    member.name.span,
                    help="leave the roles out, or `form update`",
                )

    def arguments(self, roles: tuple[ir.Role, ...]) -> Iterable[tuple[str, tuple[str, ...]]]:
        """What `called` says of arguments; of roles it was read with them."""
        places = [m.place for m in self.node.members if isinstance(m, ast.RolePoint)]
        for member in self.node.members:
            if isinstance(member, ast.DiscoverBoundary):
                places += [place for _, place in member.ports]
        args = [p.arg.id for p in places if p.arg is not None and p.role is None]
        names = [r.name for r in roles]
        for member in self.node.members:
            if not isinstance(member, ast.CalledDecl):
                continue
            named_once(self.context, "name", member.names)
            if member.role.id in args:
                yield member.role.id, tuple(n.id for n in member.names)
            elif member.role.id not in names:
                self.context.unknown("role", member.role, [*names, *args])

    def placeless(self) -> Iterable[tuple[str, str]]:
        known = [p.name for p in self.target.points]
        for member in self.node.members:
            if isinstance(member, ast.PointNone):
                if member.point.id not in known:
                    self.context.unknown("point", member.point, known)
                yield member.point.id, member.reason.value

    def sizes(self) -> Iterable[str]:
        for member in self.node.members:
            if isinstance(member, ast.DiscoverDims):
                named_once(self.context, "dim", member.names)
                for name in member.names:
                    if name.id not in self.target.structure.dims:
                        self.context.unknown("dim", name, self.target.structure.dims)
                    yield name.id

    @property
    def lost(self) -> bool:
        """Whether a member could not be read, so that nothing counts as missing."""
        return any(isinstance(m, ast.ErrorNode) for m in self.node.members)

    @staticmethod
    def _name(role: ir.Role) -> ast.Name:
        return ast.Name(role.name, role.span)

    # ------------------------------------------------------------ roles

    def role(self, node: ast.RoleDecl) -> ir.Role:
        name = one_of(self.context, "kind of role", node.kind, ROLE_KINDS)
        kind = None if name is None else ROLE_KINDS[name]
        self.stands(node)
        return ir.Role(
            name=node.name.id,
            index=None if node.index is None else node.index.id,
            kind=name or "parameter",
            where=node.where,
            parameters=self.parameters(node, kind),
            called=tuple(
                tuple(n.id for n in m.names)
                for m in self.node.members
                if isinstance(m, ast.CalledDecl) and m.role.id == node.name.id
            ),
            tells=tuple(t for t in (self.told(node, kind, tell) for tell in node.tells) if t),
            gives=self.given(node, kind),
            span=node.name.span,
        )

    def stands(self, node: ast.RoleDecl) -> None:
        """Where a role lies, and whether it can be repeated there."""
        if node.where == "around" and self.target.seam is None:
            self.context.error(
                WHERE,
                f"role `{node.name.id}` lies around the seat, and the pattern is of the whole "
                f"of {self.target.structure.name}",
                node.name.span,
                help="only a seam leaves something around it: leave out `around seat`",
            )
        if node.index is None:
            return
        indexes = [i.name for i in self.target.structure.indexes]
        if node.index.id not in indexes:
            self.context.unknown("index", node.index, indexes)
        elif node.where != "below" or node.kind.id != "linear":
            self.context.error(
                WHERE,
                f"role `{node.name.id}` is repeated, and only projections below the seat can be",
                node.name.span,
                help=f"write `role {node.name.id}[{node.index.id}] : linear (…)`",
            )

    def parameters(self, node: ast.RoleDecl, kind: RoleKind | None) -> tuple[ir.RoleSlots, ...]:
        slots = {s.name: s for s in self.target.structure.slots}
        inner = {s.name for s in self.target.slots}
        if kind is not None and not kind.least <= len(node.slots) <= len(kind.ranks):
            least, most = kind.least, len(kind.ranks)
            wanted = str(least) if least == most else f"{least} to {most}"
            self.context.error(
                HOLDS,
                f"role `{node.name.id}` names {len(node.slots)} slots; `{node.kind.id}` is "
                f"{kind.what}, so {wanted}",
                node.name.span,
                help="name the slots of its parameters in that order, in parentheses",
            )
            kind = None
        out = []
        for position, item in enumerate(node.slots):
            names = item.chunks or (item.name,)
            known = [n for n in names if n.id in slots]
            for name in names:
                if name.id not in slots:
                    self.context.unknown("slot", name, slots)
            for name in known:
                self.hold(node, name, slots[name.id], name.id in inner)
                if kind is not None:
                    self.fits(node, name, slots[name.id], kind.ranks[position])
            if known:
                first = slots[known[0].id]
                absent = may_be_absent(self.target.structure, first)
                out.append(ir.RoleSlots(tuple(n.id for n in known), absent, first.when))
        return tuple(out)

    def hold(self, node: ast.RoleDecl, name: ast.Name, slot: ir.Slot, inside: bool) -> None:
        before = self.held.setdefault(name.id, name.span)
        if before is not name.span:
            self.context.error(
                FILLED,
                f"slot `{name.id}` is held twice",
                name.span,
                notes=((before, "first here"),),
                help="leave one of the two out",
            )
        sure = not self.context.guessing  # a cut through values that are unknown is none
        if sure and inside == (node.where == "around"):
            side = "inside" if inside else "outside"
            self.context.error(
                FILLED,
                f"slot `{name.id}` lies {side} {self.target.text}, and role `{node.name.id}` "
                f"{'around' if inside else 'in'} the seat",
                name.span,
                help="leave out `around seat`" if inside else "add `around seat` to the role",
            )
        repeated = None if node.index is None else node.index.id
        if slot.index != repeated:
            self.context.error(
                FILLED,
                f"slot `{name.id}` is {repetition(slot.index)}, and role `{node.name.id}` is "
                f"{repetition(repeated)}",
                name.span,
                help=f"write `role {node.name.id}{f'[{slot.index}]' if slot.index else ''} : …`",
            )

    def fits(self, node: ast.RoleDecl, name: ast.Name, slot: ir.Slot, rank: int | None) -> None:
        if rank is not None and slot.shape is not None and len(slot.shape) != rank:
            self.context.error(
                HOLDS,
                f"slot `{name.id}` has {len(slot.shape)} axes; here `{node.kind.id}` holds "
                f"one of {rank}",
                name.span,
                help=f"`{node.kind.id}` is {ROLE_KINDS[node.kind.id].what}",
            )

    def told(
        self, node: ast.RoleDecl, kind: RoleKind | None, tell: ast.TellsDecl
    ) -> tuple[str, tuple[tuple[str, str], ...]] | None:
        axes = {v.name: v for v in self.target.structure.variants}
        axis = axes.get(tell.axis.id)
        if axis is None:
            self.context.unknown("variant", tell.axis, axes)
            return None
        if kind is None:
            return None
        if not tell.arms:
            facts = [(value, value) for value in axis.values if value in kind.facts]
        else:
            facts = [pair for pair in (self.arm(kind, axis, arm) for arm in tell.arms) if pair]
        if not facts:
            known = listing(tuple(kind.facts)) or "nothing"
            self.context.error(
                TELLS,
                f"`{node.kind.id}` does not tell `{axis.name}`",
                tell.axis.span,
                help=f"what a {node.kind.id} tells: {known}; write `tells {axis.name} "
                "{ FACT => VALUE }`",
            )
        return axis.name, tuple(facts)

    def arm(self, kind: RoleKind, axis: ir.Variant, arm: ast.MatchArm) -> tuple[str, str] | None:
        fact, value = arm.pattern, arm.value
        if not isinstance(fact, ast.Name) or fact.id not in kind.facts:
            if isinstance(fact, ast.Name):
                self.context.unknown("fact", fact, kind.facts, code="FRT0207")
            else:
                message = "a fact is told by its name"
                self.context.error(TELLS, message, fact.span, help=listing(tuple(kind.facts)))
            return None
        if not isinstance(value, ast.Name) or value.id not in axis.values:
            self.context.error(
                TELLS,
                f"`{fact.id}` tells no value of variant `{axis.name}`",
                value.span,
                help=f"its values are {listing(axis.values)}",
            )
            return None
        return fact.id, value.id

    def given(self, node: ast.RoleDecl, kind: RoleKind | None) -> str | None:
        if node.gives is None:
            return None
        params = [p.name for p in self.target.structure.params]
        if node.gives.id not in params:
            self.context.unknown("param", node.gives, params)
            return None
        if kind is not None and kind.number is None:
            self.context.error(
                TELLS,
                f"`{node.kind.id}` has no number that `{node.gives.id}` could be set from",
                node.gives.span,
                help="norms give their eps",
            )
            return None
        return node.gives.id

    # ------------------------------------------------------------ points, ports, variants

    def point(self, node: ast.RolePoint, roles: tuple[ir.Role, ...]) -> tuple[str, ir.RolePlace]:
        seam = self.target.seam
        known = [p.name for p in self.target.points] + list(seam.sources if seam else ())
        whole = {p.name for p in self.target.structure.points}
        cut = self.context.guessing and node.point.id in whole  # a cut through unknown values
        if node.point.id not in known and not cut:
            self.context.unknown("point", node.point, known)
        return node.point.id, self.place(node.place, roles)

    def place(self, node: ast.RolePlace, roles: tuple[ir.Role, ...]) -> ir.RolePlace:
        role = None if node.role is None else node.role.id
        at_route = self.route is not None and role == self.route.name
        if node.role is not None and not at_route:
            names = [r.name for r in roles] + ([self.route.name] if self.route else [])
            if role not in names:
                self.context.unknown("role", node.role, names)
        layout = None
        if node.layout is not None:
            layout = one_of(self.context, "layout of a port", node.layout, words.PORT_LAYOUTS)
        return ir.RolePlace(
            kind=node.kind,
            role=None if at_route else role,
            arg=None if node.arg is None else node.arg.id,
            item=None if node.item is None else int(node.item.value),
            layout=layout,
            routed=at_route,
        )

    def ports(
        self, node: ast.DiscoverBoundary, roles: tuple[ir.Role, ...]
    ) -> Iterable[tuple[str, ir.RolePlace]]:
        structure = self.target.structure
        around = node.where == "around"
        if around != (self.target.seam is not None):
            self.context.error(
                WHERE,
                f"the boundary of {self.target.text} lies "
                f"{'around' if self.target.seam else 'at'} the seat's module",
                node.span,
                help="a seam is a part of its structure; a whole structure is its module",
            )
        named_once(self.context, "port", [name for name, _ in node.ports])
        known = [p.name for p in (*structure.inputs, *structure.outputs)]
        for name, place in node.ports:
            if name.id not in known:
                self.context.unknown("input or output", name, known)
            yield name.id, self.place(place, roles)

    def variants(self) -> Iterable[tuple[str, str]]:
        nodes = [m for m in self.node.members if isinstance(m, ast.VariantSet)]
        named_once(self.context, "variant", [m.axis for m in nodes])
        axes = {v.name: v.values for v in self.target.structure.variants}
        for node in nodes:
            if node.axis.id not in axes:
                self.context.unknown("variant", node.axis, axes)
            elif not isinstance(node.value, ast.Name):
                message = f"a pattern sets `{node.axis.id}` to one of its values"
                help = f"its values are {listing(axes[node.axis.id])}"
                self.context.error(TELLS, message, node.value.span, help=help)
            elif node.value.id not in axes[node.axis.id]:
                what = f"value of variant {node.axis.id}"
                self.context.unknown(what, node.value, axes[node.axis.id])
            else:
                yield node.axis.id, node.value.id


def repetition(index: str | None) -> str:
    return "not repeated" if index is None else f"repeated over {index}"

"""Coverage of a hot path: every segment is classed, and structures are vouched for by seats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frtspec.ir import decl as ir
from frtspec.ir import pipewords
from frtspec.sema.common import named_once, one_of, only_one
from frtspec.sema.context import Context, listing
from frtspec.syntax import ast

COVERAGE, SEGMENT, EMBED, UNVERIFIED = "FRT0723", "FRT0724", "FRT0725", "FRT0726"
WITHOUT = ("host_stage", "control")


@dataclass
class Coverages:
    """``bound``: stages of the use; ``seats``: seat -> structures it may seat; ``known``:
    every structure; ``verified``: whether claims in words are out of place."""

    context: Context
    pipeline: ir.Pipeline
    bound: Sequence[str]
    seats: Mapping[str, tuple[str, ...]]
    known: Sequence[str]
    verified: bool

    def build(self, node: ast.CoverageDecl) -> ir.Coverage:
        contract = one_of(self.context, "coverage", node.contract, pipewords.COVERAGES) or ""
        paths = [m for m in node.members if isinstance(m, ast.HotPathDecl)]
        only_one(self.context, paths, "hot_path")
        hot = paths[0].segments if paths else ()
        if not hot and not self.context.dropped:
            help = "add: hot_path (…), the names of its segments in order"
            self.context.error(COVERAGE, "no hot path is given", node.contract.span, help=help)
        named_once(self.context, "segment", hot)
        nodes = [m for m in node.members if isinstance(m, ast.SegmentDecl)]
        named_once(self.context, "segment", [n.name for n in nodes])
        names = [n.name.id for n in nodes]
        for name in hot:
            if name.id not in names:
                self.context.unknown("segment", name, names, code=COVERAGE)
        on_path = {name.id for name in hot}
        segments = tuple(self.segment(n, n.name.id in on_path) for n in nodes)
        covered = {segment.stage for segment in segments}
        missing = [name for name in self.bound if name not in covered]
        bare = [name for name in missing if not self.context.misspelt("bound stage", name)]
        if bare and not self.context.dropped:
            self.context.error(
                COVERAGE,
                f"no segment lies in stage `{bare[0]}`: the coverage is not complete",
                node.contract.span,
                help=f"add: segment {bare[0]} : host_stage in {bare[0]} {{ … }}",
            )
        return ir.Coverage(contract, tuple(n.id for n in hot), segments, node.contract.span)

    def segment(self, node: ast.SegmentDecl, hot: bool) -> ir.Segment:
        kind = one_of(self.context, "segment", node.kind, pipewords.SEGMENTS)
        if node.stage.id not in self.bound:
            self.context.unknown("bound stage", node.stage, self.bound, code="FRT0902")
        seams = [m for m in node.members if isinstance(m, ast.SeamText)]
        covers = [m for m in node.members if isinstance(m, ast.CoversDecl)]
        seats = [m for m in node.members if isinstance(m, ast.SeatsDecl)]
        only_one(self.context, seams, "seam")
        only_one(self.context, covers, "covers")
        only_one(self.context, seats, "seats")
        made_of = self.covers(covers[0], kind) if covers else ()
        seated = self.seated(seats[0], made_of, bool(covers)) if seats else ()
        if not covers:
            of_seats = [s for name in seated for s in self.seats.get(name, ())]
            made_of = tuple(dict.fromkeys(of_seats))
        if kind is not None and not self.context.dropped:
            self.content(node, kind, bool(seams), covers, seats)
        return ir.Segment(
            name=node.name.id,
            kind=kind or "host_stage",
            stage=node.stage.id,
            seam=seams[0].text.value if seams else None,
            covers=made_of,
            seats=seated,
            hot=hot,
            span=node.name.span,
        )

    def content(
        self,
        node: ast.SegmentDecl,
        kind: str,
        seam: bool,
        covers: Sequence[ast.CoversDecl],
        seats: Sequence[ast.SeatsDecl],
    ) -> None:
        """What a segment of each class has to say, and may not say."""
        made: list[ast.CoversDecl | ast.SeatsDecl] = [*covers, *seats]
        if kind in WITHOUT and made:
            message = f"a segment that is {kind} is made of no structures"
            help = "leave them out, or class the segment as structure"
            self.context.error(SEGMENT, message, made[0].span, help=help)
        elif kind == "structure" and not made:
            message = f"segment `{node.name.id}` does not say which structures make it up"
            self.context.error(SEGMENT, message, node.name.span, help="add: seats (…)")
        elif not seats and not seam:
            message = f"segment `{node.name.id}` does not say what it is on the host"
            help = 'name its seats, or say it in words: seam "…"'
            self.context.error(SEGMENT, message, node.name.span, help=help)
        elif kind == "structure" and not seats and self.verified:
            self.context.error(
                UNVERIFIED,
                f"nothing proves that structures make up segment `{node.name.id}`",
                node.name.span,
                help='name its seats: `seats (…)`, or say `status imported "…"` with the reason',
            )

    def covers(self, node: ast.CoversDecl, kind: str | None) -> tuple[str, ...]:
        """Structures that exist, and for computation those that the pipeline embeds."""
        named_once(self.context, "structure", node.structures)
        embedded = [name for name, _ in self.pipeline.embeds]
        for name in node.structures:
            if name.id not in self.known:
                self.context.unknown("structure", name, self.known, code="FRT0206", everywhere=True)
            elif kind == "structure" and name.id not in embedded:
                self.not_embedded(name, name.id)
        return tuple(dict.fromkeys(name.id for name in node.structures))

    def not_embedded(self, at: ast.Name, structure: str) -> None:
        embedded = dict.fromkeys(name for name, _ in self.pipeline.embeds)
        self.context.error(
            EMBED,
            f"pipeline `{self.pipeline.name}` does not embed structure `{structure}`",
            at.span,
            help=f"it embeds {listing(list(embedded), 16)}",
        )

    def seated(self, node: ast.SeatsDecl, covers: Sequence[str], given: bool) -> tuple[str, ...]:
        """Seats of the binding; what they seat is embedded, and agrees with ``covers``."""
        named_once(self.context, "seat", node.seats)
        embedded = {name for name, _ in self.pipeline.embeds}
        found: set[str] = set()
        for seat in node.seats:
            if seat.id not in self.seats:
                self.context.unknown("seat", seat, self.seats)
                continue
            for structure in self.seats[seat.id]:
                found.add(structure)
                if structure not in embedded:
                    self.not_embedded(seat, structure)
        if given and found != set(covers) and not self.context.dropped:
            message = "`covers` and `seats` name different structures"
            help = f"the seats are of {listing(sorted(found))}; leave `covers` out"
            self.context.error(SEGMENT, message, node.span, help=help)
        return tuple(dict.fromkeys(seat.id for seat in node.seats))

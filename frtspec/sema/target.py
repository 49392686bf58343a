"""What an impl, a route or a seat is for: a structure, or one of its seams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from frtspec.diag.suggest import closest
from frtspec.ir import expr as ir
from frtspec.ir.decl import Param, Point, Seam, Slot, Structure, Variant
from frtspec.ir.walk import statements
from frtspec.sema.common import version
from frtspec.sema.context import Context, listing
from frtspec.syntax import ast


@dataclass(frozen=True)
class Built:
    """A structure as built, with the words of it that could not be parsed.

    ``right``: nothing about it was reported.
    """

    structure: Structure
    dropped: frozenset[str]
    seams_lost: bool
    right: bool


@dataclass(frozen=True)
class Target:
    """A structure or seam, seen from outside."""

    structure: Structure
    seam: Seam | None

    @property
    def text(self) -> str:
        name = self.structure.name
        return f"{name}.{self.seam.name}" if self.seam else name

    @property
    def key(self) -> tuple[str, int, str | None]:
        return self.structure.name, self.structure.version, self.seam.name if self.seam else None

    @property
    def body(self) -> tuple[ir.Stmt, ...]:
        return self.seam.body if self.seam else self.structure.reference

    @property
    def slots(self) -> tuple[Slot, ...]:
        if self.seam is None:
            return self.structure.slots
        return tuple(s for s in self.structure.slots if s.name in self.seam.slots)

    @property
    def points(self) -> tuple[Point, ...]:
        if self.seam is None:
            return self.structure.points
        return tuple(p for p in self.structure.points if p.name in self.seam.points)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Axes that the target depends on."""
        if self.seam is None:
            return self.structure.variants
        return tuple(v for v in self.structure.variants if v.name in self.seam.variants)

    @property
    def params(self) -> tuple[Param, ...]:
        if self.seam is None:
            return self.structure.params
        return tuple(p for p in self.structure.params if p.name in self.seam.params)

    @property
    def handed_in(self) -> tuple[str, ...]:
        """Names for the tensors a form is called with: a seam's sources, or the inputs and
        the points that are nothing but an input."""
        if self.seam is not None:
            return self.seam.sources
        inputs = [port.name for port in self.structure.inputs]
        return (*inputs, *self.aliases())

    def aliases(self) -> Mapping[str, str]:
        """Point -> the input it is, for points that only name one (``point x_in = x``)."""
        return {
            s.name: s.value.name
            for s in self.structure.reference
            if isinstance(s, ir.Let)
            and s.kind == "point"
            and s.when is None
            and isinstance(s.value, ir.Ref)
            and s.value.kind == "input"
        }

    def bounds(self, kind: str) -> Mapping[str, Decimal]:
        """The bounds of the structure's ``boundary`` gate, or of the ``seam``'s own."""
        if kind == "seam":
            stated = self.seam.gates if self.seam else ()
        else:
            stated = tuple(m for g in self.structure.gates if g.kind == kind for m in g.metrics)
        return {m.metric: m.bound for m in stated if m.bound is not None}

    @property
    def values(self) -> tuple[str, ...]:
        """Names defined inside, in order."""
        lets = [s.name for s in statements(self.body) if isinstance(s, ir.Let)]
        return tuple(dict.fromkeys(lets))


def resolve(
    context: Context, ref: ast.StructRef, structures: Mapping[str, Mapping[int, Built]]
) -> Target | None:
    """The target a reference names, or None when it was reported.

    Without a version the highest one is meant where there is only one. Where there is one
    guess at what a wrong reference means, it is reported and the guess is returned, so that
    what follows is checked as well.
    """
    by_version = structures.get(ref.name.id)
    if by_version is None:
        context.unknown("structure", ref.name, structures, code="FRT0206", everywhere=True)
        near = closest(ref.name.id, structures)
        if near is None:
            return None
        by_version = structures[near]
    if ref.version is None:
        if len(by_version) > 1:
            context.error(
                "FRT0206",
                f"structure `{ref.name.id}` has the versions {listing(_texts(by_version))}",
                ref.span,
                help="say which: `version 1`",
            )
            return None
        wanted = next(iter(by_version))
    else:
        wanted = version(context, ref.version)
    built = by_version.get(wanted)
    if built is None:
        context.error(
            "FRT0206",
            f"structure `{ref.name.id}` has no version {wanted}",
            ref.version.span if ref.version else ref.span,
            help=f"there is {listing(_texts(by_version))}",
        )
        if len(by_version) > 1:
            return None
        (built,) = by_version.values()
    context.dropped.add(built.dropped)
    if ref.seam is None:
        return Target(built.structure, None)
    seam = next((s for s in built.structure.seams if s.name == ref.seam.id), None)
    if seam is None:
        if not built.seams_lost:
            known = [s.name for s in built.structure.seams]
            context.unknown("seam", ref.seam, known, code="FRT0206")
        near = closest(ref.seam.id, [s.name for s in built.structure.seams])
        return None if near is None else Target(built.structure, built.structure.seam(near))
    return Target(built.structure, seam)


def _texts(by_version: Mapping[int, Built]) -> list[str]:
    return [f"version {number}" for number in sorted(by_version)]

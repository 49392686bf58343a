"""Where each name of a file stands, and what it names.

Read from the syntax tree alone, so that it holds for a file with mistakes too. What a name
names is a *symbol*, a tuple that begins with its kind:

- ``("structure" | "pipeline", name, version)``, ``("scheme" | "binding", name)``,
  ``("impl", structure, version, seam, name)``: a declaration; a version that was left out is
  None, see ``Workspace.settled``
- ``("member", owner, name)``: of a structure or pipeline: a dim, slot, port, point, stage…
- ``("seam", owner, name)``, ``("value", owner, axis, name)``: of a structure
- ``("local", owner, name)``: what only its declaration sees: a pack, a binding's dim
- ``("inner", owner, offset, name)``: what only a block inside sees: the index of an ``each``
- ``("op", name)``: an op of the table
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from frtspec.diag.source import Span
from frtspec.ir.ops import OPS
from frtspec.syntax import ast

Symbol = tuple[object, ...]
Resolve = Callable[[ast.Name], "Symbol | None"]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One name in the text. ``kind``: what it is called in words (``slot``); ``whole``: of a
    definition, the member or declaration around it."""

    span: Span
    name: str
    symbol: Symbol
    kind: str
    whole: Span | None = None

    @property
    def defines(self) -> bool:
        return self.whole is not None


def occurrences(file: ast.File) -> list[Occurrence]:
    """Every occurrence of a file, in order of place."""
    from frtspec.lsp.occur_binding import binding, pipeline  # both build on `Collector`
    from frtspec.lsp.occur_structure import auto, impl, scheme, structure

    found = Collector()
    for decl in file.decls:
        match decl:
            case ast.StructureDecl():
                structure(found, decl)
            case ast.ImplDecl():
                impl(found, decl)
            case ast.SchemeDecl():
                scheme(found, decl)
            case ast.AutoDecl():
                auto(found, decl)
            case ast.BindingDecl():
                binding(found, decl)
            case ast.PipelineDecl():
                pipeline(found, decl)
    return sorted(found.out, key=lambda one: (one.span.start, not one.defines))


class Collector:
    """Collects occurrences; knows how expressions are read."""

    def __init__(self) -> None:
        self.out: list[Occurrence] = []

    def define(self, name: ast.Name, symbol: Symbol, kind: str, whole: Span) -> None:
        self.out.append(Occurrence(name.span, name.id, symbol, kind, whole))

    def refer(self, name: ast.Name | None, symbol: Symbol | None, kind: str = "name") -> None:
        if name is not None and symbol is not None:
            self.out.append(Occurrence(name.span, name.id, symbol, kind))

    def members(self, names: Iterable[ast.Name | None], owner: Symbol, kind: str = "name") -> None:
        for name in names:
            if name is not None:
                self.refer(name, ("member", owner, name.id), kind)

    def target(self, ref: ast.StructRef) -> Symbol:
        """Refers to a structure and its seam; the structure's symbol."""
        owner = structure_of(ref)
        self.refer(ref.name, owner, "structure")
        if ref.seam is not None:
            self.refer(ref.seam, ("seam", owner, ref.seam.id), "seam")
        return owner

    def values(self, owner: Symbol, axis: str, names: Iterable[object]) -> None:
        """Values of a variant; what else an arm may hold (``refuse``, a text) is left out."""
        for name in names:
            if isinstance(name, ast.Name) and name.id != "refuse":
                self.refer(name, ("value", owner, axis, name.id), "value")

    def chosen(self, owner: Symbol, axis: str, value: ast.Expr, resolve: Resolve) -> None:
        """``variant axis = value``, a name or a match whose arms are."""
        if isinstance(value, ast.Match):
            self.expr(value.subject, owner, resolve)
            self.values(owner, axis, (arm.value for arm in value.arms))
        else:
            self.values(owner, axis, (value,))

    # ------------------------------------------------------------ expressions

    def exprs(self, nodes: Iterable[object], owner: Symbol | None, resolve: Resolve) -> None:
        for node in nodes:
            self.expr(node, owner, resolve)

    def expr(self, node: object, owner: Symbol | None, resolve: Resolve) -> None:
        """``owner``: the structure whose variants may be asked about."""
        match node:
            case ast.Name():
                self.refer(node, resolve(node))
            case ast.Is(axis=axis, values=values):
                self._axis(axis, values, owner)
            case ast.Present(name=name):
                self.refer(name, resolve(name))
            case ast.OverDim(dim=dim):
                self.refer(dim, resolve(dim), "dim")
            case ast.Call(func=func, args=args):
                if func.id in OPS:
                    self.refer(func, ("op", func.id), "op")
                else:
                    self.refer(func, resolve(func))
                self.exprs((arg.value for arg in args), owner, resolve)
            case ast.Match(subject=subject, arms=arms):
                if isinstance(subject, ast.Name) and owner is not None:
                    patterns = [arm.pattern for arm in arms if isinstance(arm.pattern, ast.Name)]
                    self._axis(subject, patterns, owner)
                else:
                    self.expr(subject, owner, resolve)
                self.exprs((arm.value for arm in arms), owner, resolve)
            case ast.EachExpr(index=index, value=value):
                self.refer(index, resolve(index), "index")
                self.expr(value, owner, resolve)
            case ast.Field(base=base):
                self.expr(base, owner, resolve)
            case ast.Slice(lo=lo, hi=hi) | ast.Range(lo=lo, hi=hi):
                self.exprs((lo, hi), owner, resolve)
            case _:
                self.exprs(_inside(node), owner, resolve)

    def _axis(self, axis: ast.Name, values: Iterable[ast.Name], owner: Symbol | None) -> None:
        if owner is not None:
            self.refer(axis, ("member", owner, axis.id), "variant")
            self.values(owner, axis.id, values)


def _inside(node: object) -> tuple[object, ...]:
    match node:
        case ast.Index(base=base, items=items):
            return (base, *items)
        case ast.Unary(operand=operand):
            return (operand,)
        case ast.Binary(left=left, right=right):
            return left, right
        case ast.Compare(first=first, links=links):
            return (first, *(right for _, right in links))
        case ast.FactIs(fact=fact):
            return (fact,)
        case ast.OneOf(subject=subject, values=values):
            return (subject, *values)
        case ast.Tuple_(items=items):
            return items
        case ast.DimItem(alternatives=alternatives):
            return alternatives
    return ()


def structure_of(ref: ast.StructRef) -> Symbol:
    """The symbol of the structure that a reference names."""
    return ("structure", ref.name.id, None if ref.version is None else int(ref.version.value))


def number(version: ast.Number) -> int:
    return int(version.value)

"""Names in structures, impls and schemes."""

from __future__ import annotations

from collections.abc import Iterable

from frtspec.ir.stepops import LITERALS
from frtspec.lsp.occurrences import Collector, Resolve, Symbol, number, structure_of
from frtspec.syntax import ast
from frtspec.syntax.ast.walk import inside

_LETS = {"let": "value", "next": "value", "emit": "value", "point": "point", "yield": "output"}


def structure(found: Collector, decl: ast.StructureDecl) -> None:
    """Every name of a structure."""
    owner: Symbol = ("structure", decl.name.id, number(decl.version))
    found.define(decl.name, owner, "structure", decl.span)

    def resolve(name: ast.Name) -> Symbol:
        return ("member", owner, name.id)

    for member in decl.members:
        match member:
            case ast.DimDecl(names=names):
                for name, index in names:
                    found.define(name, resolve(name), "dim", member.span)
                    found.members((index,), owner, "index")
            case ast.IndexDecl(name=name, range=span):
                found.define(name, resolve(name), "index", member.span)
                found.expr(span, owner, resolve)
            case ast.ParamDecl(name=name):
                found.define(name, resolve(name), "param", member.span)
            case ast.PortDecl(name=name):
                kind = "input" if member.direction == "in" else "output"
                found.define(name, resolve(name), kind, member.span)
                found.members((member.index, member.updates, member.aliases), owner)
                found.exprs((*member.dims, member.when), owner, resolve)
                found.members((member.type.scale,), owner, "scale")
            case ast.SlotDecl(name=name):
                found.define(name, resolve(name), "slot", member.span)
                found.members((member.index,), owner, "index")
                found.exprs((*(member.dims or ()), member.when), owner, resolve)
                if member.structure is not None:
                    inner = found.target(member.structure)
                    found.exprs(member.pins, inner, lambda name: None)
            case ast.PartDecl(name=name):
                found.define(name, resolve(name), "part", member.span)
                found.expr(member.when, owner, resolve)
            case ast.VariantDecl(name=name):
                found.define(name, resolve(name), "variant", member.span)
                for value in member.values:
                    found.define(value, ("value", owner, name.id, value.id), "value", member.span)
                if member.default is not None:
                    found.values(owner, name.id, (member.default,))
            case ast.CombinationsDecl(excluded=excluded):
                found.exprs(excluded, owner, resolve)
            case ast.PointDecl(name=name):
                found.define(name, resolve(name), "point", member.span)
                found.expr(member.when, owner, resolve)
            case ast.ReferenceDecl(body=body):
                _body(found, body, owner, resolve)
            case ast.SeamDecl(name=name):
                found.define(name, ("seam", owner, name.id), "seam", member.span)
                found.members((*member.sources, *member.targets), owner)
            case ast.QualifyDecl(when=when, rules=rules) | ast.RequireDecl(when=when, rules=rules):
                found.exprs((when, *rules), owner, resolve)
            case ast.DiscoverDecl():
                _discover(found, member, owner)


def _body(found: Collector, body: Iterable[ast.Stmt], owner: Symbol, resolve: Resolve) -> None:
    for stmt in body:
        match stmt:
            case ast.LetStmt(name=name):
                found.exprs((stmt.value, stmt.when, stmt.otherwise), owner, resolve)
                found.refer(stmt.index, None if stmt.index is None else resolve(stmt.index))
                symbol = resolve(name)
                if symbol is None:
                    continue
                if stmt.kind == "yield":  # the output that the boundary declares
                    found.refer(name, symbol, "output")
                else:
                    found.define(name, symbol, _LETS.get(stmt.kind, "value"), stmt.span)
            case ast.EachStmt(index=index, body=inner):
                found.refer(index, resolve(index), "index")
                _body(found, inner, owner, resolve)
            case ast.ScanStmt():
                _scan(found, stmt, owner, resolve)


def _scan(found: Collector, stmt: ast.ScanStmt, owner: Symbol, resolve: Resolve) -> None:
    """A scan has names of its own: its step, what it carries, and its ``let``."""
    lets = [s for s in stmt.body if isinstance(s, ast.LetStmt)]
    own = {stmt.step.id, *(name.id for name, _ in stmt.carries)}
    own |= {let.name.id for let in lets if let.kind == "let"}

    def inside(name: ast.Name) -> Symbol | None:
        if name.id in own:
            return ("inner", owner, stmt.span.start, name.id)
        return resolve(name)

    found.define(stmt.step, ("inner", owner, stmt.span.start, stmt.step.id), "step", stmt.span)
    found.refer(stmt.dim, resolve(stmt.dim), "dim")
    found.exprs(stmt.over, owner, inside)
    for name, start in stmt.carries:
        symbol = ("inner", owner, stmt.span.start, name.id)
        found.define(name, symbol, "carry", stmt.span)
        found.expr(start, owner, resolve)
    _body(found, stmt.body, owner, inside)


def _discover(found: Collector, decl: ast.DiscoverDecl, owner: Symbol) -> None:
    if decl.seam is not None:
        found.refer(decl.seam, ("seam", owner, decl.seam.id), "seam")
    roles = {m.name.id for m in decl.members if isinstance(m, ast.RoleDecl)}

    def role(name: ast.Name | None) -> Symbol | None:
        if name is None or name.id not in roles:
            return None
        return ("inner", owner, decl.span.start, name.id)

    for member in decl.members:
        match member:
            case ast.RoleDecl(name=name):
                symbol = role(name)
                assert symbol is not None
                found.define(name, symbol, "role", member.span)
                for slot in member.slots:
                    found.members(slot.chunks or (slot.name,), owner, "slot")
                for tells in member.tells:
                    found.members((tells.axis,), owner, "variant")
                    found.values(owner, tells.axis.id, (arm.value for arm in tells.arms))
                found.members((member.gives,), owner, "param")
            case ast.CalledDecl(role=name):
                found.refer(name, role(name), "role")
            case ast.RolePoint(point=point, place=place):
                found.members((point,), owner, "point")
                found.refer(place.role, role(place.role), "role")
            case ast.PointNone(point=point):
                found.members((point,), owner, "point")
            case ast.VariantSet(axis=axis, value=value):
                found.members((axis,), owner, "variant")
                found.chosen(owner, axis.id, value, lambda name: None)
            case ast.DiscoverBoundary(ports=ports):
                for port, place in ports:
                    found.members((port,), owner, "port")
                    found.refer(place.role, role(place.role), "role")
            case ast.DiscoverDims(names=names):
                found.members(names, owner, "dim")


# ---------------------------------------------------------------- impls and schemes


def impl(found: Collector, decl: ast.ImplDecl) -> None:
    """Every name of an impl: its own packs, scales and params, else the structure's."""
    structure = found.target(decl.target)
    own: Symbol = impl_symbol(decl.target, decl.name.id)
    found.define(decl.name, own, "impl", decl.span)
    named = (ast.ParamDecl, ast.PackDecl, ast.ScaleDecl)
    locals_ = {m.name.id for m in decl.members if isinstance(m, named)}

    def resolve(name: ast.Name) -> Symbol:
        return ("local", own, name.id) if name.id in locals_ else ("member", structure, name.id)

    for member in decl.members:
        match member:
            case ast.ParamDecl(name=name):
                found.define(name, resolve(name), "param", member.span)
            case ast.PackDecl(name=name, value=value):
                found.define(name, resolve(name), "pack", member.span)
                found.expr(value, structure, resolve)
            case ast.ScaleDecl(name=name, value=value):
                found.define(name, resolve(name), "scale", member.span)
                found.expr(value, structure, resolve)
            case ast.NumericsDecl(items=items):
                found.members((value for _, value, _ in items), structure, "value")
            case ast.AdmitsDecl(point=point):
                found.members((point,), structure, "point")
            case ast.OnlyDecl(axis=axis, values=values):
                found.members((axis,), structure, "variant")
                found.values(structure, axis.id, values)
            case ast.RequireDecl(when=when, rules=rules):
                found.exprs((when, *rules), structure, resolve)
            case ast.RungDecl():
                _rung(found, member, structure, resolve)
            case ast.BandDecl(dim=dim, range=span, rungs=rungs):
                found.refer(dim, resolve(dim), "dim")
                found.expr(span, structure, resolve)
                for rung in rungs:
                    _rung(found, rung, structure, resolve)


def _rung(found: Collector, rung: ast.RungDecl, structure: Symbol, resolve: Resolve) -> None:
    _steps(found, rung, structure, resolve)
    for member in rung.members:
        match member:
            case ast.EnvelopeDecl(rules=rules):
                found.exprs(rules, structure, resolve)
            case ast.CallDecl(entry=entry, args=args):
                if isinstance(entry, ast.Match):
                    _entries(found, entry, structure, resolve)
                found.exprs((arg.value for arg in args), structure, resolve)
            case ast.LowerDecl(op=op):
                found.refer(op, ("op", op.id), "op")
            case ast.OnlyDecl(axis=axis, values=values):
                found.members((axis,), structure, "variant")
                found.values(structure, axis.id, values)


def _steps(found: Collector, rung: ast.RungDecl, structure: Symbol, outer: Resolve) -> None:
    """What a rung prepares, and the lets of its call: names that only this rung sees."""
    calls = [m for m in rung.members if isinstance(m, ast.CallStepsDecl)]
    nodes = [*rung.members, *(step for call in calls for step in call.steps)]
    steps = [node for node in nodes if isinstance(node, ast.StepDecl)]
    made = {name.id for step in steps if step.kind != "yield" for name in step.names}

    entries = {node.func.id for node in inside(steps) if isinstance(node, ast.Call)}

    def resolve(name: ast.Name) -> Symbol | None:
        if name.id in made - {"_"}:
            return ("inner", structure, rung.span.start, name.id)
        return None if name.id in ("_", *LITERALS, *entries) else outer(name)

    for step in steps:
        found.exprs((step.value, step.when, step.otherwise), structure, resolve)
        for name in step.names:
            symbol = resolve(name)
            if step.kind == "yield":
                found.members((name,), structure, "output")
            elif symbol is not None:
                found.define(name, symbol, "value", step.span)


def _entries(found: Collector, entry: ast.Match, structure: Symbol, resolve: Resolve) -> None:
    """``match axis { value => entry (args) }``: the entries themselves are the kernel's."""
    if isinstance(entry.subject, ast.Name):
        found.members((entry.subject,), structure, "variant")
        found.values(structure, entry.subject.id, (arm.pattern for arm in entry.arms))
    for arm in entry.arms:
        if isinstance(arm.value, ast.Call):
            found.exprs((arg.value for arg in arm.value.args), structure, resolve)


def impl_symbol(target: ast.StructRef, name: str) -> Symbol:
    """The symbol of an impl of a structure or seam."""
    _, structure, version = structure_of(target)
    return ("impl", structure, version, None if target.seam is None else target.seam.id, name)


def scheme(found: Collector, decl: ast.SchemeDecl) -> None:
    """Every name of a scheme."""
    found.define(decl.name, ("scheme", decl.name.id), "scheme", decl.span)
    for member in decl.members:
        if not isinstance(member, ast.AtDecl):
            continue
        structure = found.target(member.target)

        def resolve(name: ast.Name, structure: Symbol = structure) -> Symbol:
            return ("member", structure, name.id)

        found.members((stat.point for stat in member.stats), structure, "point")
        found.expr(member.keep_when, None, resolve)
        if member.use is not None:
            form = impl_symbol(member.target, member.use.id)
            found.refer(member.use, form, "impl")
            for arg in member.params:
                if arg.name is not None:
                    found.refer(arg.name, ("local", form, arg.name.id), "param")


def auto(found: Collector, decl: ast.AutoDecl) -> None:
    """The schemes that an ``auto`` table names."""
    for _, name in decl.arms:
        found.refer(name, ("scheme", name.id), "scheme")

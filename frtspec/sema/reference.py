"""Statements of a reference: definitions in order, names visible where they may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from frtspec.diag.source import Span
from frtspec.dims import Poly
from frtspec.ir import expr as ir
from frtspec.sema.context import Context, listing
from frtspec.sema.exprs import Exprs, items_text
from frtspec.sema.scope import Scope, Symbol, article, declare
from frtspec.syntax import ast

POINT_KINDS = ("statistic", "content", "observation")

OUT_OF_PLACE, NO_OTHERWISE, SCAN = "FRT0314", "FRT0305", "FRT0313"


@dataclass
class References:
    """Builds the statements of one reference.

    ``outputs``: output name -> its symbol. ``points``: what the reference defines,
    in order, name -> (kind, condition, span).
    """

    context: Context
    exprs: Exprs
    outputs: Mapping[str, Symbol]
    points: dict[str, tuple[str, ir.Cond | None, Span, str | None]] = field(default_factory=dict)

    def build(self, body: tuple[ast.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        return self._body(body, self.exprs)

    def _body(self, body: tuple[ast.Stmt, ...], exprs: Exprs) -> tuple[ir.Stmt, ...]:
        out: list[ir.Stmt] = []
        for node in body:
            match node:
                case ast.LetStmt():
                    out.append(self._let(node, exprs))
                case ast.EachStmt():
                    out += self._each(node, exprs)
                case ast.ScanStmt():
                    out.append(self._scan(node, exprs))
        return tuple(out)

    # ------------------------------------------------------------ definitions

    def _let(self, node: ast.LetStmt, exprs: Exprs) -> ir.Stmt:
        exprs.touched.clear()
        value = exprs.expr(node.value)
        otherwise = None if node.otherwise is None else exprs.expr(node.otherwise)
        named = set(exprs.touched)
        when = None if node.when is None else exprs.cond(node.when)
        broken = node.when is not None and when is None
        rebinds = self._define(node, exprs.scope)
        if broken and rebinds:
            named.add(node.name.id)
        misplaced = node.kind == "yield" and exprs.scope.step is not None
        if broken or misplaced or isinstance(value, ir.Invalid):
            value = ir.Invalid(node.span, tuple(sorted(named)))
        lost = node.when is not None and otherwise is None and not rebinds
        if lost and node.kind == "let" and node.name.id not in self.context.dropped:
            self.context.error(
                NO_OTHERWISE,
                f"`{node.name.id}` has no value where the condition is false",
                node.when.span if node.when else node.span,
                help=f"add `otherwise …`, or define `{node.name.id}` before and let this "
                "line take its place",
            )
        if node.kind == "point":
            self._point(node, when)
        index = None if node.index is None else node.index.id
        return ir.Let(node.kind, node.name.id, index, value, when, otherwise, rebinds, node.span)

    def _define(self, node: ast.LetStmt, scope: Scope) -> bool:
        """Make the name visible; whether it had a value before, at this level."""
        name = node.name.id
        if node.kind == "yield":
            self._yield(node, scope)
            return False
        if node.kind in ("next", "emit") and scope.step is None:
            self._misplaced(node, f"`{node.kind}` stands inside a scan")
            return False
        if node.index is not None:
            self._misplaced(node, f"only an output is repeated, not `{node.kind} {name}[…]`")
        if node.kind == "next":
            self._next(node, scope)
            return True
        if node.kind == "emit":
            return False
        if node.kind == "point" and scope.outer is not None:
            self._misplaced(node, "a point stands at the top level of a reference")
        symbol = Symbol("point" if node.kind == "point" else "value", node.name.span)
        before = scope.find(name)
        if before is None or (name in self.outputs and before is self.outputs[name]):
            if before is not None:  # a value may be called as the output it becomes
                scope.names[name] = symbol
            else:
                declare(self.context, scope, node.kind, node.name, symbol)
            return False
        if before.kind == "value" and name in scope.names and node.kind == "let":
            scope.names[name] = symbol
            return True
        if before.kind == "point" and node.kind == "point":
            return False  # one definition in each combination is right; typing counts them
        self._taken(node, before, scope)
        return before.kind in ("value", "carry")

    def _taken(self, node: ast.LetStmt, before: Symbol, scope: Scope) -> None:
        name = node.name.id
        if before.kind == "value" and name not in scope.names:
            problem = f"`{name}` belongs outside: each turn is on its own"
            help = "carry it: `carry s = …` and `next s = …`" if scope.step else None
        else:
            problem = f"`{name}` is {article(before.kind)} already"
            help = "give the value another name" if before.kind != "value" else None
        self.context.error(
            "FRT0202", problem, node.name.span, notes=((before.span, "declared here"),), help=help
        )
        self.context.dropped.add((name,))

    def _misplaced(self, node: ast.LetStmt, message: str) -> None:
        self.context.error(OUT_OF_PLACE, message, node.name.span)

    def _point(self, node: ast.LetStmt, when: ir.Cond | None) -> None:
        kind = "statistic"
        if node.point_kind is not None:
            kind = node.point_kind.id
            if kind not in POINT_KINDS:
                self.context.unknown("kind of point", node.point_kind, POINT_KINDS, code="FRT0207")
                kind = "statistic"
        if node.otherwise is not None:
            when = None
        was = None if node.was is None else node.was.id
        self.points.setdefault(node.name.id, (kind, when, node.name.span, was))

    def _yield(self, node: ast.LetStmt, scope: Scope) -> None:
        symbol = self.outputs.get(node.name.id)
        if symbol is None:
            self.context.unknown("output", node.name, self.outputs)
            return
        self.context.use("output", node.name.id)
        if scope.step is not None:
            self._misplaced(node, "an output is yielded after the scan, from what it emits")
        given = None if node.index is None else node.index.id
        if given != symbol.index or (given is not None and scope.index != given):
            wanted = f"[{symbol.index}]" if symbol.index else ""
            where = f" inside `each {symbol.index}`" if symbol.index else ""
            self.context.error(
                "FRT0312",
                f"output `{node.name.id}` is {'' if symbol.index else 'not '}repeated",
                node.name.span,
                help=f"write `yield {node.name.id}{wanted} = …`{where}",
            )

    # ------------------------------------------------------------ each and scan

    def _each(self, node: ast.EachStmt, exprs: Exprs) -> list[ir.Stmt]:
        symbol = exprs.scope.find(node.index.id)
        if symbol is None or symbol.kind != "index":
            indexes = [n for n, s in exprs.scope.names.items() if s.kind == "index"]
            self.context.unknown("index", node.index, indexes)
        elif exprs.scope.outer is not None:
            self.context.error(OUT_OF_PLACE, "`each` stands at the top level", node.index.span)
        self.context.use("index", node.index.id)
        inner = exprs.inside(exprs.scope.inner(index=node.index.id))
        body = self._body(node.body, inner)
        return [ir.Each(node.index.id, body, node.span)]

    def _scan(self, node: ast.ScanStmt, exprs: Exprs) -> ir.Stmt:
        if exprs.scope.outer is not None:
            self.context.error(OUT_OF_PLACE, "`scan` stands at the top level", node.step.span)
        dim = exprs.sizes.poly(node.dim)
        scope = exprs.scope.inner(step=node.step.id)
        step = Symbol("step", node.step.span)
        if exprs.scope.find(node.step.id) is not None:
            self._taken_by(node.step, exprs.scope)
        scope.names[node.step.id] = step
        over = [self._over(item, node.step.id, exprs, scope) for item in node.over]
        carries = []
        for name, start in node.carries:
            carries.append((name.id, exprs.expr(start)))
            if exprs.scope.find(name.id) is not None:
                self._taken_by(name, exprs.scope)
            scope.names[name.id] = Symbol("carry", name.span)
        body = self._body(node.body, exprs.inside(scope))
        self._check_scan(node, body)
        for name, _ in node.carries:
            exprs.scope.names.setdefault(name.id, Symbol("value", name.span))
        for stmt in node.body:
            if isinstance(stmt, ast.LetStmt) and stmt.kind == "emit":
                self._emitted(stmt, exprs.scope)
        if dim is None or None in over:
            return ir.Scan(node.step.id, dim or _ONE, (), tuple(carries), (), node.span)
        pairs = tuple(pair for pair in over if pair is not None)
        return ir.Scan(node.step.id, dim, pairs, tuple(carries), body, node.span)

    def _taken_by(self, name: ast.Name, scope: Scope) -> None:
        before = scope.find(name.id)
        assert before is not None
        self.context.error(
            "FRT0202",
            f"`{name.id}` is {article(before.kind)} already",
            name.span,
            notes=((before.span, "declared here"),),
            help="give it another name",
        )

    def _emitted(self, stmt: ast.LetStmt, scope: Scope) -> None:
        before = scope.names.get(stmt.name.id)
        if before is not None and before.kind not in ("output", "value"):
            self._taken_by(stmt.name, scope)
        scope.names[stmt.name.id] = Symbol("value", stmt.name.span)

    def _over(
        self, item: ast.Expr, step: str, exprs: Exprs, scope: Scope
    ) -> tuple[str, int] | None:
        """``k[:, t]`` -> (k, 1): what is read step by step, and along which axis."""
        if isinstance(item, ast.ErrorNode):
            return None
        if not isinstance(item, ast.Index) or not isinstance(item.base, ast.Name):
            exprs.expr(item.base if isinstance(item, ast.Index) else item)
            self.context.error(
                SCAN,
                "a scan reads a named value step by step",
                item.span,
                help=f"write `k[:, {step}]`; name the value by a `let` before where it has none",
            )
            return None
        base = exprs.expr(item.base)
        text = items_text(item.items)
        scope.names[item.base.id] = Symbol("over", item.base.span, over_items=text)
        if isinstance(base, ir.Invalid):
            return None
        if text.count(step) != 1 or set(text) - {step, ":", "..."} or text.count("...") > 1:
            self.context.error(
                SCAN,
                f"`{step}` has to stand in the place of one axis",
                item.span,
                help=f"`{item.base.id}[:, {step}]` reads along the second axis",
            )
            return None
        place = text.index(step)
        return item.base.id, place - len(text) if "..." in text[:place] else place

    def _check_scan(self, node: ast.ScanStmt, body: tuple[ir.Stmt, ...]) -> None:
        nexts = [s.name for s in body if isinstance(s, ir.Let) and s.kind == "next"]
        emits = [s for s in body if isinstance(s, ir.Let) and s.kind == "emit"]
        for name, start in node.carries:
            if nexts.count(name.id) != 1 and name.id not in self.context.dropped:
                problem = "never changes" if name.id not in nexts else "is set twice"
                self.context.error(
                    SCAN,
                    f"the carried `{name.id}` {problem}",
                    name.span.to(start.span),
                    help=f"a scan needs one `next {name.id} = …` for it",
                )
        for emitted in sorted({s.name for s in emits}):
            if sum(s.name == emitted for s in emits) > 1:
                self.context.error(SCAN, f"`{emitted}` is emitted twice", node.step.span)
        if not node.over:
            self.context.error(
                SCAN,
                "this scan reads nothing",
                node.step.span,
                help=f"name what it walks: scan {node.step.id} in {node.dim.id} over "
                f"x[:, {node.step.id}] …",
            )
        if not node.carries:
            self.context.error(
                SCAN,
                "this scan carries nothing",
                node.step.span,
                help="without a carried value every step is on its own: no scan is needed",
            )

    def _next(self, node: ast.LetStmt, scope: Scope) -> None:
        symbol = scope.find(node.name.id)
        if symbol is None or symbol.kind != "carry":
            carried = [n for n, s in scope.names.items() if s.kind == "carry"]
            if symbol is None:
                self.context.unknown("carried value", node.name, carried)
            else:
                self._misplaced(node, f"`{node.name.id}` is not carried; {listing(carried)} is")


_ONE = Poly.const(1)

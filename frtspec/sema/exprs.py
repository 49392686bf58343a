"""Expressions and conditions of a reference: syntax tree -> typed IR.

Names are resolved and operators become ops; types come later, once for each
combination of variants. What was reported becomes ``Invalid``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from frtspec.diag.source import Span
from frtspec.ir import expr as ir
from frtspec.ir.decl import Inner
from frtspec.ir.ops import CALLABLE, INFIX, OPS
from frtspec.sema.arguments import Arguments
from frtspec.sema.arms import complete_arms
from frtspec.sema.composition import InnerCall
from frtspec.sema.context import Context
from frtspec.sema.hostcalls import HostCall
from frtspec.sema.scope import OPERANDS, Scope, Symbol
from frtspec.sema.sizes import DEEPEST, Sizes, short, whole
from frtspec.syntax import ast

NO_PLACE, REPEATED = "FRT0319", "FRT0312"


@dataclass
class Exprs:
    """Builds expressions in one scope.

    ``axes``: variant axis -> its values. ``givable``: names that ``present`` may ask
    about (optional inputs and slots, and those with a ``when``). ``parts``: what can be
    called; ``outputs`` give their types to results of the same name.
    """

    context: Context
    sizes: Sizes
    scope: Scope
    axes: Mapping[str, tuple[str, ...]]
    givable: frozenset[str]
    touched: set[str] = field(default_factory=set)
    """Values named since it was last cleared, also in what turned out invalid."""
    parts: Mapping[str, ast.PartDecl] = field(default_factory=dict)
    outputs: frozenset[str] = frozenset()
    inner: Mapping[str, Inner] = field(default_factory=dict)
    """Slots that are structures, and so can be called."""

    def inside(self, scope: Scope) -> Exprs:
        """The same, in an inner scope."""
        sizes = Sizes(self.context, self.sizes.dims, self.sizes.indexed, scope.index)
        return replace(self, sizes=sizes, scope=scope)

    # ------------------------------------------------------------ expressions

    def expr(self, node: object, depth: int = 0) -> ir.Expr:
        """The IR of an expression; ``Invalid`` when something in it was reported."""
        span: Span = node.span  # type: ignore[attr-defined]
        if depth > DEEPEST:
            return self.bad("FRT0317", "this expression is nested too deeply", span)
        match node:
            case ast.Name():
                return self._name(node)
            case ast.Number(value=value, text=text):
                if not value.is_finite() or not -300 < value.adjusted() < 300:
                    return self.bad("FRT0317", f"{short(text)} is no float", span)
                return ir.Const(value, span)
            case ast.Unary(op="-", operand=operand):
                return self.op("neg", [self.expr(operand, depth + 1)], span)
            case ast.Binary(op=op, left=left, right=right) if op in INFIX:
                sides = [self.expr(left, depth + 1), self.expr(right, depth + 1)]
                return self.op(INFIX[op], sides, span)
            case ast.Field():
                return self._field(node, depth)
            case ast.Index():
                return self._index(node, depth)
            case ast.Call():
                return self._call(node, depth)
            case ast.Match():
                return self._match(node, depth)
            case ast.ErrorNode():
                return ir.Invalid(span)
            case _:
                self._read(node)
                return self.bad(
                    NO_PLACE,
                    f"{_KINDS.get(type(node), 'this')} has no place in a reference",
                    span,
                    "conditions follow `when`; values are made of names, numbers and ops",
                )

    def _read(self, node: object) -> None:
        """Mark what is named in an expression that has no place here: it was meant to be
        read, so it is not reported as unused."""
        match node:
            case ast.Name(id=name):
                symbol = self.scope.find(name)
                if symbol is not None:
                    self.use(name, symbol)
            case ast.Compare(first=first, links=links):
                for side in (first, *(link for _, link in links)):
                    self._read(side)
            case ast.Binary(left=left, right=right):
                self._read(left)
                self._read(right)
            case ast.Unary(operand=operand):
                self._read(operand)

    def bad(self, code: str, message: str, span: Span, help: str | None = None) -> ir.Expr:
        self.context.error(code, message, span, help=help)
        return ir.Invalid(span)

    def op(self, op: str, args: Sequence[ir.Expr], span: Span, **attrs: ir.Attr) -> ir.Expr:
        if any(isinstance(arg, ir.Invalid) for arg in args):
            return ir.Invalid(span)
        fixed = dict(OPS[op].fixed) | attrs
        return ir.Op(op, tuple(args), tuple(sorted(fixed.items())), span)

    def _name(self, name: ast.Name) -> ir.Expr:
        symbol = self.scope.find(name.id)
        if symbol is None or symbol.kind not in OPERANDS:
            return self._no_operand(name, symbol)
        self.use(name.id, symbol)
        if symbol.index is not None:
            return self.bad(
                REPEATED,
                f"`{name.id}` is repeated over {symbol.index}",
                name.span,
                f"write `{name.id}[{symbol.index}]` inside `each {symbol.index}`",
            )
        return ir.Ref(name.id, _ref_kind(symbol), None, name.span)

    def use(self, name: str, symbol: Symbol) -> None:
        self.context.use(_used_as(symbol), name)
        self.touched.add(name)

    def _no_operand(self, name: ast.Name, symbol: Symbol | None) -> ir.Expr:
        """A name that is a dim (a number), something else, or nothing."""
        kind = symbol.kind if symbol else None
        if kind == "dim":
            poly = self.sizes.poly(name)
            return ir.Invalid(name.span) if poly is None else ir.DimValue(poly, name.span)
        if kind == "variant":
            self.context.use("variant", name.id)
            help = f"choose by it: match {name.id} {{ {self.axes[name.id][0]} => … }}"
            return self.bad(NO_PLACE, f"variant `{name.id}` is no value", name.span, help)
        if kind is not None:
            self.context.use(kind, name.id)
            call = f"call it: `{name.id}(…)`" if kind == "part" else None
            return self.bad(NO_PLACE, f"{kind} `{name.id}` is no value here", name.span, call)
        self.context.unknown("name", name, [*self.scope.visible(), *self.sizes.dims])
        return ir.Invalid(name.span)

    def _field(self, node: ast.Field, depth: int) -> ir.Expr:
        if isinstance(node.base, ast.Call) and node.base.func.id in self.inner:
            return InnerCall(self, node.base, depth).build(node.name)
        base = self.expr(node.base, depth + 1)
        if node.name.id == "T":
            return self.op("transpose", [base], node.span)
        return self.bad(
            NO_PLACE,
            f"`.{node.name.id}` means nothing here",
            node.name.span,
            "the one field of a value is .T, the transposed matrix",
        )

    # ------------------------------------------------------------ indices

    def _index(self, node: ast.Index, depth: int) -> ir.Expr:
        base, items = node.base, node.items
        if isinstance(base, ast.Call) and base.func.id in ("chunk", "split") and len(items) == 1:
            part = ast.Arg(items[0], None, items[0].span)  # type: ignore[arg-type]
            return self._call(ast.Call(base.func, (*base.args, part), node.span), depth)
        if isinstance(base, ast.Call) and len(items) == 1 and base.func.id in self.parts:
            results = self.parts[base.func.id].results
            item = items[0]
            if len(results) > 1 and isinstance(item, ast.Number):
                return HostCall(self, base, depth).build(whole(item.value))
        symbol = self.scope.find(base.id) if isinstance(base, ast.Name) else None
        if isinstance(base, ast.Name) and symbol is not None:
            special = self._named_index(node, base, symbol)
            if special is not None:
                return special
        value = self.expr(base, depth + 1)
        args = tuple(self._item(item) for item in items)
        if any(arg is None for arg in args):
            return ir.Invalid(node.span)
        return self.op("index", [value], node.span, items=tuple(a for a in args if a is not None))

    def _named_index(self, node: ast.Index, base: ast.Name, symbol: Symbol) -> ir.Expr | None:
        """``w[i]``, ``N[i]``, and ``k[:, t]`` of a scan; None for a plain index."""
        if symbol.kind == "dim":
            poly = self.sizes.poly(node)
            return ir.Invalid(node.span) if poly is None else ir.DimValue(poly, node.span)
        if symbol.over_items is not None and symbol.over_items == items_text(node.items):
            self.use(base.id, symbol)
            return ir.Ref(base.id, "over", None, node.span)
        if symbol.index is None or symbol.kind not in OPERANDS:
            return None
        self.use(base.id, symbol)
        item = node.items[0]
        right = len(node.items) == 1 and isinstance(item, ast.Name) and item.id == symbol.index
        if right and self.scope.index == symbol.index:
            self.context.use("index", symbol.index)
            return ir.Ref(base.id, _ref_kind(symbol), symbol.index, node.span)
        return self.bad(
            REPEATED,
            f"`{base.id}` is repeated over {symbol.index}",
            node.span,
            f"write `{base.id}[{symbol.index}]` inside `each {symbol.index}`",
        )

    def _item(self, item: object) -> ir.SliceArg | None:
        match item:
            case ast.EllipsisItem():
                return ir.SliceArg("ellipsis", None, None, None)
            case ast.Slice(lo=lo, hi=hi):
                ends = [None if end is None else self.sizes.poly(end) for end in (lo, hi)]
                if (lo is not None and ends[0] is None) or (hi is not None and ends[1] is None):
                    return None
                return ir.SliceArg("slice", ends[0], ends[1], None)
            case ast.Name(id=name) if name == self.scope.step:
                return ir.SliceArg("step", None, None, name)
            case _:
                poly = self.sizes.poly(item)
                return None if poly is None else ir.SliceArg("at", poly, None, None)

    # ------------------------------------------------------------ calls

    def _call(self, node: ast.Call, depth: int) -> ir.Expr:
        op = OPS.get(node.func.id)
        if op is None or op.name not in CALLABLE:
            symbol = self.scope.find(node.func.id)
            if node.func.id in self.inner:
                return InnerCall(self, node, depth).build(None)
            if node.func.id in self.parts:
                return HostCall(self, node, depth).build(None)
            if symbol is not None and symbol.kind == "part":
                self.context.use("part", node.func.id)
            else:
                self.context.unknown("op", node.func, CALLABLE)
            for arg in node.args:
                if not isinstance(arg.value, ast.Granularity | ast.OverDim | ast.EachExpr):
                    self.expr(arg.value, depth + 1)
            return ir.Invalid(node.span)
        return Arguments(self, op, node, depth).build()

    def _match(self, node: ast.Match, depth: int) -> ir.Expr:
        axis = node.subject
        if not isinstance(axis, ast.Name):
            return self.bad(NO_PLACE, "a reference chooses by a variant axis", node.subject.span)
        if axis.id not in self.axes:
            self.context.unknown("variant", axis, self.axes)
            for arm in node.arms:
                self.expr(arm.value, depth + 1)
            return ir.Invalid(node.span)
        self.context.use("variant", axis.id)
        arms = complete_arms(self.context, node, axis.id, self.axes[axis.id])
        if arms is None:
            for arm in node.arms:
                self.expr(arm.value, depth + 1)
            return ir.Invalid(node.span)
        built = tuple((values, self.expr(arm.value, depth + 1)) for values, arm in arms)
        if any(isinstance(value, ir.Invalid) for _, value in built):
            return ir.Invalid(node.span)
        return ir.Select(axis.id, built, node.span)

    # ------------------------------------------------------------ conditions

    def cond(self, node: object, depth: int = 0) -> ir.Cond | None:
        """The IR of a condition, or None when something in it was reported."""
        span: Span = node.span  # type: ignore[attr-defined]
        if depth > DEEPEST:
            self.bad("FRT0317", "this condition is nested too deeply", span)
            return None
        match node:
            case ast.Is():
                return self._axis_is(node)
            case ast.Present(name=name):
                return self._present(name)
            case ast.Unary(op="not", operand=operand):
                inner = self.cond(operand, depth + 1)
                return None if inner is None else ir.Not(inner)
            case ast.Binary(op="and" | "or" as op, left=left, right=right):
                sides = (self.cond(left, depth + 1), self.cond(right, depth + 1))
                if sides[0] is None or sides[1] is None:
                    return None
                both = (sides[0], sides[1])
                return ir.AllOf(both) if op == "and" else ir.AnyOf(both)
            case ast.ErrorNode():
                return None
            case _:
                self.bad(
                    NO_PLACE,
                    "this is no condition",
                    span,
                    "a condition is `axis is value`, `axis is (a, b)`, `present name`, "
                    "or these with not, and, or",
                )
                return None

    def _axis_is(self, node: ast.Is) -> ir.Cond | None:
        if node.axis.id not in self.axes:
            self.context.unknown("variant", node.axis, self.axes)
            return None
        self.context.use("variant", node.axis.id)
        known = self.axes[node.axis.id]
        wrong = [value for value in node.values if value.id not in known]
        for value in wrong:
            self.context.unknown(f"value of variant {node.axis.id}", value, known)
        return None if wrong else ir.AxisIs(node.axis.id, tuple(v.id for v in node.values))

    def _present(self, name: ast.Name) -> ir.Cond | None:
        if name.id in self.givable:
            return ir.IsPresent(name.id)
        symbol = self.scope.find(name.id)
        if symbol is None:
            self.context.unknown("name", name, self.givable)
        else:
            self.context.use(_used_as(symbol), name.id)
            self.bad(
                NO_PLACE,
                f"`{name.id}` is always there",
                name.span,
                f"`present` asks about an optional input or slot: declare `{name.id}?`",
            )
        return None


_KINDS: dict[type, str] = {
    ast.String: "a string",
    ast.Compare: "a comparison",
    ast.Is: "a condition",
    ast.Present: "a condition",
    ast.Unary: "`not`",
    ast.Binary: "this operator",
    ast.Tuple_: "a list",
    ast.EachExpr: "`each` outside cat(…)",
    ast.Granularity: "a granularity",
    ast.OverDim: "`over` outside a call",
}


def _used_as(symbol: Symbol) -> str:
    return "value" if symbol.kind in ("point", "carry", "over") else symbol.kind


def _ref_kind(symbol: Symbol) -> str:
    return "value" if symbol.kind == "point" else symbol.kind


def items_text(items: tuple[object, ...]) -> tuple[str, ...]:
    """An index as comparable text: ``(":", "t")``."""
    out = []
    for item in items:
        match item:
            case ast.Slice(lo=None, hi=None):
                out.append(":")
            case ast.EllipsisItem():
                out.append("...")
            case ast.Name(id=name):
                out.append(name)
            case _:
                out.append("?")
    return tuple(out)

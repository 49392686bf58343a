"""Arguments of an op's call: which are operands, which attributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frtspec.diag.source import Span
from frtspec.dims import Poly
from frtspec.ir import expr as ir
from frtspec.ir.opdef import OpDef, OpParam
from frtspec.ir.types import DTYPES
from frtspec.sema.context import listing
from frtspec.sema.sizes import whole
from frtspec.syntax import ast

if TYPE_CHECKING:
    from frtspec.sema.exprs import Exprs

ARGUMENTS = "FRT0310"

_APART = (ast.Granularity, ast.OverDim)
"""Arguments that stand apart from the positional ones."""


@dataclass
class Arguments:
    """Sorts the arguments of one call into operands and attributes."""

    exprs: Exprs
    op: OpDef
    node: ast.Call
    depth: int

    def build(self) -> ir.Expr:
        slots = self._assign()
        operands: list[ir.Expr] = []
        attrs: dict[str, ir.Attr] = {}
        right = slots is not None
        for param, arg in slots or ():
            if param.is_attr:
                value = self._attr(param, arg)
                right = right and value is not None
                attrs |= {} if value is None else {param.name: value}
            else:
                operands.append(self._operand(arg))
        over = tuple(arg.value.dim for arg in self.node.args if isinstance(arg.value, ast.OverDim))
        if over:
            right = None not in [self.exprs.sizes.poly(dim) for dim in over] and right
            attrs["over"] = tuple(dim.id for dim in over)
        axis = self._axis()
        attrs |= {} if axis is None else {"axis": axis}
        if over and axis is not None:
            self._bad(f"`{self.op.name}` takes `over …` or `axis = …`, not both", self.node.span)
        if not right:
            return ir.Invalid(self.node.span)
        return self.exprs.op(self.op.name, operands, self.node.span, **attrs)

    def _bad(self, message: str, span: Span) -> None:
        self.exprs.bad(ARGUMENTS, message, span, f"it is written {self.op.signature}")

    def _assign(self) -> list[tuple[OpParam, ast.Arg]] | None:
        """Pair parameters and arguments; None when they do not fit."""
        name, params = self.op.name, list(self.op.params)
        plain = [a for a in self.node.args if a.name is None and not isinstance(a.value, _APART)]
        named = {a.name.id: a for a in self.node.args if a.name is not None}
        for arg in self.node.args:
            if isinstance(arg.value, ast.Granularity):
                self._bad(f"`{name}` takes no granularity", arg.span)
            if isinstance(arg.value, ast.OverDim) and self.op.axes == "none":
                self._bad(f"`{name}` runs over no axis", arg.span)
        axis = named.pop("axis", None)
        if axis is not None and self.op.axes == "none":
            self._bad(f"`{name}` takes no axis", axis.span)
        if params and params[-1].kind == "tensors":
            params = [params[-1]] * len(plain)
        pairs = list(zip(params, plain, strict=False))
        rest = params[len(pairs) :]
        for key, arg in named.items():
            param = next((p for p in rest if p.name == key), None)
            if param is None:
                self._bad(f"`{name}` takes no argument `{key}` here", arg.span)
                return None
            rest.remove(param)
            pairs.append((param, arg))
        missing = [p.name for p in rest if not p.optional]
        if len(plain) > len(params) or missing or not plain:
            problem = f"lacks {listing(missing)}" if missing else f"takes {len(params)} arguments"
            self._bad(f"`{name}` {problem if plain else 'lacks its arguments'}", self.node.span)
            for arg in plain:
                self._operand(arg)
            return None
        return pairs

    def _operand(self, arg: ast.Arg) -> ir.Expr:
        value = arg.value
        if not isinstance(value, ast.EachExpr):
            return self.exprs.expr(value, self.depth + 1)
        symbol = self.exprs.scope.find(value.index.id)
        if self.op.name != "cat" or symbol is None or symbol.kind != "index":
            if symbol is None:
                self.exprs.context.unknown("index", value.index, ())
            elif self.op.name != "cat":
                self._bad("`each` stands in cat(…) only", value.span)
            return ir.Invalid(value.span)
        inner = self.exprs.inside(self.exprs.scope.inner(index=value.index.id))
        built = inner.expr(value.value, self.depth + 1)
        if isinstance(built, ir.Invalid):
            return built
        return ir.EachOf(value.index.id, built, value.span)

    def _attr(self, param: OpParam, arg: ast.Arg) -> ir.Attr | None:
        readers: dict[str, Callable[[ast.Arg], ir.Attr | None]] = {
            "dim": lambda a: self.exprs.sizes.poly(a.value),
            "dims": self._dims,
            "int": self._int,
            "dtype": self._dtype,
        }
        return readers[param.kind](arg)

    def _dims(self, arg: ast.Arg) -> tuple[Poly, ...] | None:
        items = arg.value.items if isinstance(arg.value, ast.Tuple_) else (arg.value,)
        sizes = [self.exprs.sizes.poly(item) for item in items]
        return None if None in sizes else tuple(s for s in sizes if s is not None)

    def _int(self, arg: ast.Arg) -> int | None:
        value = arg.value
        negative = isinstance(value, ast.Unary) and value.op == "-"
        inner = value.operand if isinstance(value, ast.Unary) and negative else value
        number = whole(inner.value) if isinstance(inner, ast.Number) else None
        if number is None:
            self._bad(f"`{self.op.name}` needs a whole number here", arg.span)
            return None
        return -number if negative else number

    def _dtype(self, arg: ast.Arg) -> str | None:
        if isinstance(arg.value, ast.Name) and arg.value.id in DTYPES:
            return arg.value.id
        if isinstance(arg.value, ast.Name):
            self.exprs.context.unknown("dtype", arg.value, DTYPES, code="FRT0207")
        else:
            self._bad(f"`{self.op.name}` needs a dtype here", arg.span)
        return None

    def _axis(self) -> int | None:
        for arg in self.node.args:
            if arg.name is not None and arg.name.id == "axis" and self.op.axes != "none":
                return self._int(arg)
        return None

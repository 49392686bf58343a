"""Calls of a part: ``attention(q, k, v)`` in a reference, computed by the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from frtspec.ir import expr as ir
from frtspec.syntax import ast

if TYPE_CHECKING:
    from frtspec.sema.exprs import Exprs

ARGUMENTS = "FRT0310"


@dataclass
class HostCall:
    """One call. A result that is named like an argument has its type; named like an output,
    the output's; else that of the first argument."""

    exprs: Exprs
    node: ast.Call
    depth: int

    def build(self, position: int | None) -> ir.Expr:
        """The call; ``position``: which of several results is meant."""
        name, node = self.node.func.id, self.node
        part = self.exprs.parts[name]
        self.exprs.context.use("part", name)
        operands = [
            self.exprs.expr(arg.value, self.depth + 1)
            for arg in node.args
            if not isinstance(arg.value, ast.Granularity | ast.OverDim | ast.EachExpr)
        ]
        written = f"{name}({', '.join(param.id for param in part.params)})"
        plain = all(arg.name is None for arg in node.args)
        if len(operands) != len(part.params) or len(operands) != len(node.args) or not plain:
            return self.exprs.bad(ARGUMENTS, f"`{name}` is called {written}", node.span)
        count = len(part.results)
        if not operands:
            return self.exprs.bad(
                ARGUMENTS, f"`{name}` takes nothing, so its result has no type", node.span
            )
        if count > 1 and (position is None or not 0 <= position < count):
            message = f"`{name}` has {count} results: which one is meant?"
            return self.exprs.bad(
                ARGUMENTS, message, node.span, f"{written}[0] to {written}[{count - 1}]"
            )
        if any(isinstance(operand, ir.Invalid) for operand in operands):
            return ir.Invalid(node.span)
        attrs: dict[str, ir.Attr] = self._type(part, position or 0)
        if position is not None:
            attrs["result"] = position
        called = ir.Ref(name, "part", None, node.func.span)
        return ir.Op("part", (called, *operands), tuple(sorted(attrs.items())), node.span)

    def _type(self, part: ast.PartDecl, position: int) -> dict[str, ir.Attr]:
        result = part.results[position].id
        params = [param.id for param in part.params]
        if result not in params and result in self.exprs.outputs:
            return {"like": 0, "port": result}
        return {"like": params.index(result) if result in params else 0}

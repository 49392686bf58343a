"""Config expressions of a binding: checked by name, evaluated on a live host later."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from frtspec.diag.source import Span
from frtspec.sema.context import Context
from frtspec.sema.sizes import DEEPEST
from frtspec.syntax import ast

WRONG = "FRT0602"
TRUTHS = ("true", "false", "none")
ROOTS = ("config", "model")
"""What fields hang on: the model's config, and the model itself."""

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
OPERATORS = ("+", "-", "*", "/", "//", "%", "??", "and", "or", "==", "!=")


@dataclass
class HostExprs:
    """``dims``: dims of the binding in scope; ``indexes``: those of the ``each`` around."""

    context: Context
    dims: Collection[str]
    indexes: Collection[str] = ()

    def check(self, node: object, depth: int = 0) -> None:
        """Report every name that means nothing and every form that cannot be evaluated."""
        span: Span = node.span  # type: ignore[attr-defined]
        if depth > DEEPEST:
            self.context.error("FRT0317", "this expression is nested too deeply", span)
            return
        match node:
            case ast.Name():
                self.name(node)
            case ast.Number(value=value):
                if not value.is_finite() or value.adjusted() > 300:
                    self.context.error("FRT0317", "this number is no float", span)
            case ast.String() | ast.ErrorNode():
                pass
            case ast.Field(base=base):
                self.field(base, depth)
            case ast.Index(base=base, items=items):
                self.field(base, depth)
                for item in items:
                    self.item(item, depth)
            case ast.Unary(op="-" | "not", operand=operand):
                self.check(operand, depth + 1)
            case ast.Binary(op=op, left=left, right=right) if op in OPERATORS:
                self.check(left, depth + 1)
                self.check(right, depth + 1)
            case ast.Compare(first=first, links=links) if all(op in COMPARISONS for op, _ in links):
                for side in (first, *(right for _, right in links)):
                    self.check(side, depth + 1)
            case ast.Match():
                self.match(node, depth)
            case _:
                self.bad("this cannot be read from a config", span)

    def bad(self, message: str, span: Span) -> None:
        self.context.error(
            WRONG,
            message,
            span,
            help="config expressions are config.field, model.part, dims, numbers, strings, "
            "+ - * / // %, ??, comparisons, and, or, not, and match",
        )

    def name(self, name: ast.Name) -> None:
        if name.id in self.dims:
            self.context.use("dim", name.id)
        elif name.id in self.indexes:
            self.context.use("index", name.id)
        elif name.id == "refuse":
            message = "`refuse` stands as the value of an arm of `match`"
            self.context.error(WRONG, message, name.span)
        elif name.id not in (*ROOTS, *TRUTHS):
            self.context.unknown("dim", name, [*ROOTS, *self.dims, *self.indexes])

    def field(self, base: ast.Expr, depth: int) -> None:
        """Only what hangs on ``config`` or ``model`` has fields and places."""
        root: object = base
        while isinstance(root, ast.Field | ast.Index):
            root = root.base
        if isinstance(root, ast.Name) and root.id in ROOTS:
            if isinstance(base, ast.Index | ast.Field):
                self.check(base, depth + 1)
        elif isinstance(root, ast.Name) and root.id not in (*self.dims, *self.indexes):
            self.context.unknown("source", root, ROOTS)
        elif not isinstance(root, ast.ErrorNode):
            self.bad("only `config` and `model` have fields", base.span)

    def item(self, item: object, depth: int) -> None:
        match item:
            case ast.EllipsisItem():
                self.bad("`...` has no place here", item.span)
            case ast.Slice(lo=lo, hi=hi):
                for end in (lo, hi):
                    if end is not None:
                        self.check(end, depth + 1)
            case _:
                self.check(item, depth + 1)

    def match(self, node: ast.Match, depth: int) -> None:
        self.check(node.subject, depth + 1)
        for arm in self.arms(node):
            if not (isinstance(arm.value, ast.Name) and arm.value.id == "refuse"):
                self.check(arm.value, depth + 1)

    def arms(self, node: ast.Match) -> list[ast.MatchArm]:
        """The arms, their patterns checked: values of the config, each once, else last."""
        seen: set[str] = set()
        for position, arm in enumerate(node.arms):
            match arm.pattern:
                case ast.Else():
                    text = "else"
                    if position != len(node.arms) - 1:
                        message = "an arm after `else` is never reached"
                        self.context.error("FRT0309", message, node.arms[-1].span)
                case ast.Name(id=name) as pattern:
                    text = name
                    if name not in TRUTHS:
                        self.context.error(
                            WRONG,
                            f"`{name}` is no value of a config",
                            pattern.span,
                            help=f'write "{name}", or one of true, false, none',
                        )
                case ast.String(value=value):
                    text = f'"{value}"'
                case ast.Number(value=value):
                    text = str(value)
            if text in seen:
                self.context.error("FRT0309", f"{text} has an arm already", arm.pattern.span)
            seen.add(text)
        return list(node.arms)

    def path(self, path: ast.HostPath) -> None:
        """The ``{…}`` of a host path."""
        for part in path.parts:
            if part.expr is not None:
                self.check(part.expr)

"""Rules of a structure: on its sizes, and on facts that are measured on a host."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal

from frtspec.diag.source import Span
from frtspec.dims import Constraint, Measured
from frtspec.ir import decl as ir
from frtspec.ir.expr import IsPresent
from frtspec.ir.measured import FACTS, MECHANISMS, Fact
from frtspec.ir.walk import conditions
from frtspec.sema.context import Context, listing
from frtspec.sema.exprs import Exprs
from frtspec.syntax import ast

BAD_FACT = "FRT0320"

_TURNED = {"<=": ">=", ">=": "<=", "==": "=="}


@dataclass
class Rules:
    """Reads ``require`` and ``qualify`` of one structure.

    structure  with everything but its rules
    forms      names of the impls of this structure
    """

    context: Context
    exprs: Exprs
    structure: ir.Structure
    forms: Collection[str]

    def read(self, node: ast.RequireDecl | ast.QualifyDecl) -> tuple[ir.Rule, ...]:
        kind = "require" if isinstance(node, ast.RequireDecl) else "qualify"
        form = self._form(node.form)
        when = None if node.when is None else self.exprs.cond(node.when)
        if node.when is not None and any(isinstance(t, IsPresent) for t in conditions(when)):
            message = "a rule depends on variants, not on what is given"
            self.context.error(BAD_FACT, message, node.when.span)
        return tuple(
            ir.Rule(kind, form, when, test, span)
            for expr in node.rules
            for test, span in self._tests(expr)
        )

    def _form(self, name: ast.Name | None) -> str | None:
        if name is None:
            return None
        if name.id not in self.forms and name.id not in MECHANISMS:
            self.context.unknown("form", name, [*self.forms, *MECHANISMS], everywhere=True)
        return name.id

    def _tests(self, expr: ast.Expr) -> Iterator[tuple[Constraint | Measured, Span]]:
        """The rules in one expression; ``a and b`` are two."""
        if isinstance(expr, ast.Binary) and expr.op == "and":
            yield from self._tests(expr.left)
            yield from self._tests(expr.right)
        elif self._asks(expr):
            test = self._measured(expr)
            if test is not None:
                yield test, expr.span
        else:
            for rule in self.exprs.sizes.rules((expr,)):
                yield rule, expr.span

    # ------------------------------------------------------------ measured facts

    def _asks(self, expr: ast.Expr) -> bool:
        """Whether a rule names something that is measured."""
        return isinstance(expr, ast.FactIs) or any(map(self._is_fact, _sides(expr)))

    def _is_fact(self, expr: object) -> bool:
        match expr:
            case ast.Call(func=ast.Name(id=name)):
                return name != "sum"
            case ast.Name(id=name):
                known = FACTS.get(name)
                return known is not None and name not in self.exprs.sizes.dims
            case _:
                return False

    def _measured(self, expr: ast.Expr) -> Measured | None:
        subject: ast.Expr
        bound: ast.Expr | None = None
        if isinstance(expr, ast.FactIs):
            subject, op = expr.fact, "is"
        else:
            sides = _comparison(expr)
            if sides is None:
                return self._bad(
                    "a measured fact is compared with one number by <=, >= or ==",
                    expr.span,
                    "write `steps(cond) <= 64`; of two bounds make two rules",
                )
            left, op, right = sides
            if not self._is_fact(left):
                left, op, right = right, _TURNED[op], left
            subject, bound = left, right
        named = self._fact(subject)
        if named is None:
            return None
        name, of, fact = named
        if fact.unit == "word":
            return self._word(expr, name, of, fact)
        if op == "is" or not isinstance(bound, ast.Number):
            return self._bad(
                f"`{name}` is a {fact.unit}: it is compared with a number",
                expr.span,
                f"write `{name}{f'({of})' if of else ''} <= 1`",
            )
        return Measured(name, of, op, (_plain(bound.value),))

    def _word(self, expr: ast.Expr, name: str, of: str | None, fact: Fact) -> Measured | None:
        if not isinstance(expr, ast.FactIs):
            known = listing(fact.words)
            return self._bad(
                f"`{name}` is a word", expr.span, f"write `{name}({of}) is …`: {known}"
            )
        for value in expr.values:
            if value.id not in fact.words:
                self.context.unknown(f"value of {name}", value, fact.words)
                return None
        return Measured(name, of, "is", tuple(value.id for value in expr.values))

    def _fact(self, subject: ast.Expr) -> tuple[str, str | None, Fact] | None:
        """The fact that is named, and of which value."""
        func = subject.func if isinstance(subject, ast.Call) else subject
        assert isinstance(func, ast.Name)
        fact = FACTS.get(func.id)
        if fact is None:
            self.context.unknown("measured fact", func, FACTS)
            return None
        args = subject.args if isinstance(subject, ast.Call) else ()
        if fact.of == "seat":
            if args:
                self._bad(f"`{func.id}` is about the whole seat", subject.span, f"`{func.id}`")
                return None
            return func.id, None, fact
        value = args[0].value if len(args) == 1 and args[0].name is None else None
        if not isinstance(value, ast.Name):
            known = listing(self._subjects(fact))
            self._bad(f"`{func.id}` is about one {_WHAT[fact.of]}", subject.span, f"of {known}")
            return None
        if value.id not in self._subjects(fact):
            if value.id in self.context.dropped:
                return None
            known = listing(self._subjects(fact)) or "none here"
            self._bad(
                f"`{value.id}` is no {_WHAT[fact.of]}, and `{func.id}` is about one",
                value.span,
                f"there is {known}" + (_HOW if fact.of == "content" else ""),
            )
            return None
        return func.id, value.id, fact

    def _subjects(self, fact: Fact) -> list[str]:
        """What a fact can be about in this structure."""
        structure = self.structure
        points = [p.name for p in structure.points]
        match fact.of:
            case "content":
                return [p.name for p in structure.points if p.kind == "content"]
            case "slot":
                return [slot.name for slot in structure.slots if slot.inner is None]
            case "state":
                return [port.updates for port in structure.outputs if port.updates is not None]
            case _:
                ports = [p.name for p in (*structure.inputs, *structure.outputs)]
                return list(dict.fromkeys([*ports, *points]))

    def _bad(self, message: str, span: Span, help: str) -> Measured | None:
        """Report; there is no rule then."""
        self.context.error(BAD_FACT, message, span, help=help)
        return None


_WHAT = {
    "content": "point whose content is kept",
    "value": "input, output or point",
    "slot": "slot",
    "state": "input that an output updates",
}
_HOW = "; a point keeps content when it is declared so: `point cond content`"


def _comparison(expr: ast.Expr) -> tuple[ast.Expr, str, ast.Expr] | None:
    """(left, op, right) of one comparison that a fact can take."""
    match expr:
        case ast.Compare(first=first, links=((op, right),)) if op in _TURNED:
            return first, op, right
        case ast.Binary(op="==", left=left, right=right):
            return left, "==", right
        case _:
            return None


def _sides(expr: ast.Expr) -> tuple[object, ...]:
    match expr:
        case ast.Compare(first=first, links=links):
            return (first, *(right for _, right in links))
        case ast.Binary(left=left, right=right):
            return (left, right)
        case ast.OneOf(subject=subject):
            return (subject,)
        case _:
            return ()


def _plain(value: Decimal) -> Decimal | int:
    return int(value) if value == value.to_integral_value() and value.adjusted() < 18 else value

"""Config expressions of a binding as Python source.

They are evaluated on a live host's config, so what is emitted reads as a person
would write it: ``config.hidden_size``, ``rt.first(rt.get(config, "head_dim"), …)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from frtspec.codegen.pysrc import (
    COMPARE,
    NOT,
    OR,
    TERNARY,
    UNARY,
    Py,
    binary,
    call,
    fstring,
    number,
    pyrepr,
)
from frtspec.diag.source import Span
from frtspec.syntax import ast

_OPPOSITES = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

_TRUTH = {"true": "True", "false": "False", "none": "None"}


@dataclass(frozen=True)
class Scope:
    """What names mean: ``names`` maps a name of the spec to its Python expression."""

    names: Mapping[str, Py]

    def with_name(self, name: str, value: Py) -> Scope:
        return Scope({**self.names, name: value})


def value(expr: ast.Expr, scope: Scope) -> Py:
    """The Python of a config expression; ``/`` must divide without a rest."""
    match expr:
        case ast.Name(id=name):
            return scope.names.get(name) or Py(_TRUTH.get(name, name))
        case ast.Number(value=amount):
            return number(amount)
        case ast.String(value=text):
            return Py(pyrepr(text))
        case ast.Field(base=base, name=name):
            return value(base, scope).attr(name.id)
        case ast.Index(base=base, items=items):
            return value(base, scope).item(*(_index_item(item, scope) for item in items))
        case ast.Call(func=func, args=args):
            return call(func.id, *(_argument(arg, scope) for arg in args))
        case ast.Unary(op="not", operand=ast.Compare(first=first, links=((op, right),))):
            return _compared(_OPPOSITES[op], first, right, scope)
        case ast.Unary(op="not", operand=operand):
            return Py(f"not {value(operand, scope).at(NOT)}", NOT)
        case ast.Unary(operand=operand):
            return Py(f"-{value(operand, scope).at(UNARY)}", UNARY)
        case ast.Binary():
            return _binary(expr, scope)
        case ast.Compare(first=first, links=((op, right),)):
            return _compared(op, first, right, scope)
        case ast.Compare(first=first, links=links):
            rest = "".join(f" {op} {value(right, scope).at(COMPARE + 1)}" for op, right in links)
            return Py(value(first, scope).at(COMPARE + 1) + rest, COMPARE)
        case ast.Match():
            return choice(expr, scope, lambda arm: value(arm, scope))
        case ast.Tuple_(items=items):
            inner = ", ".join(value(item, scope).text for item in items)
            return Py(f"({inner},)" if len(items) == 1 else f"({inner})")
        case _:
            raise TypeError(f"no config expression: {type(expr).__name__}")


def names_in(node: object) -> frozenset[str]:
    """Names that some config expressions read, field names left out."""
    found: set[str] = set()
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, ast.Name):
            found.add(item.id)
        elif isinstance(item, ast.Field):
            stack.append(item.base)
        elif isinstance(item, tuple):
            stack.extend(item)
        elif hasattr(item, "__dataclass_fields__") and not isinstance(item, Span):
            stack.extend(getattr(item, name) for name in item.__dataclass_fields__)
    return frozenset(found)


def _binary(expr: ast.Binary, scope: Scope) -> Py:
    match expr.op:
        case "/":
            return call("rt.exact_div", value(expr.left, scope), value(expr.right, scope))
        case "??":
            fallback = value(expr.right, scope).at(TERNARY)
            return call("rt.first", maybe(expr.left, scope), f"lambda: {fallback}")
        case op:
            return binary(op, value(expr.left, scope), value(expr.right, scope))


def _compared(op: str, left: ast.Expr, right: ast.Expr, scope: Scope) -> Py:
    """One comparison; with true, false and none the identity that Python asks for."""
    if isinstance(right, ast.Name) and right.id in _TRUTH and right.id not in scope.names:
        op = {"==": "is", "!=": "is not"}.get(op, op)
    return binary(op, value(left, scope), value(right, scope))


def maybe(expr: ast.Expr, scope: Scope) -> Py:
    """Like ``value``, but a config field that is not there is None."""
    if isinstance(expr, ast.Field):
        return call("rt.get", value(expr.base, scope), pyrepr(expr.name.id))
    return value(expr, scope)


def _index_item(item: ast.Expr | ast.Slice | ast.EllipsisItem, scope: Scope) -> Py:
    match item:
        case ast.Slice(lo=lo, hi=hi):
            ends = ["" if end is None else value(end, scope).at(OR) for end in (lo, hi)]
            return Py(":".join(ends))
        case ast.EllipsisItem():
            return Py("...")
        case _:
            return value(item, scope)


def _argument(arg: ast.Arg, scope: Scope) -> Py:
    if isinstance(arg.value, ast.Granularity | ast.OverDim):
        raise TypeError("no config expression: a granularity or an axis")
    inner = value(arg.value, scope)
    return inner if arg.name is None else Py(f"{arg.name.id}={inner}")


def choice(expr: ast.Match, scope: Scope, arm: Callable[[ast.Expr], Py]) -> Py:
    """``rt.choose(subject, {pattern: arm}, what="…")``; without ``else``, or with
    ``else => refuse``, a value that no arm serves is refused by name."""
    rows, otherwise = [], None
    for case in expr.arms:
        refuses = isinstance(case.value, ast.Name) and case.value.id == "refuse"
        if isinstance(case.pattern, ast.Else):
            otherwise = None if refuses else arm(case.value)
        elif not refuses:
            rows.append(f"{_pattern(case.pattern)}: {arm(case.value)}")
    named: dict[str, Py | str] = {"what": pyrepr(spelled(expr.subject))}
    if otherwise is not None:
        named["otherwise"] = otherwise
    return call("rt.choose", value(expr.subject, scope), "{" + ", ".join(rows) + "}", **named)


def _pattern(pattern: ast.Name | ast.String | ast.Number) -> str:
    match pattern:
        case ast.Name(id=name):
            return _TRUTH.get(name, pyrepr(name))
        case ast.String(value=text):
            return pyrepr(text)
        case ast.Number(value=amount):
            return number(amount).text


def spelled(expr: ast.Expr) -> str:
    """A config expression as the spec wrote it, for messages."""
    match expr:
        case ast.Field(base=base, name=name):
            return f"{spelled(base)}.{name.id}"
        case ast.Index(base=base, items=items):
            return f"{spelled(base)}[{', '.join(_index_item(i, Scope({})).text for i in items)}]"
        case ast.Binary(op=op, left=left, right=right):
            return f"{spelled(left)} {op} {spelled(right)}"
        case _:
            return value(expr, Scope({})).text


def path(host_path: ast.HostPath, scope: Scope, base: str | None = None, more: str = "") -> Py:
    """A host path as a string: ``f"model.layers.{i}.mlp"``; below ``base`` when given.

    ``more`` is literal text behind it (``.weight``).
    """
    parts: list[tuple[bool, str]] = [] if base is None else [(True, base), (False, ".")]
    for part in host_path.parts:
        if part.expr is not None:
            parts.append((True, value(part.expr, scope).text))
        elif part.text is not None:
            parts.append((False, part.text))
    if more:
        parts.append((False, more))
    return fstring(parts)

"""Reading the typed IR: which names, axes and dims a piece of it depends on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from frtspec.dims import Poly
from frtspec.ir.expr import (
    AllOf,
    AnyOf,
    AxisIs,
    Cond,
    DimValue,
    Each,
    EachOf,
    Expr,
    Invalid,
    IsPresent,
    Let,
    Not,
    Op,
    Ref,
    Scan,
    Select,
    SliceArg,
    Stmt,
)


def parts(expr: Expr) -> Iterator[Expr]:
    """An expression and everything in it, outermost first."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        match node:
            case Op(args=args):
                stack.extend(reversed(args))
            case Select(arms=arms):
                stack.extend(value for _, value in reversed(arms))
            case EachOf(value=value):
                stack.append(value)


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Statements with those inside ``each`` and ``scan``, in order."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, Each | Scan):
            yield from statements(stmt.body)


def exprs_of(stmt: Stmt) -> Iterator[Expr]:
    """The expressions of one statement itself."""
    match stmt:
        case Let(value=value, otherwise=otherwise):
            yield value
            if otherwise is not None:
                yield otherwise
        case Scan(carries=carries):
            yield from (start for _, start in carries)


def exprs(body: Iterable[Stmt]) -> Iterator[Expr]:
    """Every expression of some statements, nested ones and their parts too."""
    for stmt in statements(body):
        for expr in exprs_of(stmt):
            yield from parts(expr)


def ops(body: Iterable[Stmt]) -> Iterator[Op]:
    return (expr for expr in exprs(body) if isinstance(expr, Op))


def refs(body: Iterable[Stmt]) -> Iterator[Ref]:
    return (expr for expr in exprs(body) if isinstance(expr, Ref))


def conditions(cond: Cond | None) -> Iterator[AxisIs | IsPresent]:
    """The tests in a condition."""
    match cond:
        case AxisIs() | IsPresent():
            yield cond
        case Not(cond=inner):
            yield from conditions(inner)
        case AllOf(conds=conds) | AnyOf(conds=conds):
            for each in conds:
                yield from conditions(each)


def tests(body: Iterable[Stmt]) -> Iterator[AxisIs | IsPresent]:
    """The tests in every ``when`` of some statements."""
    for stmt in statements(body):
        if isinstance(stmt, Let):
            yield from conditions(stmt.when)


def reads(stmt: Stmt) -> set[str]:
    """Names of values, ports, slots and params a statement reads from outside itself."""
    own: set[str] = set()
    out: set[str] = set()
    match stmt:
        case Let():
            out = _named(stmt)
            if stmt.when is not None and stmt.rebinds and stmt.otherwise is None:
                out.add(stmt.name)
        case Each(body=body):
            for inner in body:
                out |= reads(inner) - own
                own |= defines(inner)
        case Scan(body=body, carries=carries, over=over):
            own = {name for name, _ in carries}
            out = _named(stmt)
            out |= {name for name, _ in over}
            for inner in body:
                out |= reads(inner) - own
                own |= defines(inner)
    return out


def _named(stmt: Stmt) -> set[str]:
    """Names in the expressions of one statement itself."""
    found: set[str] = set()
    for expr in exprs_of(stmt):
        for part in parts(expr):
            if isinstance(part, Ref):
                found.add(part.name)
            elif isinstance(part, Invalid):
                found.update(part.reads)
    return found


def defines(stmt: Stmt) -> set[str]:
    """Names of values a statement gives a value to, for the statements after it."""
    match stmt:
        case Let(kind="let" | "point", name=name):
            return {name}
        case Scan(body=body, carries=carries):
            emitted = {s.name for s in body if isinstance(s, Let) and s.kind == "emit"}
            return {name for name, _ in carries} | emitted
        case _:
            return set()


def variants(body: Iterable[Stmt]) -> set[str]:
    """Variant axes that some statements depend on."""
    body = tuple(body)
    found = {expr.axis for expr in exprs(body) if isinstance(expr, Select)}
    return found | {test.axis for test in tests(body) if isinstance(test, AxisIs)}


def dims_as_numbers(body: Iterable[Stmt]) -> set[str]:
    """Symbols whose value the statements need when they run: dims used as numbers, sizes
    of parts and slices, the length of a scan."""
    body = tuple(body)
    found: set[str] = set()
    for expr in exprs(body):
        if isinstance(expr, DimValue):
            found.update(expr.poly.symbols())
        elif isinstance(expr, Op):
            for _, value in expr.attrs:
                for item in value if isinstance(value, tuple) else (value,):
                    if isinstance(item, Poly):
                        found.update(item.symbols())
                    elif isinstance(item, SliceArg):
                        for end in (item.lo, item.hi):
                            found.update(() if end is None else end.symbols())
    for stmt in statements(body):
        if isinstance(stmt, Scan):
            found.update(stmt.dim.symbols())
    return found

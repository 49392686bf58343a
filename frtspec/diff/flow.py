"""The dataflow of a reference without the names it was written with.

Every value gets a number; two values of two references get the same number exactly where
they are the same ops over the same inputs and slots. So a point can be found again wherever
it stands, and a rewrite that only renames is seen to be one. What one side alone can be asked
for is left out: values of an axis that the other side lacks, optional inputs that it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from frtspec.ir.canon import canonical, dump, number_text
from frtspec.ir.decl import Structure
from frtspec.ir.expr import (
    Absent,
    AllOf,
    AnyOf,
    AxisIs,
    Cond,
    Const,
    DimValue,
    Each,
    EachOf,
    Expr,
    IsPresent,
    Let,
    Not,
    Op,
    Ref,
    Scan,
    Select,
    Stmt,
)

Numbers = dict[Any, int]
"""What a value is made of -> its number; one table for both sides."""


@dataclass(frozen=True)
class Shared:
    """What both sides can be asked for: axis -> the values they share, and the optional
    inputs and slots that only one side has."""

    axes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()

    def cond(self, cond: Cond | None) -> Any:
        """True, False, or what it hangs on."""
        match cond:
            case None:
                return True
            case AxisIs(axis=axis, values=values):
                if axis not in self.axes:
                    return ("is", axis, tuple(sorted(values)))
                kept = self.axes[axis] & set(values)
                if not kept or kept == self.axes[axis]:
                    return bool(kept)
                return ("is", axis, tuple(sorted(kept)))
            case IsPresent(name=name):
                return False if name in self.absent else ("present", name)
            case Not(cond=inner):
                known = self.cond(inner)
                return not known if isinstance(known, bool) else ("not", known)
            case AllOf(conds=conds):
                return self._joined("all", [self.cond(c) for c in conds], neutral=True)
            case AnyOf(conds=conds):
                return self._joined("any", [self.cond(c) for c in conds], neutral=False)
        raise TypeError(type(cond).__name__)

    @staticmethod
    def _joined(word: str, parts: list[Any], *, neutral: bool) -> Any:
        if (not neutral) in parts:
            return not neutral
        rest = sorted({repr(p): p for p in parts if p is not neutral}.items())
        if not rest:
            return neutral
        return rest[0][1] if len(rest) == 1 else (word, *(p for _, p in rest))


def shared(old: Structure, new: Structure) -> Shared:
    """An axis that only one side has counts at its default, where it has one."""
    mine, theirs = {v.name: v for v in old.variants}, {v.name: v for v in new.variants}
    axes = {}
    for name in {*mine, *theirs}:
        if name in mine and name in theirs:
            axes[name] = frozenset(mine[name].values) & frozenset(theirs[name].values)
        else:
            default = (mine.get(name) or theirs[name]).default
            if default is not None:
                axes[name] = frozenset((default,))
    items: list[tuple[Any, ...]] = [(*s.inputs, *s.slots) for s in (old, new)]
    options = [{p.name for p in side if p.optional} for side in items]
    names = [{p.name for p in side} for side in items]
    absent = (options[0] - names[1]) | (options[1] - names[0])
    return Shared(axes, frozenset(absent))


@dataclass
class Flow:
    """The numbers of a reference.

    outputs  (name, index) -> number
    points   name -> number
    local    name of a point -> its number counted from the points before it
    every    all numbers of values
    """

    outputs: dict[tuple[str, str | None], int]
    points: dict[str, int]
    local: dict[str, int]
    every: set[int]


def flow(
    structure: Structure, numbers: Numbers, both: Shared, renamed: Mapping[str, str] | None = None
) -> Flow:
    """``renamed``: point -> the name that the other side has for it."""
    whole = _Reader(numbers, both)
    whole.body(structure.reference)
    cut = _Reader(numbers, both, renamed or {}, cut=True)
    cut.body(structure.reference)
    return Flow(whole.outputs, whole.points, cut.points, whole.every)


@dataclass
class _Reader:
    numbers: Numbers
    both: Shared
    renamed: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    env: dict[str, int] = field(default_factory=dict)
    depth: dict[str, int] = field(default_factory=dict)
    outputs: dict[tuple[str, str | None], int] = field(default_factory=dict)
    points: dict[str, int] = field(default_factory=dict)
    every: set[int] = field(default_factory=set)

    def number(self, *of: Any) -> int:
        found = self.numbers.setdefault(of, len(self.numbers))
        self.every.add(found)
        return found

    # ------------------------------------------------------------ expressions

    def expr(self, expr: Expr) -> int:
        match expr:
            case Const(value=value):
                return self.number("const", number_text(value))
            case DimValue(poly=poly):
                return self.number("dim", str(poly))
            case Ref(name=name, kind=kind, index=index):
                if kind in ("value", "carry", "point") or name in self.env:
                    known = self.env.get(name)
                    if known is not None:
                        return known if index is None else self.number("at", known, self.at(index))
                return self.number("ref", kind, name, self.at(index))
            case Op(op=op, args=args, attrs=attrs):
                plain = dump([[name, canonical(value)] for name, value in attrs if name != "over"])
                return self.number("op", op, tuple(map(self.expr, args)), plain)
            case Select():
                return self.select(expr)
            case Absent(form=form):
                return self.number("absent", form)
            case EachOf(index=index, value=value):
                return self.number("each", self.nested(index).expr(value))
        raise TypeError(type(expr).__name__)

    def select(self, expr: Select) -> int:
        wanted = self.both.axes.get(expr.axis)
        arms = {
            word: self.expr(value)
            for words, value in expr.arms
            for word in words
            if wanted is None or word in wanted
        }
        if len(set(arms.values())) == 1:
            return next(iter(arms.values()))
        return self.number("select", expr.axis, tuple(sorted(arms.items())))

    def at(self, index: str | None) -> int | str | None:
        return self.depth.get(index, index) if index is not None else None

    def nested(self, index: str) -> _Reader:
        return replace(self, env=dict(self.env), depth={**self.depth, index: len(self.depth)})

    # ------------------------------------------------------------ statements

    def body(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            match stmt:
                case Let():
                    self.let(stmt)
                case Each(index=index, body=inner):
                    self.nested(index).body(inner)
                case Scan():
                    self.scan(stmt)

    def let(self, stmt: Let) -> int:
        value = self.expr(stmt.value)
        before = self.outputs.get((stmt.name, stmt.index)) if stmt.kind == "yield" else None
        if stmt.otherwise is not None:
            before = self.expr(stmt.otherwise)
        elif stmt.rebinds or stmt.kind == "point":
            before = self.env.get(stmt.name)
        known = self.both.cond(stmt.when)
        if known is False:
            value = before if before is not None else self.number("nothing")
        elif known is not True:
            value = self.number("when", known, value, before)
        if stmt.kind == "yield":
            self.outputs[stmt.name, stmt.index] = value
        elif stmt.kind == "point":
            name = self.renamed.get(stmt.name, stmt.name)
            self.points[stmt.name] = value
            self.env[stmt.name] = self.number("point", name) if self.cut else value
        elif stmt.kind == "let":
            self.env[stmt.name] = value
        return value

    def scan(self, stmt: Scan) -> None:
        starts = tuple(self.expr(start) for _, start in stmt.carries)
        over = tuple((self.env.get(name, name), axis) for name, axis in stmt.over)
        inner = self.nested(stmt.step)
        level = len(self.depth)
        for position, (name, _) in enumerate(stmt.carries):
            inner.env[name] = self.number("carry", level, position)
        results: dict[tuple[str, str], int] = {}
        for step in stmt.body:
            if isinstance(step, Let) and step.kind in ("next", "emit"):
                results[step.kind, step.name] = inner.let(step)
            else:
                inner.body((step,))
        nexts = tuple(results.get(("next", name)) for name, _ in stmt.carries)
        emits = {name: value for (kind, name), value in results.items() if kind == "emit"}
        made = self.number("scan", str(stmt.dim), over, starts, nexts)
        for position, (name, _) in enumerate(stmt.carries):
            self.env[name] = self.number("carried", made, position)
        for name, value in emits.items():
            self.env[name] = self.number("emitted", made, value)

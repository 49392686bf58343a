"""Statements of a resolved dataflow as lines of a Python function body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from frtspec.codegen import condsrc, dimsrc
from frtspec.codegen.exprsrc import Expressions, chosen, first_select
from frtspec.codegen.pysrc import Py, indented, number, pyrepr
from frtspec.ir.expr import Cond, Each, Expr, Let, Ref, Scan, Stmt
from frtspec.ir.walk import parts


@dataclass(frozen=True)
class Raw:
    """Finished lines among statements, for what the dataflow has no word for."""

    lines: tuple[str, ...]


@dataclass
class Body:
    """What the lines of one function are built from.

    structure   its name, for messages
    source      turns expressions into Python
    variants    value names of each axis
    optional    values that may be None, with what they exist for (``bias is add``) or None
    counted     index name -> Python expression of its range
    record      whether points are shown to ``record``
    held        where a condition finds what is no local: slots that an impl keeps
    """

    structure: str
    source: Expressions
    variants: Mapping[str, tuple[str, ...]]
    optional: Mapping[str, str | None] = field(default_factory=dict)
    counted: Mapping[str, str] = field(default_factory=dict)
    record: bool = True
    variant_prefix: str = ""
    held: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> dict[str, str]:
        return dict(self.source.names)

    def name(self, name: str) -> str:
        """The Python name of a value of the spec."""
        return self.source.names.get(name, name)

    # ------------------------------------------------------------ blocks

    def lines(
        self, stmts: Sequence[Stmt | Raw], present: frozenset[str] = frozenset()
    ) -> list[str]:
        """A block. ``present``: optional values known not to be None here.

        Neighbours under one condition share an ``if``, those that choose by one variant
        axis a ``match``.
        """
        out: list[str] = []
        for key, group in groupby(stmts, key=_shared):
            block = list(group)
            lets = [stmt for stmt in block if isinstance(stmt, Let)]
            if key is None:
                for stmt in block:
                    out += self._statement(stmt, present)
            elif isinstance(key, str):
                out += self._match(key, lets, present)
            else:
                out.append(f"if {self._condition(key)}:")
                inner = [replace(let, when=None) for let in lets]
                out += indented(self.lines(inner, present | condsrc.proves(key)))
        return out

    def _statement(self, stmt: Stmt | Raw, present: frozenset[str]) -> list[str]:
        match stmt:
            case Raw(lines=lines):
                return list(lines)
            case Let(when=None):
                return self._define(stmt, stmt.value, present) + self._recorded(stmt)
            case Let(when=cond, otherwise=otherwise) if cond is not None and otherwise is not None:
                given = present | condsrc.proves(cond)
                return [
                    f"if {self._condition(cond)}:",
                    *indented(self._define(stmt, stmt.value, given)),
                    "else:",
                    *indented(self._define(stmt, otherwise, present)),
                    *self._recorded(stmt),
                ]
            case Each():
                return self._each(stmt, present)
            case Scan():
                return self._scan(stmt, present)
        raise AssertionError(f"no statement: {stmt}")

    def _condition(self, cond: Cond) -> Py:
        names = {axis: f"{self.variant_prefix}{self.name(axis)}" for axis in self.variants}
        return condsrc.condition(cond, {**self.names, **names, **self.held})

    # ------------------------------------------------------------ definitions

    def _define(self, let: Let, value: Expr, present: frozenset[str]) -> list[str]:
        select = first_select(value)
        if select is not None:
            plain = replace(let, kind="let" if let.kind == "point" else let.kind)
            return self._match(select.axis, [replace(plain, value=value)], present)
        return [*self._needed(value, present), self.assignment(let, self.source.emit(value))]

    def _match(self, axis: str, lets: Sequence[Let], present: frozenset[str]) -> list[str]:
        """Some definitions for each value of a variant axis; equal arms are one."""
        by_body: dict[tuple[str, ...], list[str]] = {}
        for value in self.variants[axis]:
            chosen_lets = [
                replace(let, value=chosen(let.value, axis, value), when=None, otherwise=None)
                for let in lets
            ]
            by_body.setdefault(tuple(self.lines(chosen_lets, present)), []).append(value)
        lines = [f"match {self.variant_prefix}{self.name(axis)}:"]
        for body, values in by_body.items():
            lines.append(f"    case {' | '.join(pyrepr(value) for value in values)}:")
            lines += indented(body, 2)
        return lines

    def assignment(self, let: Let, value: Py) -> str:
        """One definition: a name bound, or a value added to a list."""
        if let.kind == "emit":
            return f"{self.steps(let.name)}.append({value})"
        if let.index is not None:
            return f"{self.name(let.name)}.append({value})"
        return f"{self.name(let.name)} = {value}"

    def _recorded(self, let: Let) -> list[str]:
        if let.kind != "point" or not self.record:
            return []
        value = self.source.ref(Ref(let.name, "value", None, let.span))
        shown = value.item("-1") if let.index is not None else value
        return [f"record({pyrepr(let.name)}, {shown})"]

    def _needed(self, value: Expr, present: frozenset[str]) -> list[str]:
        """Checks that an optional value is there where the dataflow reads it for granted."""
        lines: list[str] = []
        used = {part.name: None for part in parts(value) if isinstance(part, Ref)}
        for name in used:
            if name in self.optional and name not in present:
                because = self.optional[name]
                what = f"{name} is needed" + (f" where {because}" if because else "")
                lines.append(f"if {self.name(name)} is None:")
                lines.append(f"    raise ValueError({pyrepr(what)})")
        return lines

    # ------------------------------------------------------------ loops

    def _each(self, each: Each, present: frozenset[str]) -> list[str]:
        lists = [s.name for s in each.body if isinstance(s, Let) and s.index is not None]
        head = [f"{self.name(name)}: list[Tensor] = []" for name in dict.fromkeys(lists)]
        index = self.name(each.index)
        return [
            *head,
            f"for {index} in range({self.counted[each.index]}):",
            *indented(self.lines(each.body, present)),
        ]

    def steps(self, name: str) -> str:
        """The list that collects a scan's emitted values."""
        return f"{self.name(name)}_steps"

    def _scan(self, scan: Scan, present: frozenset[str]) -> list[str]:
        emitted = [s.name for s in scan.body if isinstance(s, Let) and s.kind == "emit"]
        step = self.name(scan.step)
        out: list[str] = []
        for name, start in scan.carries:
            out += self._needed(start, present)
            out.append(f"{self.name(name)} = {self.source.emit(start)}")
        out += [f"{self.steps(name)}: list[Tensor] = []" for name in emitted]
        out.append(f"for {step} in range({dimsrc.whole(scan.dim, self.source.sizes)}):")
        for name, axis in scan.over:
            self.source.over[name] = f"{self.name(name)}_{step}"
            out.append(f"    {self.source.over[name]} = {self.name(name)}[{_at(axis, step)}]")
        out += indented(self.lines(scan.body, present))
        stacked = number(scan.over[0][1] if scan.over else 0)
        for name in emitted:
            out.append(f"{self.name(name)} = torch.stack({self.steps(name)}, dim={stacked})")
        return out


def _at(axis: int, step: str) -> str:
    """``:, t`` picks along axis 1, ``..., t, :`` along axis -2."""
    if axis >= 0:
        return ", ".join([":"] * axis + [step])
    return ", ".join(["...", step] + [":"] * (-axis - 1))


def _shared(stmt: Stmt | Raw) -> Cond | str | None:
    """What a statement can share with its neighbours: the condition of an ``if``, or the
    variant axis of a ``match``."""
    if not isinstance(stmt, Let) or stmt.otherwise is not None:
        return None
    if stmt.when is not None:
        return stmt.when
    select = first_select(stmt.value)
    return None if select is None or stmt.kind == "point" else select.axis

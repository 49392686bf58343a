"""Statements of a resolved dataflow as lines of a Python function body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from frtspec.codegen import condsrc, dimsrc
from frtspec.codegen.exprsrc import Expressions, chosen, first_select
from frtspec.codegen.pysrc import Py, indented, number, pyrepr
from frtspec.ir.expr import Cond, Each, Expr, Let, Ref, Scan, Stmt
from frtspec.ir.walk import parts, reads


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
    late        carried values that change only when their turn of the scan is over
    """

    structure: str
    source: Expressions
    variants: Mapping[str, tuple[str, ...]]
    optional: Mapping[str, str | None] = field(default_factory=dict)
    counted: Mapping[str, str] = field(default_factory=dict)
    record: bool = True
    variant_prefix: str = ""
    late: frozenset[str] = frozenset()

    @property
    def names(self) -> dict[str, str]:
        return dict(self.source.names)

    def name(self, name: str) -> str:
        """The Python name of a value of the spec."""
        return self.source.names.get(name, name)

    # ------------------------------------------------------------ blocks

    def lines(self, stmts: Sequence[Stmt | Raw], present: frozenset[str] = frozenset()) -> list[str]:
        """A block. ``present``: optional values known not to be None here."""
        out: list[str] = []
        for cond, group in groupby(stmts, key=_shared_condition):
            block = list(group)
            if cond is None:
                for stmt in block:
                    out += self._statement(stmt, present)
            else:
                inner = [replace(s, when=None) for s in block if isinstance(s, Let)]
                out.append(f"if {self._condition(cond)}:")
                out += indented(self.lines(inner, present | condsrc.proves(cond)))
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
        return condsrc.condition(cond, {**self.names, **names})

    # ------------------------------------------------------------ definitions

    def _define(self, let: Let, value: Expr, present: frozenset[str]) -> list[str]:
        return self._needed(value, present) + self._assigned(let, value)

    def _assigned(self, let: Let, value: Expr) -> list[str]:
        select = first_select(value)
        if select is None:
            return [self.assignment(let, self.source.emit(value))]
        axis = select.axis
        subject = f"{self.variant_prefix}{self.name(axis)}"
        lines = [f"match {subject}:"]
        by_body: dict[tuple[str, ...], list[str]] = {}
        for name in self.variants[axis]:
            body = tuple(self._assigned(let, chosen(value, axis, name)))
            by_body.setdefault(body, []).append(name)
        for body, names in by_body.items():
            lines.append(f"    case {' | '.join(pyrepr(name) for name in names)}:")
            lines += indented(body, 2)
        return lines

    def assignment(self, let: Let, value: Py) -> str:
        """One definition: a name bound, or a value added to a list."""
        if let.kind == "emit":
            return f"{self.steps(let.name)}.append({value})"
        if let.index is not None:
            return f"{self.name(let.name)}.append({value})"
        if let.name in self.late:
            return f"next_{self.name(let.name)} = {value}"
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
                what = f"{because}, so {name} must be given" if because else f"{name} must be given"
                lines.append(f"if {self.name(name)} is None:")
                lines.append(f"    raise ValueError({pyrepr(f'{self.structure}: {what}')})")
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
        out.append(f"for {step} in range({dimsrc.poly(scan.dim, self.source.sizes, '//')}):")
        for name, axis in scan.over:
            self.source.over[name] = f"{self.name(name)}_{step}"
            out.append(f"    {self.source.over[name]} = {self.name(name)}[{_at(axis, step)}]")
        out += indented(self._step(scan, present))
        axis = number(scan.over[0][1] if scan.over else 0)
        for name in emitted:
            out.append(f"{self.name(name)} = torch.stack({self.steps(name)}, dim={axis})")
        return out

    def _step(self, scan: Scan, present: frozenset[str]) -> list[str]:
        """One turn. A carried value changes at the end of the turn where it is still read."""
        late = {
            stmt.name
            for k, stmt in enumerate(scan.body)
            if isinstance(stmt, Let) and stmt.kind == "next"
            if any(stmt.name in reads(other) for other in scan.body[k + 1 :])
        }
        self.late = frozenset(late)
        lines = self.lines(scan.body, present)
        self.late = frozenset()
        carried = [name for name, _ in scan.carries if name in late]
        return lines + [f"{self.name(name)} = next_{self.name(name)}" for name in carried]


def _at(axis: int, step: str) -> str:
    """``:, t`` picks along axis 1, ``..., t, :`` along axis -2."""
    if axis >= 0:
        return ", ".join([":"] * axis + [step])
    return ", ".join(["...", step] + [":"] * (-axis - 1))


def _shared_condition(stmt: Stmt | Raw) -> Cond | None:
    """The condition a statement can share with its neighbours in one ``if``."""
    if isinstance(stmt, Let) and stmt.when is not None and stmt.otherwise is None:
        return stmt.when
    return None

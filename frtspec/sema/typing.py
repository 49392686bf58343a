"""Types of every value, for one combination of variants at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from frtspec.diag.source import Span
from frtspec.dims import DimError, Poly, Shape, shape_text
from frtspec.ir import expr as ir
from frtspec.ir.decl import Port, Slot, Structure
from frtspec.ir.opcall import OpCall
from frtspec.ir.ops import OPS
from frtspec.ir.types import QUANTISED, SCALAR, UNKNOWN, OpError, Tensor, Unknown, ValueType
from frtspec.sema.combos import Combo, combos
from frtspec.sema.innertypes import Unified, unify
from frtspec.sema.repeated import stacked, summed

__all__ = ["Combo", "Problem", "Typing", "combos", "infer"]

CODES = {"shape": "FRT0303", "dtype": "FRT0308", "argument": "FRT0310"}
ABSENT, OUTPUT_ONCE, OUTPUT_TYPE, REPEATED, SCAN = (
    "FRT0304",
    "FRT0306",
    "FRT0307",
    "FRT0312",
    "FRT0313",
)


@dataclass(frozen=True)
class Problem:
    """What is wrong in one combination."""

    code: str
    message: str
    span: Span
    help: str | None = None


@dataclass(frozen=True)
class Typing:
    """The types in one combination.

    ``values``: inputs, slots and defined values that exist here, by name (the last
    definition of each). ``defs``: the type each ``Let`` that runs gives its name, by
    the id of the statement. ``trace``: every op that runs, with its call (operand types,
    what the rule found out about axes), result type and how often it runs, in order.
    ``calls``: calls to inner structures, with their dims found and how often each runs.
    """

    combo: Combo
    values: Mapping[str, ValueType]
    problems: tuple[Problem, ...]
    defs: Mapping[int, ValueType]
    trace: tuple[tuple[ir.Op, OpCall, ValueType, Poly], ...]
    calls: tuple[tuple[ir.Op, Unified, Poly], ...] = ()

    @property
    def found(self) -> Mapping[int, Mapping[str, ir.Attr]]:
        """What rules found out about the axes of each op that runs, by the op's id."""
        return {id(op): call.found for op, call, _, _ in self.trace}


def infer(structure: Structure, combo: Combo, unknown: frozenset[str] = frozenset()) -> Typing:
    """Type the reference of a structure in one combination; problems are data.

    ``unknown``: ports and slots whose type was reported and is not known.
    """
    run = _Inference(structure, combo, unknown)
    run.start()
    run.body(structure.reference)
    run.check_outputs()
    return Typing(combo, run.env, tuple(run.problems), run.defs, tuple(run.trace), tuple(run.calls))


@dataclass
class _Inference:
    structure: Structure
    combo: Combo
    unknown: frozenset[str]
    env: dict[str, ValueType] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    yielded: dict[str, list[tuple[ir.Let, ValueType]]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    defs: dict[int, ValueType] = field(default_factory=dict)
    trace: list[tuple[ir.Op, OpCall, ValueType, Poly]] = field(default_factory=list)
    inner: dict[str, Unified] = field(default_factory=dict)
    calls: list[tuple[ir.Op, Unified, Poly]] = field(default_factory=list)
    handed: list[tuple[str, tuple[ValueType, ...]]] = field(default_factory=list)
    times: Poly = field(default_factory=lambda: Poly.const(1))

    def problem(self, code: str, message: str, span: Span, help: str | None = None) -> ValueType:
        self.problems.append(Problem(code, message, span, help))
        return UNKNOWN

    # ------------------------------------------------------------ what is there

    def start(self) -> None:
        for part in self.structure.parts:
            if not self.combo.holds(part.when):
                self.gone[part.name] = "it exists in other variants only"
        items: list[Port | Slot] = [*self.structure.inputs, *self.structure.slots]
        for item in items:
            has_default = isinstance(item, Port) and item.default is not None
            if item.name in self.unknown:
                self.env[item.name] = UNKNOWN
            elif not self.combo.exists(item):
                self.gone[item.name] = "it exists in other variants only"
            elif item.optional and item.name not in self.combo.present and not has_default:
                self.gone[item.name] = "it may be absent"
            elif isinstance(item, Slot) and item.inner is not None:
                continue  # called, not read
            elif item.shape is None:
                self.env[item.name] = UNKNOWN
            else:
                self.env[item.name] = Tensor(item.shape, item.dtype or "host")

    # ------------------------------------------------------------ statements

    def body(self, stmts: tuple[ir.Stmt, ...]) -> None:
        for stmt in stmts:
            match stmt:
                case ir.Let():
                    self.let(stmt)
                case ir.Each():
                    self.each(stmt)
                case ir.Scan():
                    self.scan(stmt)

    def let(self, stmt: ir.Let) -> None:
        value: ValueType
        if self.combo.holds(stmt.when):
            value = self.expr(stmt.value)
        elif stmt.otherwise is not None:
            value = self.expr(stmt.otherwise)
        elif stmt.rebinds:
            return
        elif stmt.kind == "let":  # reported where it was read: FRT0305
            value = UNKNOWN
        else:
            self.gone.setdefault(stmt.name, "it has no value here")
            return
        self.defs[id(stmt)] = value
        if stmt.kind == "yield":
            self.yielded.setdefault(stmt.name, []).append((stmt, value))
            return
        if stmt.kind == "point" and stmt.name in self.env:
            self.problem(OUTPUT_ONCE, f"point `{stmt.name}` is defined twice", stmt.span)
        self.env[stmt.name] = value

    def each(self, stmt: ir.Each) -> None:
        outer = dict(self.env)
        times, self.times = self.times, self.times * Poly.symbol(f"count({stmt.index})")
        self.body(stmt.body)
        self.times = times
        self.env = outer

    def scan(self, stmt: ir.Scan) -> None:
        outer = dict(self.env)
        starts = {name: self.expr(start) for name, start in stmt.carries}
        place: int | None = None
        for name, position in stmt.over:
            item = self.env.get(name, UNKNOWN)
            sliced = self.sliced(name, item, position, stmt)
            if isinstance(item, Tensor):
                place = position if place is None else place
            self.env[name] = sliced
        self.env.update(starts)
        times, self.times = self.times, self.times * stmt.dim
        self.body(stmt.body)
        self.times = times
        results: dict[str, ValueType] = dict(starts)
        for inner in stmt.body:
            if not isinstance(inner, ir.Let) or inner.kind not in ("next", "emit"):
                continue
            value = self.defs.get(id(inner), UNKNOWN)
            if inner.kind == "emit":
                results[inner.name] = stacked(value, stmt.dim, place or 0)
            elif not isinstance(value, Unknown) and value != starts.get(inner.name, value):
                self.problem(
                    SCAN,
                    f"`{inner.name}` starts as {starts[inner.name]} and becomes {value}",
                    inner.span,
                    "a carried value keeps its shape and dtype",
                )
        self.env = outer | results

    def sliced(self, name: str, item: ValueType, position: int, stmt: ir.Scan) -> ValueType:
        if not isinstance(item, Tensor):
            return UNKNOWN if isinstance(item, Unknown) else item
        rank = len(item.shape)
        if not -rank <= position < rank:
            return self.problem(SCAN, f"`{name}` has only {rank} axes", stmt.span)
        if any(a.rows for a in item.shape[: position % rank + 1]) and position >= 0:
            return self.problem(
                SCAN, f"a scan cannot walk the rows of `{name}` {shape_text(item.shape)}", stmt.span
            )
        k = position % rank
        if item.shape[k] != stmt.dim:
            return self.problem(
                SCAN,
                f"this scan walks {stmt.dim}, but axis {k} of `{name}` "
                f"{shape_text(item.shape)} is {item.shape[k]}",
                stmt.span,
            )
        return Tensor(item.shape[:k] + item.shape[k + 1 :], item.dtype)

    # ------------------------------------------------------------ expressions

    def expr(self, node: ir.Expr) -> ValueType:
        match node:
            case ir.Const() | ir.DimValue():
                return SCALAR
            case ir.Ref():
                return self.ref(node)
            case ir.Op():
                return self.op(node)
            case ir.Select(axis=name, arms=arms):
                value = dict(self.combo.variants).get(name)
                chosen = next((arm for values, arm in arms if value in values), None)
                return UNKNOWN if chosen is None else self.expr(chosen)
            case _:
                return UNKNOWN

    def ref(self, node: ir.Ref) -> ValueType:
        if node.kind in ("param", "scale", "index"):
            return SCALAR
        if node.name in self.env:
            return self.env[node.name]
        if node.kind in ("part", "inner") and node.name not in self.gone:
            return SCALAR
        why = self.gone.get(node.name)
        if why is None:
            return UNKNOWN
        return self.problem(
            ABSENT,
            f"`{node.name}` is used where {why}",
            node.span,
            (
                f"guard the line: `when present {node.name}`"
                if why == "it may be absent"
                else "guard the line by the same `when`"
            ),
        )

    def op(self, node: ir.Op) -> ValueType:
        args = self.operands(node)
        if any(isinstance(arg, Unknown) for arg in args):
            return UNKNOWN
        if node.op == "inner":
            return self.composed(node, args)
        port = next((p for p in self.structure.outputs if p.name == node.attr("port")), None)
        if port is not None:  # a part whose result is an output
            return Tensor(port.shape, port.dtype)
        call = OpCall(node.op, args, dict(node.attrs))
        try:
            result = OPS[node.op].rule(call)
        except OpError as error:
            return self.problem(CODES[error.kind], error.message, node.span, error.help)
        except DimError as error:
            return self.problem(CODES["shape"], str(error), node.span)
        self.trace.append((node, call, result, self.times))
        return result

    def composed(self, node: ir.Op, args: tuple[ValueType, ...]) -> ValueType:
        """The result of an inner structure called with these."""
        called = node.args[0]
        assert isinstance(called, ir.Ref)
        slot = next(s for s in self.structure.slots if s.name == called.name)
        names = cast(tuple[str, ...], node.attr("given"))
        given = dict(zip(names, args[1:], strict=True))
        assert slot.inner is not None
        for name, value in given.items():
            if not isinstance(value, Tensor):
                message = f"`{slot.name}` takes a tensor as `{name}`, not {value}"
                return self.problem(CODES["argument"], message, node.span)
        try:
            tensors = {n: v for n, v in given.items() if isinstance(v, Tensor)}
            found = unify(slot.name, slot.inner, tensors)
        except OpError as error:
            return self.problem(CODES[error.kind], error.message, node.span, error.help)
        before = self.inner.setdefault(slot.name, found)
        if before.of_slots() != found.of_slots():
            message = f"`{slot.name}` is called with other sizes than before"
            return self.problem(CODES["shape"], message, node.span)
        result = found.result(cast(str, node.attr("output")))
        held = next((k for k in self.handed if k[0] == slot.name and _same(k[1], args)), None)
        if held is None:  # called again on the same values it computes nothing anew
            self.handed.append((slot.name, args))
            self.calls.append((node, found, self.times))
        return result

    def operands(self, node: ir.Op) -> tuple[ValueType, ...]:
        out = []
        for arg in node.args:
            if not isinstance(arg, ir.EachOf):
                out.append(self.expr(arg))
                continue
            value = self.expr(arg.value)
            total = summed(value, arg.index, _joined(node))
            if total is None:
                total = self.problem(
                    REPEATED, f"the sizes of `each {arg.index}` cannot be added up", arg.span
                )
            out.append(total)
        return tuple(out)

    # ------------------------------------------------------------ outputs

    def check_outputs(self) -> None:
        for port in self.structure.outputs:
            given = self.yielded.get(port.name, [])
            if port.name in self.unknown:
                continue
            if not self.combo.exists(port):
                for stmt, _ in given:
                    self.problem(
                        OUTPUT_ONCE,
                        f"output `{port.name}` does not exist here and is yielded",
                        stmt.span,
                        "give the line the `when` of the output",
                    )
                continue
            if not given:
                self.problem(
                    OUTPUT_ONCE,
                    f"output `{port.name}` is never yielded",
                    port.span,
                    f"add `yield {port.name} = …` to the reference",
                )
            for stmt, _ in given[1:]:
                self.problem(OUTPUT_ONCE, f"output `{port.name}` is yielded twice", stmt.span)
            for stmt, value in given:
                self.check_output(port, stmt, value)

    def check_output(self, port: Port, stmt: ir.Let, value: ValueType) -> None:
        if isinstance(value, Unknown):
            return
        declared = Tensor(port.shape, port.dtype)
        if not isinstance(value, Tensor) or not _fits(value.shape, port.shape):
            message = f"output `{port.name}` is {declared}, not {value}"
            self.problem(OUTPUT_TYPE, message, stmt.span)
        elif value.dtype != port.dtype:
            like = next((p.name for p in self.structure.inputs if p.dtype == port.dtype), "x")
            self.problem(
                OUTPUT_TYPE,
                f"output `{port.name}` is {declared}, not {value}",
                stmt.span,
                _converted(port, like),
            )


def _converted(port: Port, like: str) -> str:
    """How a value gets the dtype of an output."""
    if port.dtype in QUANTISED:
        return f"quantise it: quantize(…, {port.dtype}, {port.scale or 'scale'})"
    return f"cast it: cast(…, {like})" if port.dtype == "host" else f"cast it: {port.dtype}(…)"


def _same(before: tuple[ValueType, ...], now: tuple[ValueType, ...]) -> bool:
    """Whether two calls get the very same values: a value's type is made once."""
    return len(before) == len(now) and all(a is b for a, b in zip(before, now, strict=True))


def _fits(value: Shape, declared: Shape) -> bool:
    return len(value) == len(declared) and all(
        not d.alternatives or v == d or v in d.alternatives
        for v, d in zip(value, declared, strict=True)
    )


def _joined(node: ir.Op) -> int:
    position = dict(node.attrs).get("axis", 0)
    return position if isinstance(position, int) else 0

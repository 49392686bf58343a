"""What the impl template needs: packs, scales, facts, and one method per rung."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from frtspec.codegen import condsrc, dimsrc
from frtspec.codegen.dimsrc import DimNames
from frtspec.codegen.exprsrc import Expressions
from frtspec.codegen.formats import CASTS, quantised, quantize_call, scales_text
from frtspec.codegen.implspec import SpecFields
from frtspec.codegen.implwords import scaled, summary
from frtspec.codegen.imports import import_lines
from frtspec.codegen.names import free
from frtspec.codegen.pysrc import (
    COMPARE,
    PRIMARY,
    Py,
    binary,
    call,
    docstring,
    number,
    pyrepr,
    told_lines,
)
from frtspec.codegen.rungsrc import RungMethods
from frtspec.codegen.signatures import Function, param_parameter, variant_parameter
from frtspec.codegen.stepsrc import step_parts
from frtspec.codegen.structview import dims_line
from frtspec.codegen.unsupported import Unsupported
from frtspec.dims import Poly, Shape, shape_text
from frtspec.ir.decl import Impl, ImplParam, Pack, Scale, Slot, Step, Structure
from frtspec.ir.expr import AxisIs, EachOf, Expr, IsPresent, Op, Ref, Select
from frtspec.ir.walk import conditions, parts, reads, tests
from frtspec.ir.walk import variants as axes_of
from frtspec.sema.combos import may_be_absent


@dataclass(frozen=True)
class ImplView:
    """``attributes``: annotated tensors of the class; ``build``: lines of ``__init__``;
    ``fields``: keyword arguments of ``ImplSpec``."""

    title: str
    path: str
    doc: tuple[str, ...]
    summary: tuple[str, ...]
    imports: tuple[str, ...]
    dims: str | None
    class_name: str
    class_doc: str
    fields: tuple[str, ...]
    attributes: tuple[str, ...]
    parameters: tuple[str, ...]
    build_doc: tuple[str, ...]
    build: tuple[str, ...]
    methods: tuple[Function, ...]


def impl_view(structure: Structure, impl: Impl, class_name: str) -> ImplView:
    """The view of an impl. Raises ``Unsupported`` for what has no generator."""
    view = _Builder(structure, impl)
    return view.view(class_name)


@dataclass
class _Builder:
    structure: Structure
    impl: Impl
    names: DimNames = field(default_factory=DimNames.fresh)

    def __post_init__(self) -> None:
        self.rungs = RungMethods(self.structure, self.impl)
        self.slots = {slot.name: slot for slot in self.structure.slots if slot.inner is None}
        packed = {name for pack in self.impl.packs for name in pack.slots}
        read = {name for stmt in self.rungs.cut.body for name in reads(stmt)}
        read |= {test.name for test in tests(self.rungs.cut.body) if hasattr(test, "name")}
        self.given = self._prepared_from()
        self.kept = [s for n, s in self.slots.items() if n in self._handed() | read - packed]
        self.taken = [
            s for n, s in self.slots.items() if n in packed or s in self.kept or n in self.given
        ]

    def view(self, class_name: str) -> ImplView:
        impl = self.impl
        build = self.build()  # first: it refuses weights that no method could read
        methods = self.rungs.methods()
        build = [*(f"self.{name} = {name}" for name in self.rungs.asked), *build]
        fields = SpecFields(self.structure, self.impl, self.rungs, self.names).lines()
        rules = [need.rule for need in impl.needs]
        rules += [rule for rung, _ in self.rungs.rungs() for rule in rung.envelope]
        symbols = dimsrc.symbols([], rules)
        if symbols:
            self.names.functions.add("dims")
        target = self.structure.name + (f".{impl.seam}" if impl.seam else "")
        return ImplView(
            title=f"{impl.name}, version {impl.version}, for {target} version {self.structure.version}.",
            path=impl.origin.path,
            doc=tuple(told_lines(impl.doc, impl.evidence)),
            summary=tuple(self.summary()),
            imports=tuple(self.imports(methods, [*fields, *build])),
            dims=dims_line(symbols),
            class_name=class_name,
            class_doc="The packed weights of one seat, run on the rung it was bound to.",
            fields=tuple(fields),
            attributes=tuple(self.attributes()),
            parameters=tuple(self.parameters()),
            build_doc=tuple(self.build_doc()),
            build=tuple(build),
            methods=tuple(methods),
        )

    # ------------------------------------------------------------ what the impl takes

    def _handed(self) -> set[str]:
        """Slots that a kernel is handed as they are."""
        calls = [rung.call for rung, _ in self.rungs.rungs() if rung.call is not None]
        found = {a.name for c in calls for _, _, args in c.arms for a in args if a.kind == "slot"}
        return found | self._named("slot", self._steps())

    def _steps(self) -> list[Step]:
        """The steps of every call."""
        return [step for rung, _ in self.rungs.rungs() for step in rung.steps]

    def _prepared(self) -> list[Step]:
        return [step for rung, _ in self.rungs.rungs() for step in rung.prepared]

    def _prepared_from(self) -> set[str]:
        """Slots that something is prepared from when the seat is bound."""
        return self._named("slot", self._prepared())

    def _named(self, kind: str, steps: Sequence[Step]) -> set[str]:
        """Names of one kind that steps read, and slots that they ask about."""
        refs = [p for step in steps for p in step_parts(step) if isinstance(p, Ref)]
        found = {ref.name for ref in refs if ref.kind == kind}
        asked = [test for step in steps for test in conditions(step.when)]
        names = {test.name for test in asked if isinstance(test, IsPresent)} & {*self.slots}
        return found | (names if kind == "slot" else set())

    def axes(self) -> list[str]:
        """Variant axes that some method asks about."""
        asked = axes_of(self.rungs.cut.body)
        asked |= {r.call.axis for r, _ in self.rungs.rungs() if r.call and r.call.axis}
        steps = [*self._prepared(), *self._steps()]
        asked |= {p.axis for s in steps for p in step_parts(s) if isinstance(p, Select)}
        asked |= {t.axis for s in steps for t in conditions(s.when) if isinstance(t, AxisIs)}
        served = self.rungs.cut.served.axes
        return [
            v.name for v in self.structure.variants if v.name in asked and len(served[v.name]) > 1
        ]

    def params(self) -> list[str]:
        read = {name for stmt in self.rungs.cut.body for name in reads(stmt)}
        read |= self._named("param", [*self._prepared(), *self._steps()])
        calls = [rung.call for rung, _ in self.rungs.rungs() if rung.call is not None]
        read |= {a.name for c in calls for _, _, args in c.arms for a in args if a.kind == "param"}
        return [param.name for param in self.structure.params if param.name in read]

    def absent(self, slot: Slot) -> bool:
        return slot.optional or slot.when is not None

    def parameters(self) -> list[str]:
        out = []
        for slot in self.taken:
            kind = "Sequence[Tensor]" if slot.index else "Tensor"
            end = " | None = None" if self.absent(slot) else ""
            out.append(f"{slot.name}: {kind}{end}")
        out += [f"{scale.name}: Tensor" for scale in self.impl.scales if scale.measured]
        out += [variant_parameter(axis, None) for axis in self.axes()]
        out += [param_parameter(name, None) for name in self.params()]
        out += [f"{p.name}: float = {number(p.default)}" for p in self.impl.params]
        out += [f"{name}: int" for name in self.rungs.asked]
        return ["self", "*", *out] if out else ["self"]

    # ------------------------------------------------------------ __init__

    def build(self) -> list[str]:
        lines = [f"self.{name} = {name}" for name in (*self.axes(), *self.params())]
        lines += [line for scale in self.balances() for line in self.balance(scale)]
        for pack in self.impl.packs:
            lines += self.pack(pack)
        lines += [line for slot in self.kept for line in self.keep(slot)]
        lines = self.required() + lines
        static = [scale.name for scale in self.impl.scales if scale.kind == "static"]
        lines += [f"self.keep_scale({pyrepr(name)}, {name})" for name in static]
        given = [s.name for s in self.taken if s.name in self.given]
        if given:
            items = ", ".join(f"{pyrepr(name)}: {name}" for name in given)
            lines.append(f"self.given = {{{items}}}")
        return lines

    def balances(self) -> list[Scale]:
        return [scale for scale in self.impl.scales if scale.kind == "balance"]

    def balance(self, scale: Scale) -> list[str]:
        """The factors that go into the weight, and what the activation is multiplied by."""
        alpha, low, high = (
            item if isinstance(item, str) else number(item) for item in scale.settings
        )
        made = call("numerics.balance", scale.name, alpha=alpha, low=low, high=high)
        factors = self.factors(scale.name)
        return [f"{factors} = {made}", f"self.keep_scale({pyrepr(scale.name)}, 1 / {factors})"]

    def factors(self, scale: str) -> str:
        given = {part.partition(":")[0] for part in self.parameters()}
        return free(f"{scale}_factors", given)

    def required(self) -> list[str]:
        """Weights that go with a variant have to be there in it."""
        lines = []
        packed = [self.slots[name] for pack in self.impl.packs for name in pack.slots]
        for slot in [*packed, *self.kept]:
            if slot.when is None or may_be_absent(self.structure, slot):
                continue
            left = self.rungs.cut.served.condition(slot.when)
            given = Py(f"{slot.name} is None", COMPARE)
            cond = (
                given
                if isinstance(left, bool)
                else binary("and", condsrc.condition(left, {}), given)
            )
            text = f"{slot.name} is needed where {condsrc.spoken(slot.when)}"
            lines += [f"if {cond}:", f"    raise ValueError({pyrepr(text)})"]
        return lines

    def pack(self, pack: Pack) -> list[str]:
        maybe = [name for name in pack.slots if self.absent(self.slots[name])]
        if maybe and len(pack.slots) > 1:
            raise Unsupported(
                f"`pack {pack.name}` of `{maybe[0]}`, which may be absent,", pack.span
            )
        inner = (
            pack.expr.args[0]
            if isinstance(pack.expr, Op) and pack.expr.op == "quantize"
            else pack.expr
        )
        deep = {n for n in pack.slots if len(self.slots[n].shape or ()) > 2}
        value = _PackExpressions({}, str, deep=deep).emit(inner)
        if pack.balance is not None:
            value = binary("*", value, Py(self.factors(pack.balance)))
        form = quantised(pack)
        if form is not None:
            value = quantize_call(form, value, pack.granularity, at_call=False)
        elif pack.format is not None:
            value = value.method(CASTS[pack.format])
        if maybe:
            value = Py(f"None if {maybe[0]} is None else {value}")
        lines = [f"self.pack({pyrepr(pack.name)}, {value})"]
        if self.is_joint(pack):
            lines.append(f"self.{pack.name}_rows = {self.rows(pack)}")
        return lines

    def is_joint(self, pack: Pack) -> bool:
        return len(pack.slots) > 1 or self.slots[pack.slots[0]].index is not None

    def rows(self, pack: Pack) -> str:
        """The rows of a joint pack that belong to each of its weights."""
        axis = 1 if pack.transposed else 0
        if len(pack.slots) == 1:
            return f"[each.shape[{axis}] for each in {pack.slots[0]}]"
        return f"[{', '.join(f'{name}.shape[{axis}]' for name in pack.slots)}]"

    def keep(self, slot: Slot) -> list[str]:
        """A weight that stays as it is; a repeated one is kept end to end."""
        if slot.index is None:
            return [f"self.pack({pyrepr(slot.name)}, {slot.name})"]
        if slot.shape is None or len(slot.shape) != 1:
            raise Unsupported(f"`{slot.name}`, repeated and not packed,", slot.span)
        value, rows = f"torch.cat(list({slot.name}))", f"[len(each) for each in {slot.name}]"
        if self.absent(slot):
            value = f"None if {slot.name} is None else {value}"
            rows = f"[] if {slot.name} is None else {rows}"
        return [f"self.pack({pyrepr(slot.name)}, {value})", f"self.{slot.name}_rows = {rows}"]

    # ------------------------------------------------------------ text

    def attributes(self) -> list[str]:
        """Annotations of the tensors that packing makes, each with what it holds."""
        lines = []
        for pack in self.impl.packs:
            lines.append(f"{pack.name}: Tensor  # {self.describe(pack)}")
            form = quantised(pack)
            if form is not None:
                dtype = "E4M3" if form.levels else "float32"
                said = scales_text(pack.granularity)
                lines.append(f"{pack.name}_scale: Tensor  # {dtype}, {said}")
            if form is not None and form.levels:
                lines.append(f"{pack.name}_tensor_scale: Tensor  # float32, on top of the blocks'")
        for slot in self.kept:
            shape = shape_text(slot.shape or ())
            text = f"{shape}, one after the other" if slot.index else shape
            absent = self.absent(slot)
            because = "" if not absent else ", or None where it is absent"
            kind = "Tensor | None" if absent and self.asks(slot) else "Tensor"
            lines.append(f"{slot.name}: {kind}  # {text}{because}")
        for scale in self.impl.scales:
            if scale.kind == "static":
                lines.append(f"{scale.name}: Tensor  # float32, of {scale.point}")
            elif scale.kind == "balance":
                said = f"float32, what each channel of {scale.point} is multiplied by"
                lines.append(f"{scale.name}: Tensor  # {said}")
        made = {n: s for s in self._prepared() for n in s.names if n != "_"}
        for name, step in made.items():
            number = isinstance(step.value, Op) and step.value.op == "number"
            lines.append(f"{name}: {'float' if number else 'Tensor'}  # prepared for the kernel")
        return lines

    def asks(self, slot: Slot) -> bool:
        """Whether the methods test for the slot before they read it."""
        return slot.index is not None or any(
            getattr(test, "name", None) == slot.name for test in tests(self.rungs.cut.body)
        )

    def describe(self, pack: Pack) -> str:
        """``fp8_e4m3 [2*F, D]: rows of w_gate, then of w_up``"""
        shape = shape_text(self.pack_shape(pack))
        text = f"{pack.format or 'as given'} {shape}"
        if len(pack.slots) > 1:
            return f"{text}: rows of {', then of '.join(pack.slots)}"
        if self.is_joint(pack):
            return f"{text}: rows of each {pack.slots[0]}"
        return f"{text}: {pack.slots[0]}"

    def pack_shape(self, pack: Pack) -> Shape:
        shapes = [self.slots[name].shape or () for name in pack.slots]
        if len(shapes[0]) == 3:
            stack, k, n = shapes[0]
            return (stack, n, k) if pack.transposed else shapes[0]
        rows = [shape[-1] if pack.transposed else shape[0] for shape in shapes]
        rest = shapes[0][:1] if pack.transposed else shapes[0][1:]
        index = self.slots[pack.slots[0]].index
        total = sum((row for row in rows if isinstance(row, Poly)), Poly.const(0))
        if index is not None:
            total = total.subs(
                {
                    s: Poly.symbol(f"sum({s.partition('[')[0]})")
                    for s in total.symbols()
                    if s.endswith(f"[{index}]")
                }
            )
        return (total, *rest)

    def summary(self) -> list[str]:
        width = max((len(pack.name) for pack in self.impl.packs), default=0)
        packs = [f"{p.name:<{width}}  {self.describe(p)}{scaled(p)}" for p in self.impl.packs]
        return summary(self.impl, packs)

    def build_doc(self) -> list[str]:
        matrices = [s for s in self.taken if s.shape is not None and len(s.shape) == 2]
        said = []
        if matrices:
            said.append("weights are in_out")
        if any(scale.kind == "static" for scale in self.impl.scales):
            said.append("scales are float32")
        factors = [scale.name for scale in self.balances()]
        if factors:
            said.append(f"{', '.join(factors)}: the largest magnitude of each channel, float32")
        said += [
            limits(param) for param in self.impl.params if (param.lo, param.hi) != (None, None)
        ]
        text = "Pack once."
        return docstring(f"{text} {', '.join(said).capitalize()}." if said else text, depth=2)

    def imports(self, methods: Sequence[Function], code: Sequence[str]) -> list[str]:
        text = "\n".join(
            [
                *code,
                *self.parameters(),
                *(line for m in methods for line in (*m.parameters, *m.body)),
            ]
        )
        runtime = {"BoundImpl", "ImplSpec", "check_abi"}
        runtime |= {
            n
            for n in ("BandSpec", "Bound", "Need", "RungSpec", "ScaleSpec")
            if re.search(rf"\b{n}\(", text)
        }
        runtime |= {n for n in ("numerics", "ops") if re.search(rf"\b{n}\.", text)}
        return import_lines(text, self.names.functions, runtime)


@dataclass
class _PackExpressions(Expressions):
    """Expressions over weights as ``__init__`` gets them. ``deep``: slots that are stacks."""

    deep: Collection[str] = ()

    def emit(self, expr: Expr) -> Py:
        match expr:
            case Op(op="transpose", args=(inner,)):
                stack = any(isinstance(p, Ref) and p.name in self.deep for p in parts(inner))
                return self.emit(inner).attr("mT" if stack else "T")
            case Op(op="cat", args=(EachOf(value=value),)):
                name = next(p.name for p in parts(value) if isinstance(p, Ref))
                return call("torch.cat", f"[{self.emit(value)} for each in {name}]")
            case Op(op="cat", args=args):
                return call("torch.cat", f"[{', '.join(self.emit(arg).text for arg in args)}]")
            case Ref(name=name, index=index):
                return Py(name if index is None else "each", PRIMARY)
            case _:
                raise Unsupported("an expression in a pack", expr.span)


def limits(param: ImplParam) -> str:
    """``alpha from 0 to 1``."""
    low = "" if param.lo is None else f" from {number(param.lo)}"
    return f"{param.name}{low}" + ("" if param.hi is None else f" to {number(param.hi)}")

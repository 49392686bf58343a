"""One method per rung of an impl: kernel calls, library ops, the emulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from frtspec.codegen import condsrc, dimsrc
from frtspec.codegen.arithmetic import Emulation, Line
from frtspec.codegen.cut import Cut, cut_of, names_in
from frtspec.codegen.exprsrc import Expressions, Lowering, constructor
from frtspec.codegen.flowsrc import Body
from frtspec.codegen.formats import CASTS, QUANTISED, format_of, quantize_call
from frtspec.codegen.hostparts import Hosted, called
from frtspec.codegen.lowered import Lowered
from frtspec.codegen.names import RESERVED, free
from frtspec.codegen.pysrc import ATOM, PRIMARY, Py, call, docstring, pyrepr
from frtspec.codegen.rungops import library, lowerings
from frtspec.codegen.signatures import Function, returned, shaped
from frtspec.codegen.sizesrc import Argument, Sizes
from frtspec.codegen.stepsrc import StepMethods, member
from frtspec.codegen.unsupported import Unsupported
from frtspec.dims import Poly, Shape
from frtspec.ir.decl import Band, Impl, KernelArg, KernelCall, Rung, Structure
from frtspec.ir.expr import AxisIs, Op, Ref
from frtspec.ir.stepops import LITERALS
from frtspec.ir.types import Tensor
from frtspec.sema.combos import combos


@dataclass
class MemberExpressions(Expressions):
    """Expressions of a method: slots, scales and params are members of the impl.

    ``library``: ops that the runtime's numerics write with fewer passes.
    """

    library: frozenset[str] = frozenset()

    def _op(self, op: Op) -> Py:
        text = super()._op(op)
        if op.op not in self.library:
            return text
        return Py(f"numerics.{text.text.removeprefix('ops.')}", text.level)

    def ref(self, ref: Ref) -> Py:
        name = self.names.get(ref.name, ref.name)
        match ref.kind:
            case "quantised":
                return Py(self.names.get(f"{ref.name}_q", f"{ref.name}_q"))
            case "half":
                return Py(self.names.get(f"{ref.name}_h", f"{ref.name}_h"))
            case "handed":
                return Py(self.names.get(f"{ref.name}_host", f"{ref.name}_host"))
            case "pack" | "prepared" | "pack_scale" | "pack_tensor_scale" | "literal" | "text":
                return member(ref)
            case "scale" | "held" | "param":
                return Py(f"self.{ref.name}", PRIMARY)
            case "kept" if ref.index is None:
                return Py(f"self.{ref.name}", PRIMARY)
            case "over":
                return Py(self.over[ref.name])
            case _:
                return Py(name) if ref.index is None else Py(name).item(ref.index)


@dataclass
class RungMethods:
    """Builds the methods that run an impl's rungs.

    ``runs``: the method of each rung, by the rung's identity, in the order of ladders.
    ``asked``: dims that no argument shows and the impl is told, local name -> dim.
    """

    structure: Structure
    impl: Impl
    cut: Cut = field(init=False)
    called: list[Hosted] = field(init=False)
    runs: dict[int, str] = field(init=False, default_factory=dict)
    asked: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.types = self.structure.types
        self.cut = cut_of(self.structure, self.impl, self.types)
        self.called = called(self.structure, self.cut.body)
        for rung, band in self.rungs():
            self.runs[id(rung)] = self._method_name(rung, band)

    def rungs(self) -> list[tuple[Rung, Band | None]]:
        """Every rung, those of bands after the others."""
        inside = [(rung, band) for band in self.impl.bands for rung in band.rungs]
        return [*((rung, None) for rung in self.impl.rungs), *inside]

    def without(self, rung: Rung) -> tuple[str, ...]:
        """Optional inputs that a kernel's call reads nothing of: it can't serve a call with one."""
        if self.impl.seam is not None or not (rung.steps or rung.call):
            return ()
        only = (*self.impl.only, *rung.only)
        served = [c for c in combos(self.structure) if all(c.holds(AxisIs(*o)) for o in only)]
        read = StepMethods(self, rung).read() if rung.steps else _read(rung.call)
        return tuple(
            port.name
            for port in self.structure.inputs
            if port.optional and port.default is None and port.name not in read
            if port.name in self.cut.sources and any(c.exists(port) for c in served)
        )

    def methods(self) -> list[Function]:
        """One method per distinct way to run."""
        made: dict[str, Function] = {}
        for rung, _ in self.rungs():
            name = self.runs[id(rung)]
            if name not in made:
                made[name] = self._method(rung, name)
            if rung.prepared:
                first = self.prepares(rung)
                made[first] = StepMethods(self, rung).prepare(first)
        return list(made.values())

    def prepares(self, rung: Rung) -> str:
        """The method that prepares a rung."""
        return self.runs[id(rung)].replace("run_", "prepare_", 1)

    def _method_name(self, rung: Rung, band: Band | None) -> str:
        name = f"run_{rung.kind}"
        if rung.kind == "emulate" or name not in self.runs.values():
            return name
        if band is not None:
            name += f"_{band.dim.lower()}{band.lo}_{band.hi or 'up'}"
        return free(name, tuple(self.runs.values()), "_2")

    # ------------------------------------------------------------ methods

    def _method(self, rung: Rung, name: str) -> Function:
        match rung.kind:
            case "emulate":
                doc = "The same arithmetic in plain torch, on any device"
                return self._arithmetic(Emulation(self.structure, self.impl, self.cut), name, doc)
            case "torch":
                doc = "Library ops of torch"
                flow = Lowered(self.structure, self.impl, self.cut, rung=rung)
                return self._arithmetic(flow, name, doc)
            case _:
                if self.called:
                    what = f"`rung {rung.kind}` of a structure that calls `{self.called[0].name}`"
                    raise Unsupported(what, rung.span)
                if rung.steps:
                    return StepMethods(self, rung).call(name)
                if rung.call is None:
                    raise Unsupported(f"`rung {rung.kind}` without a call", rung.span)
                return self._kernel(rung.call, dict(rung.only), name)

    def _arithmetic(self, flow: Emulation, name: str, doc: str) -> Function:
        lines = flow.lines()
        sizes = self.sizes()
        source = self.expressions(flow.names(), sizes, lowerings(flow), library(flow))
        body = self.body(source, flow, lines)
        text = body.lines(lines)
        results = [f"tuple({r})" if r in self.cut.repeated else body.name(r) for r in flow.results]
        told = [f"{local} = self.{local}" for local in sizes.asked]
        self.asked |= sizes.asked
        absent = self.absent_inputs(sizes)
        absent += [f"{body.name(name)}: Tensor | None = None" for name in self.maybe()]
        lead = [*sizes.lines(), *told, *absent, *self._once()]
        return self.function(name, doc, [*lead, *returned(text, results)])

    def expressions(
        self,
        names: dict[str, str],
        sizes: Sizes,
        extra: Mapping[str, Lowering],
        library: frozenset[str] = frozenset(),
    ) -> MemberExpressions:
        return MemberExpressions(names, sizes, extra=dict(extra), library=library)

    def body(
        self, source: MemberExpressions, flow: Emulation | None, lines: Sequence[Line]
    ) -> Body:
        """What lines of a method are built from. ``flow``: whose arithmetic they are; None for
        what is prepared before there are inputs."""
        held = [s.name for s in self.structure.slots if s.index is None]
        return Body(
            structure=self.structure.name,
            source=source,
            variants=self.cut.served.axes,
            optional=self._optional() | self._unsettled(),
            counted={} if flow is None else self._counted(flow, lines),
            record=False,
            variant_prefix="self.",
            held={} if flow is None else {name: f"self.{name}" for name in held},
        )

    def _optional(self) -> dict[str, str | None]:
        """Inputs that may be absent, with what they exist for."""
        ports = () if self.impl.seam else self.structure.inputs
        return {
            port.name: None if port.when is None else condsrc.spoken(port.when)
            for port in ports
            if (port.optional or port.when is not None) and port.default is None
        }

    def _unsettled(self) -> dict[str, str | None]:
        """What is called in some of the variants served only."""
        return {
            item.name: condsrc.spoken(item.when)
            for item in self.called
            if item.when is not None and not self.cut.served.known(item.when)
        }

    def _once(self) -> list[str]:
        """A structure in a slot is called once, whichever of its results are read."""
        unsettled = self._unsettled()
        lines = []
        for item in self.called:
            if item.several:
                once = f"{item.name} = ops.once({item.name})"
                maybe = item.name in unsettled
                lines += [f"if {item.name} is not None:", f"    {once}"] if maybe else [once]
        return lines

    def maybe(self) -> list[str]:
        """Results that exist in some variants only."""
        ports = () if self.impl.seam else self.structure.outputs
        served = self.cut.served
        whens = {port.name: port.when for port in ports if port.index is None}
        return [
            name
            for name in self.cut.targets
            if (when := whens.get(name)) is not None and not served.known(when)
        ]

    def absent_inputs(self, sizes: Sizes) -> list[str]:
        """What an input that is absent stands for."""
        lines = []
        for port in self.structure.inputs:
            if port.default is None or port.name not in self.cut.sources or self.impl.seam:
                continue
            axes = [dimsrc.whole(axis, sizes).text for axis in port.shape if isinstance(axis, Poly)]
            if len(axes) != len(port.shape):
                raise Unsupported(
                    f"a default for `{port.name}`, whose shape is not exact", port.span
                )
            device = f"{self.cut.sources[0]}.device"
            value = constructor(", ".join(axes), port.default, "torch.float32", device)
            lines += [f"if {port.name} is None:", f"    {port.name} = {value}"]
        return lines

    def function(self, name: str, doc: str, body: Sequence[str]) -> Function:
        repeated = any(target in self.cut.repeated for target in self.cut.targets)
        maybe = self.maybe()
        kinds = ["Tensor | None" if name in maybe else "Tensor" for name in self.cut.targets]
        many = "tuple[Tensor, ...]" if repeated else f"tuple[{', '.join(kinds)}]"
        returns = kinds[0] if len(kinds) == 1 and not repeated else many
        shapes = f"{self.shapes(self.cut.sources)} -> {self.shapes(self.cut.targets)}"
        return Function(
            name=name,
            parameters=self._parameters(),
            returns=returns,
            doc=tuple(docstring(f"{doc}: {shapes}.", depth=2)),
            body=tuple(body),
        )

    def _parameters(self) -> tuple[str, ...]:
        """The sources, and by keyword what of the host is called."""
        unsettled = self._unsettled()
        parts = [item.parameter(item.name in unsettled) for item in self.called]
        sources = [self._parameter(source) for source in self.cut.sources]
        return ("self", *sources, *(["*", *parts] if parts else ()))

    def _parameter(self, source: str) -> str:
        """``mask: Tensor | None = None`` where the structure's input may be absent."""
        ports = {port.name: port for port in self.structure.inputs}
        port = None if self.impl.seam else ports.get(source)
        if port is None or not (port.optional or port.when is not None):
            return f"{source}: Tensor"
        return f"{source}: Tensor | None = None"

    def shapes(self, names: Sequence[str]) -> str:
        """``x [M, D], y [M, D]``"""
        outputs = {port.name: port for port in self.structure.outputs}
        out = []
        for name in names:
            port = outputs.get(name)
            shape = port.shape if port is not None and name not in self.types else self.shape(name)
            out.append(shaped(name, port.index if port else None, shape))
        return ", ".join(out)

    def shape(self, name: str) -> Shape:
        value = self.types.get(name)
        return value.shape if isinstance(value, Tensor) else ()

    def sizes(self) -> Sizes:
        arguments = [Argument(n, _unfolded(self.shape(n)), False) for n in self.cut.sources]
        held = self.held_names()
        used = frozenset({*names_in(self.cut), *RESERVED, *held})
        return Sizes(arguments, used, self.impl.origin.span, asks=True)

    def held_names(self) -> list[str]:
        """What a method reads of the impl and of the host, by name."""
        impl, structure = self.impl, self.structure
        held = [p.name for p in impl.packs] + [s.name for s in impl.scales]
        held += [p.name for p in impl.params] + [slot.name for slot in structure.slots]
        held += [item.name for item in self.called]
        held += [axis.name for axis in structure.variants]
        return held + [param.name for param in structure.params]

    def _counted(self, flow: Emulation, lines: Sequence[Line]) -> dict[str, str]:
        """How many turns an ``each`` takes: the length of a list that is there."""
        lists = {
            slot.index: f"len({slot.name})"
            for slot in reversed(self.structure.slots)
            if slot.index is not None and slot.name in flow.packs
        }
        if isinstance(flow, Lowered):
            for joint in flow.joints:
                if joint.loop is not None:
                    lists[joint.loop] = f"len({flow.products_name})"
        return lists

    # ------------------------------------------------------------ kernels

    def _kernel(self, kernel: KernelCall, only: Mapping[str, Sequence[str]], name: str) -> Function:
        sizes = self.sizes()
        served: Sequence[str] = ()
        if kernel.axis is not None:
            served = only.get(kernel.axis, self.cut.served.axes.get(kernel.axis, ()))
        arms = [arm for arm in kernel.arms if kernel.axis is None or arm[0] in served]
        taken = self._taken([arg for _, _, args in arms for arg in args])
        calls = [
            (value, f"self.kernel.{entry}", [self._argument(arg, sizes, taken) for arg in args])
            for value, entry, args in arms
        ]
        result = "Tensor" if len(self.cut.targets) == 1 else "tuple[Tensor, ...]"
        if len(calls) == 1:
            lines = [f"out: {result} = {call(calls[0][1], *calls[0][2])}"]
        elif all(args == calls[0][2] for _, _, args in calls):
            lines = [f"match self.{kernel.axis}:"]
            for value, entry, _ in calls:
                lines += [f"    case {pyrepr(value)}:", f"        entry = {entry}"]
            lines.append(f"out: {result} = {call('entry', *calls[0][2])}")
        else:
            lines = [f"out: {result}", f"match self.{kernel.axis}:"]
            for value, entry, args in calls:
                lines += [f"    case {pyrepr(value)}:", f"        out = {call(entry, *args)}"]
        first = [line for _, line in taken.values()]
        return self.function(
            name, "One kernel call", [*sizes.lines(), *first, *lines, "return out"]
        )

    def _taken(self, args: Sequence[KernelArg]) -> dict[str, tuple[str, str]]:
        """What calls quantise by scales of the call itself: scale -> the local that holds codes
        and scales, and the line that makes it."""
        scales = {scale.name: scale for scale in self.impl.scales}
        out: dict[str, tuple[str, str]] = {}
        for arg in args:
            scale = scales[arg.quantize[1]] if arg.quantize is not None else None
            if scale is None or scale.kind != "dynamic" or scale.name in out:
                continue
            local = free(f"{arg.name}_q", {*names_in(self.cut), *RESERVED})
            value = Py(self._handed_in(arg.name))
            made = quantize_call(format_of(scale), value, scale.granularity, at_call=True)
            out[scale.name] = (local, f"{local} = {made}")
        return out

    def _argument(self, arg: KernelArg, sizes: Sizes, taken: Mapping[str, tuple[str, str]]) -> str:
        match arg.kind:
            case "point":
                value = Py(self._handed_in(arg.name))
            case "scale" if arg.name in taken:
                value = Py(f"{taken[arg.name][0]}.scale", PRIMARY)
            case "pack" | "scale" | "slot" | "param":
                value = Py(f"self.{arg.name}", PRIMARY)
            case "literal":
                value = Py(LITERALS[arg.name])
            case "text":
                value = Py(pyrepr(arg.name))
            case "pack_scale" | "pack_tensor_scale":
                value = Py(f"self.{arg.name}{arg.kind.removeprefix('pack')}", PRIMARY)
            case "dim":
                value = Py(sizes(arg.name))
            case _:
                value = Py(arg.name, ATOM)
        if arg.quantize is not None and arg.quantize[1] in taken:
            value = Py(f"{taken[arg.quantize[1]][0]}.data", PRIMARY)
        elif arg.quantize is not None:
            format, scale = arg.quantize
            form = QUANTISED.get(format)
            if form is None or form.codes is None:
                raise Unsupported(f"an argument in {format}", self.impl.origin.span)
            value = call(f"numerics.{form.codes}", value, f"self.{scale}")
        if arg.cast is not None:
            value = value.method(CASTS[arg.cast])
        return f"{arg.keyword}={value}" if arg.keyword else value.text

    def _handed_in(self, name: str) -> str:
        """A source, also by the name of a point that is nothing but it."""
        if name in self.cut.sources:
            return name
        alias = Emulation(self.structure, self.impl, self.cut).alias.get(name)
        return alias.name if alias is not None else name


def _read(kernel: KernelCall | None) -> set[str]:
    """What the arguments of one call name."""
    return set() if kernel is None else {arg.name for _, _, args in kernel.arms for arg in args}


def _unfolded(shape: Shape) -> Shape:
    """A shape as impls see it: rows are one axis."""
    return tuple(axis.alternatives[0] if axis.rows else axis for axis in shape)

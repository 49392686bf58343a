"""The reference of a structure and the functions of its seams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from frtspec.codegen import condsrc, dimsrc, pysrc
from frtspec.codegen.contractsrc import contract, known_variants
from frtspec.codegen.exprsrc import Expressions, constructor
from frtspec.codegen.flowsrc import Body
from frtspec.codegen.innersrc import InnerCalls
from frtspec.codegen.names import DTYPES, RESERVED, free
from frtspec.codegen.pysrc import WIDTH, call, docstring, pyrepr, wrapped
from frtspec.codegen.signatures import (
    Function,
    hook_parameter,
    param_parameter,
    part_parameter,
    return_type,
    returned,
    shaped,
    variant_parameter,
)
from frtspec.codegen.sizesrc import Argument, Sizes
from frtspec.codegen.unsupported import Unsupported
from frtspec.diag.source import Span
from frtspec.dims import Axis, Poly, Shape
from frtspec.ir.decl import Port, Seam, Slot, Structure
from frtspec.ir.expr import Each, Let, Scan, Stmt
from frtspec.ir.types import Tensor, ValueType
from frtspec.ir.walk import reads, refs


@dataclass
class References:
    """Builds the functions of one structure's module.

    ``functions`` names the function of each seam; it differs from the seam's name only
    where a value of the dataflow has that name too. ``sizes``, known once the reference is
    built, are the dims that its caller has to give: argument -> dim. ``modules``: the Python
    module of each slot that is a structure.
    """

    structure: Structure
    modules: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, ValueType] = field(init=False)
    names: dict[str, str] = field(init=False)
    functions: dict[str, str] = field(init=False)
    sizes: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.types = self.structure.types
        ports = [port.name for port in (*self.structure.inputs, *self.structure.outputs)]
        slots = [slot.name for slot in self.structure.slots]
        axes = [variant.name for variant in self.structure.variants]
        params = [param.name for param in self.structure.params]
        parts = [part.name for part in self.structure.parts]
        scales = [port.scale for port in self._wired() if port.scale is not None]
        given = {*ports, *slots, *axes, *params, *parts, *scales}
        given |= {*self.modules.values()}
        defined = list(dict.fromkeys(_defined_names(self.structure.reference)))
        self.names = {name: free(name, given - {name}) for name in defined if name not in given}
        used = {*given, *self.names.values(), "reference"}
        self.functions = {s.name: free(s.name, used, "_seam") for s in self.structure.seams}

    # ------------------------------------------------------------ functions

    def reference(self) -> Function:
        """``reference(inputs, *, slots, variants, params, record, <seam>_with)``."""
        structure = self.structure
        body, sizes = self._body(self._arguments(structure.inputs, structure.slots))
        sizes.asks = True
        outputs = structure.outputs
        lines = contract(structure) + self._defaults(body, sizes)
        held = {stmt.span for seam in structure.seams for stmt in seam.body}
        open_ = [stmt for stmt in structure.reference if stmt.span not in held]
        called = {ref.name for ref in refs(open_)}
        lines += self._inner().lines([slot for slot in structure.slots if slot.name in called])
        lines += self._declared_points()
        lines += [
            f"{body.name(port.name)}: Tensor | None = None"
            for port in outputs
            if port.when is not None and port.index is None
        ]
        flow = self._flow(structure.reference, structure.seams, body)
        lines += returned(flow, [body.name(port.name) for port in outputs])
        self.sizes = sizes.asked
        optional = self.optional()
        shapes = ", ".join(
            shaped(p.name, p.index, p.shape, p.name in optional) for p in structure.inputs
        )
        results = ", ".join(shaped(p.name, p.index, p.shape) for p in outputs)
        return Function(
            name="reference",
            parameters=tuple(self._reference_parameters()),
            returns=return_type([self._port_type(port) for port in outputs]),
            doc=(
                "Ground truth for the gates, in plain torch.",
                "",
                *wrapped(f"{shapes} -> {results}", width=WIDTH - 4),
            ),
            body=tuple(sizes.lines() + lines),
        )

    def seam(self, seam: Seam) -> Function:
        """The cut of one seam: ``call(sources, *, slots, variants, params, record)``."""
        slots = [slot for slot in self.structure.slots if slot.name in seam.slots]
        sources = [Argument(self.names.get(n, n), self._shape(n), False) for n in seam.sources]
        body, sizes = self._body([*sources, *self._arguments((), slots)])
        inner = self._inside(seam)
        targets = [body.name(name) for name in seam.targets]
        lines = known_variants(self.structure, seam.variants)
        lines += self._inner().lines(slots)
        lines += returned(self._flow(seam.body, inner, body), targets)
        shapes = ", ".join(shaped(name, None, self._shape(name)) for name in seam.sources)
        results = ", ".join(shaped(name, None, self._shape(name)) for name in seam.targets)
        return Function(
            name=self.functions[seam.name],
            parameters=tuple(self._seam_parameters(seam, slots, inner)),
            returns=return_type(["Tensor"] * len(targets)),
            doc=tuple(docstring(f"The seam `{seam.name}`: {shapes} -> {results}.", depth=1)),
            body=tuple(sizes.lines() + lines),
        )

    # ------------------------------------------------------------ parameters

    def optional(self) -> dict[str, str | None]:
        """Inputs and slots that may be absent, with what they exist for."""
        values: list[Port | Slot] = [*self.structure.inputs, *self.structure.slots]
        return {
            value.name: None if value.when is None else condsrc.spoken(value.when)
            for value in values
            if value.optional or value.when is not None
        }

    def inputs(self) -> tuple[str, ...]:
        """Inputs in the order of the reference's arguments: those that may be absent last."""
        optional = self.optional()
        return tuple(
            sorted((port.name for port in self.structure.inputs), key=lambda n: n in optional)
        )

    def _reference_parameters(self) -> list[str]:
        structure = self.structure
        ports = {port.name: port for port in structure.inputs}
        out = [self._tensor(ports[name]) for name in self.inputs()]
        keywords = [self._tensor(slot) for slot in structure.slots]
        keywords += [part_parameter(part) for part in structure.parts]
        keywords += [variant_parameter(v.name, v.default) for v in structure.variants]
        keywords += [f"{port.scale}: Tensor | float" for port in self._wired()]
        keywords += [f"{name}: int" for name in self.sizes]
        keywords += [param_parameter(p.name, p.default) for p in structure.params]
        keywords.append("record: ops.Record = ops.ignore")
        keywords += [hook_parameter(seam.name) for seam in structure.seams]
        keywords += [
            hook_parameter(slot.name) for slot in structure.slots if slot.inner is not None
        ]
        return [*out, "*", *keywords]

    def _seam_parameters(
        self, seam: Seam, slots: Sequence[Slot], inner: Sequence[Seam]
    ) -> list[str]:
        structure = self.structure
        out = [f"{self.names.get(name, name)}: Tensor" for name in seam.sources]
        keywords = [self._tensor(slot) for slot in slots]
        keywords += [
            variant_parameter(v.name, v.default)
            for v in structure.variants
            if v.name in seam.variants
        ]
        keywords += [
            param_parameter(p.name, p.default) for p in structure.params if p.name in seam.params
        ]
        keywords.append("record: ops.Record = ops.ignore")
        keywords += [hook_parameter(other.name) for other in inner]
        keywords += [hook_parameter(slot.name) for slot in slots if slot.inner is not None]
        return [*out, "*", *keywords]

    def _tensor(self, value: Port | Slot) -> str:
        kind = "Sequence[Tensor]" if value.index else "Tensor"
        kind = "ops.Group" if isinstance(value, Slot) and value.inner is not None else kind
        absent = value.name in self.optional()
        return f"{value.name}: {kind} | None = None" if absent else f"{value.name}: {kind}"

    def _port_type(self, port: Port) -> str:
        if port.index:
            return "list[Tensor]"
        return "Tensor | None" if port.when is not None else "Tensor"

    # ------------------------------------------------------------ bodies

    def _arguments(self, ports: Sequence[Port], slots: Sequence[Slot]) -> list[Argument]:
        """What a function takes, those that are always there first."""
        optional = self.optional()
        values: list[Port | Slot] = [*ports, *slots]
        values.sort(key=lambda value: value.name in optional)
        return [
            Argument(value.name, value.shape, value.index is not None)
            for value in values
            if value.shape is not None
        ]

    def _body(self, arguments: Sequence[Argument]) -> tuple[Body, Sizes]:
        structure = self.structure
        known = {*self.names.values(), *(argument.name for argument in arguments), *RESERVED}
        known |= {port.name for port in structure.outputs} | {s.name for s in structure.slots}
        sizes = Sizes(arguments, frozenset(known), structure.origin.span, self.names)
        repeated = {argument.name for argument in arguments if argument.repeated}
        listed: list[Port | Slot] = [*structure.inputs, *structure.slots]
        counted = {
            value.index: f"len({value.name})"
            for value in reversed(listed)
            if value.index is not None and value.name in repeated
        }
        called = {slot.name for slot in structure.slots if slot.inner is not None}
        body = Body(
            structure=structure.name,
            source=Expressions(self.names, sizes, {"inner": self._inner().call}),
            variants={variant.name: variant.values for variant in structure.variants},
            optional={
                n: b for n, b in self.optional().items() if not self._default(n) and n not in called
            }
            | {p.name: condsrc.spoken(p.when) for p in structure.parts if p.when is not None},
            counted=counted,
        )
        return body, sizes

    def _declared_points(self) -> list[str]:
        """Points that are declared outside the dataflow, on an input."""
        inputs = {port.name: port for port in self.structure.inputs}
        lines = []
        for point in self.structure.points:
            port = inputs.get(point.name)
            if point.defined or port is None:
                continue
            line = f"record({pyrepr(point.name)}, {point.name})"
            conds = [f"{point.name} is not None"] if point.name in self.optional() else []
            if point.when is not None and not condsrc.proves(point.when):
                conds.append(condsrc.condition(point.when, {}).at(pysrc.AND + 1))
            lines += [f"if {' and '.join(conds)}:", f"    {line}"] if conds else [line]
        return lines

    def _inner(self) -> InnerCalls:
        return InnerCalls(self.structure.slots, self.modules)

    def _wired(self) -> list[Port]:
        """Ports that carry codes under a scale."""
        return [p for p in (*self.structure.inputs, *self.structure.outputs) if p.scale]

    def _default(self, name: str) -> str | None:
        return next((p.default for p in self.structure.inputs if p.name == name), None)

    def _defaults(self, body: Body, sizes: Sizes) -> list[str]:
        """What an absent input stands for."""
        lines = []
        required = [p for p in self.structure.inputs if p.name not in self.optional()]
        like = required[0].name if required else None
        for port in self.structure.inputs:
            if port.default is None:
                continue
            if like is None:
                raise Unsupported(f"a default for `{port.name}` without another input", port.span)
            dtype = DTYPES.get(port.dtype, f"{like}.dtype")
            shape = ", ".join(self._axis(axis, sizes, port) for axis in port.shape)
            value = constructor(shape, port.default, dtype, f"{like}.device")
            lines += [f"if {port.name} is None:", f"    {port.name} = {value}"]
        return lines

    def _axis(self, axis: Axis, sizes: Sizes, port: Port) -> str:
        if not isinstance(axis, Poly):
            raise Unsupported(f"a default for `{port.name}`, whose shape is not exact", port.span)
        return dimsrc.whole(axis, sizes).text

    # ------------------------------------------------------------ seams in a flow

    def _flow(self, stmts: Sequence[Stmt], seams: Sequence[Seam], body: Body) -> list[str]:
        """The lines of some statements, with each outermost seam as one call."""
        spans = {stmt.span for stmt in stmts}
        inside = [s for s in seams if {x.span for x in s.body} <= spans]
        outer = _outermost(inside)
        calls = {}
        skipped = set()
        for seam in outer:
            members = {stmt.span for stmt in seam.body}
            places = [k for k, stmt in enumerate(stmts) if stmt.span in members]
            self._contiguous(seam, stmts[places[0] : places[-1]], members)
            calls[stmts[places[-1]].span] = seam
            skipped |= members
        lines: list[str] = []
        run: list[Stmt] = []
        for stmt in stmts:
            if stmt.span not in skipped:
                run.append(stmt)
            elif stmt.span in calls:
                lines += body.lines(run) + self._seam_call(calls[stmt.span], body)
                run = []
        return lines + body.lines(run)

    def _seam_call(self, seam: Seam, body: Body) -> list[str]:
        targets = ", ".join(body.name(name) for name in seam.targets)
        sources = [body.name(name) for name in seam.sources]
        same = [*seam.slots, *seam.variants, *seam.params]
        named = {name: body.name(name) for name in same}
        named["record"] = "record"
        hooks = [other.name for other in self._inside(seam)]
        hooks += [s.name for s in self.structure.slots if s.inner and s.name in seam.slots]
        named.update({f"{name}_with": f"{name}_with" for name in hooks})
        return [
            f"if {seam.name}_with is None:",
            f"    {targets} = {call(self.functions[seam.name], *sources, **named)}",
            "else:",
            f"    {targets} = {call(f'{seam.name}_with', *sources)}",
        ]

    def _inside(self, seam: Seam) -> list[Seam]:
        """Seams that lie within another."""
        members = {stmt.span for stmt in seam.body}
        order = {s.name: k for k, s in enumerate(self.structure.seams)}
        return [
            other
            for other in self.structure.seams
            if other is not seam
            and {stmt.span for stmt in other.body} <= members
            and (len(other.body) < len(seam.body) or order[other.name] > order[seam.name])
        ]

    def _contiguous(self, seam: Seam, stmts: Sequence[Stmt], members: set[Span]) -> None:
        """One call stands where the seam ends, so nothing before may read what it makes."""
        made = set(_defined_names(s for s in stmts if s.span in members))
        for stmt in stmts:
            if stmt.span not in members and made & reads(stmt):
                raise Unsupported(
                    f"the seam `{seam.name}`, whose values are read before its end", seam.span
                )

    def _shape(self, name: str) -> Shape:
        value = self.types.get(name)
        return value.shape if isinstance(value, Tensor) else ()


def _outermost(seams: Sequence[Seam]) -> list[Seam]:
    """Seams not inside another; two that cross have no generator."""
    ordered = sorted(seams, key=lambda seam: -len(seam.body))
    out: list[Seam] = []
    for seam in ordered:
        members = {stmt.span for stmt in seam.body}
        crossing = [o for o in out if members & {stmt.span for stmt in o.body}]
        if not crossing:
            out.append(seam)
        elif not any(members <= {stmt.span for stmt in o.body} for o in crossing):
            raise Unsupported(
                f"seams that cross: `{seam.name}` and `{crossing[0].name}`", seam.span
            )
    return out


def _defined_names(stmts: Iterable[Stmt]) -> list[str]:
    out: list[str] = []
    for stmt in stmts:
        match stmt:
            case Let(name=name):
                out.append(name)
            case Each(index=index, body=body):
                out += [index, *_defined_names(body)]
            case Scan(step=step, carries=carries, body=body):
                out += [step, *(name for name, _ in carries), *_defined_names(body)]
    return out

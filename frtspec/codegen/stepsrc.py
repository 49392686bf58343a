"""A rung's own steps as methods: what is prepared at bind, and a call of several entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from frtspec.codegen import condsrc
from frtspec.codegen.arithmetic import Emulation
from frtspec.codegen.cut import names_in, without_unread
from frtspec.codegen.exprsrc import Lowering
from frtspec.codegen.formats import QUANTISED, dequantize_text, quantised
from frtspec.codegen.names import DTYPES, RESERVED, free
from frtspec.codegen.pysrc import PRIMARY, Py, call, docstring, pyrepr
from frtspec.codegen.rungops import lowerings
from frtspec.codegen.signatures import Function
from frtspec.codegen.sizesrc import Sizes
from frtspec.codegen.unsupported import Unsupported
from frtspec.dims import Poly
from frtspec.ir.decl import Port, Rung, Slot, Step
from frtspec.ir.expr import Expr, IsPresent, Let, Op, Ref, Stmt
from frtspec.ir.lowering import poly_text
from frtspec.ir.stepops import LITERALS
from frtspec.ir.walk import conditions, parts, reads

if TYPE_CHECKING:
    from frtspec.codegen.rungsrc import MemberExpressions, RungMethods


class _Unrounded(Emulation):
    """Values of the reference for a kernel: the steps say what they are rounded to."""

    def written(self, name: str) -> bool:
        return False


@dataclass
class StepMethods:
    """Builds the methods of one rung. ``locals``: step's name -> the Python name."""

    rungs: RungMethods
    rung: Rung
    locals: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        names = dict.fromkeys(n for s in self.rung.steps for n in s.names if n != "_")
        taken = {*RESERVED, *self.rungs.cut.sources}
        self.locals = {name: free(name, taken) for name in names}

    # ------------------------------------------------------------ the call

    def call(self, name: str) -> Function:
        sizes = self.sizes(self.rungs.sizes().arguments)
        first, known = self.reference(sizes)
        at = Py(f"{self.rungs.cut.sources[0]}.device")
        slots = {slot.name: f"self.{slot.name}" for slot in self.rungs.structure.slots}
        source = self.source({**slots, **self.locals, **known}, sizes, at)
        emulation = Emulation(self.rungs.structure, self.rungs.impl, self.rungs.cut)
        body = self.rungs.body(source, emulation, ())
        body.optional = {**body.optional, **self.unsure()}
        lines = [*first, *body.lines(self.lets(self.rung.steps, known))]
        rungs = self.rungs
        told = [f"{local} = self.{local}" for local in sizes.asked]
        rungs.asked |= sizes.asked
        absent = rungs.absent_inputs(sizes)
        absent += [f"{self.locals.get(n, n)}: Tensor | None = None" for n in rungs.maybe()]
        results = [self.locals.get(target, target) for target in rungs.cut.targets]
        lead = [*sizes.lines(), *told, *absent]
        typed = self.typed(lines, absent)
        return rungs.function(
            name, "The steps of a kernel's call", [*lead, *typed, f"return {', '.join(results)}"]
        )

    def unsure(self) -> dict[str, str | None]:
        """What a step finds None in some variants, with what it exists for: outputs, and
        repeated slots, which are kept end to end."""
        structure = self.rungs.structure
        # A pack may have the name of an output: what steps read by it is the pack.
        maybe = set(self.rungs.maybe()) - {pack.name for pack in self.rungs.impl.packs}
        outputs = [port for port in structure.outputs if port.name in maybe]
        slots = [slot for slot in structure.slots if slot.index and (slot.optional or slot.when)]
        items: list[Port | Slot] = [*outputs, *slots]
        return {i.name: None if i.when is None else condsrc.spoken(i.when) for i in items}

    def typed(self, lines: Sequence[str], absent: Sequence[str]) -> list[str]:
        """The lines with the types of outputs: entries of a package have none."""
        out = list(lines)
        for target in reversed(self.rungs.cut.targets):
            local = self.locals.get(target, target)
            kind = "tuple[Tensor, ...]" if target in self.rungs.cut.repeated else "Tensor"
            head = f"{local} = "
            first = next((k for k, line in enumerate(out) if line.startswith(head)), None)
            if any(line.startswith(f"{local}:") for line in absent):
                continue
            if first is not None:
                out[first] = f"{local}: {kind} = {out[first].removeprefix(head)}"
            elif not any(line.startswith(f"{local} = ") for line in out):
                out.insert(0, f"{local}: {kind}")
        return out

    def read(self) -> set[str]:
        """Every name that the steps read, also through values of the reference."""
        values = [part for step in self.rung.steps for part in step_parts(step)]
        names = {value.name for value in values if isinstance(value, Ref)}
        conds = [step.when for step in self.rung.steps]
        names |= {t.name for when in conds for t in conditions(when) if isinstance(t, IsPresent)}
        known = tuple(v.name for v in values if isinstance(v, Ref) and v.kind == "reference")
        if not known:
            return names
        body = without_unread(_for(known, self.rungs.cut.body), known)
        return names.union(*map(reads, body))

    def lets(self, steps: Sequence[Step], known: Mapping[str, str]) -> list[Let]:
        """Steps as definitions; several results are one target with commas."""
        out = []
        for step in steps:
            value = step.value
            if isinstance(value, Ref) and (known.get(value.name),) == self.targets(step):
                continue  # an output that the lines before have made already
            out.append(self.let(step, ", ".join(self.targets(step))))
        return out

    def targets(self, step: Step) -> tuple[str, ...]:
        return tuple(self.locals.get(name, name) for name in step.names)

    def let(self, step: Step, target: str) -> Let:
        return Let(
            "let", target, None, step.value, step.when, step.otherwise, step.rebinds, step.span
        )

    def reference(self, sizes: Sizes) -> tuple[list[str], dict[str, str]]:
        """Lines that compute the values of the reference which steps read, and their names."""
        values = [part for step in self.rung.steps for part in step_parts(step)]
        refs = [v for v in values if isinstance(v, Ref) and v.kind == "reference"]
        names = tuple(dict.fromkeys(ref.name for ref in refs))
        if not names:
            return [], {}
        rungs = self.rungs
        body = without_unread(_for(names, rungs.cut.body), names)
        cut = replace(rungs.cut, body=body, targets=names)
        flow = _Unrounded(rungs.structure, rungs.impl, cut)
        lines = flow.lines()
        missing = [name for name in names if name not in flow.defined]
        if missing:
            raise Unsupported(
                f"`{missing[0]}`, which the variants served do not have,", self.rung.span
            )
        named = flow.names()
        source = rungs.expressions(named, sizes, lowerings(flow))
        text = rungs.body(source, flow, lines).lines(lines)
        found = {
            name: named.get(result, result)
            for name, result in zip(names, flow.results, strict=True)
        }
        return text, found

    # ------------------------------------------------------------ what is prepared

    def prepare(self, name: str) -> Function:
        """Runs once, when the seat is bound, and keeps what it makes as buffers."""
        sizes = self.sizes(())
        slots = self.given()
        source = self.source({}, sizes, Py("self.device"))
        body = self.rungs.body(source, None, ())
        lines: list[str] = []
        for step in self.rung.prepared:
            if not step.several:
                lines += _kept(body.lines([self.let(step, step.names[0])]), step.names[0])
                continue
            local = [n if n == "_" else f"new_{n}" for n in step.names]
            lines += body.lines([self.let(step, ", ".join(local))])
            lines += [
                f"self.keep({pyrepr(n)}, {new})"
                for n, new in zip(step.names, local, strict=True)
                if n != "_"
            ]
        told = [f"{local} = self.{local}" for local in sizes.asked]
        self.rungs.asked |= sizes.asked
        read = [f"{slot} = self.given[{pyrepr(slot)}]" for slot in slots]
        made = ", ".join(n for s in self.rung.prepared for n in s.names if n != "_")
        doc = f"Once, when a seat is bound: {made}."
        return Function(
            name, ("self",), "None", tuple(docstring(doc, depth=2)), (*read, *told, *lines)
        )

    def given(self) -> list[str]:
        """Slots that preparing reads, as the host holds them."""
        values = [part for step in self.rung.prepared for part in step_parts(step)]
        return list(
            dict.fromkeys(v.name for v in values if isinstance(v, Ref) and v.kind == "slot")
        )

    # ------------------------------------------------------------ source

    def sizes(self, arguments: Sequence[object]) -> Sizes:
        cut = self.rungs.cut
        used = {*names_in(cut), *RESERVED, *self.locals.values(), *self.rungs.held_names()}
        return Sizes(list(arguments), frozenset(used), self.rung.span, asks=True)  # type: ignore[arg-type]

    def source(self, names: dict[str, str], sizes: Sizes, device: Py) -> MemberExpressions:
        extra = {**_lowerings(device, sizes), "values": self.values}
        return self.rungs.expressions(names, sizes, extra)

    def values(self, op: Op, args: list[Py]) -> Py:
        """A pack read back."""
        held = op.args[0]
        pack = next(
            p for p in self.rungs.impl.packs if isinstance(held, Ref) and p.name == held.name
        )
        form = quantised(pack)
        return args[0].method("float") if form is None else Py(dequantize_text(pack, form), PRIMARY)


def _for(names: Sequence[str], body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The reference without the outputs that nobody asked for: the steps make their own."""
    return tuple(
        stmt
        for stmt in body
        if not isinstance(stmt, Let) or stmt.kind != "yield" or stmt.name in names
    )


def step_parts(step: Step) -> list[Expr]:
    """The values of a step and everything in them."""
    values = [step.value] if step.otherwise is None else [step.value, step.otherwise]
    return [part for value in values for part in parts(value)]


def _kept(lines: Sequence[str], name: str) -> list[str]:
    """``w16 = E`` as ``self.keep("w16", E)``, inside a condition too."""
    head = f"{name} = "
    out = []
    for line in lines:
        text = line.lstrip()
        indent = line[: len(line) - len(text)]
        made = text.removeprefix(head)
        out.append(line if made == text else f"{indent}self.keep({pyrepr(name)}, {made})")
    return out


def _lowerings(device: Py, sizes: Sizes) -> dict[str, Lowering]:
    """Ops of steps as Python."""

    def entry(op: Op, args: list[Py]) -> Py:
        keywords = cast(tuple[str, ...], op.attr("keywords"))
        shown = [f"{k}={arg}" if k else arg.text for k, arg in zip(keywords, args, strict=True)]
        return call(f"self.kernel.{op.attr('name')}", *shown)

    def filled(op: Op, args: list[Py]) -> Py:
        dtype = DTYPES[str(op.attr("dtype"))]
        return call(f"torch.{op.op}", *shape(op), dtype=dtype, device=device)

    def shape(op: Op) -> list[str]:
        polys = cast(tuple[Poly, ...], op.attr("sizes"))
        return [
            poly_text(p.subs({n: Poly.symbol(sizes(n)) for n in p.symbols()})).text for p in polys
        ]

    def codes(op: Op, args: list[Py]) -> Py:
        form = QUANTISED.get(str(op.attr("format")))
        if form is None or form.codes is None:
            raise Unsupported(f"codes in {op.attr('format')} between entries", op.span)
        return call(f"numerics.{form.codes}", *args)

    def rows(op: Op, args: list[Py]) -> Py:
        return call("torch.split", args[0], f"self.{op.attr('pack')}_rows", dim="-1")

    def transpose(op: Op, args: list[Py]) -> Py:
        pair = cast(tuple[int, ...], op.attr("pair", (-2, -1)))
        return (
            args[0].attr("mT")
            if {*pair} == {-1, -2}
            else args[0].method("transpose", *map(str, pair))
        )

    return {
        "entry": entry,
        "zeros": filled,
        "ones": filled,
        "expand": lambda op, args: args[0].method("expand", *shape(op)),
        "contiguous": lambda op, args: args[0].method("contiguous"),
        "int32": lambda op, args: args[0].method("int"),
        "clone": lambda op, args: args[0].method("clone"),
        "empty_like": lambda op, args: call("torch.empty_like", *args),
        "codes": codes,
        "swizzled": lambda op, args: call("numerics.swizzled", *args),
        "number": lambda op, args: args[0].method("item"),
        "split_rows": rows,
        "updates": lambda op, args: args[0],
        "transpose": transpose,
    }


def member(ref: Ref) -> Py:
    """A reference of a step to what the impl holds, or a literal."""
    match ref.kind:
        case "pack" | "prepared":
            return Py(f"self.{ref.name}", PRIMARY)
        case "pack_scale" | "pack_tensor_scale":
            return Py(f"self.{ref.name}{ref.kind.removeprefix('pack')}", PRIMARY)
        case "literal":
            return Py(LITERALS[ref.name])
        case "text":
            return Py(pyrepr(ref.name))
        case _:
            raise AssertionError(f"{ref.kind} is held by nobody")

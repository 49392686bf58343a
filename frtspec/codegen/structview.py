"""What the structure template needs: shapes, the reference and its seams, the facts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from frtspec.codegen import condsrc, dimsrc
from frtspec.codegen.dimsrc import DimNames
from frtspec.codegen.homes import Homes
from frtspec.codegen.imports import import_lines
from frtspec.codegen.names import structure_module
from frtspec.codegen.patternsrc import names_used, pattern_rows
from frtspec.codegen.pysrc import Py, call, pyrepr, text_literal, told_lines, wrapped
from frtspec.codegen.refsrc import References
from frtspec.codegen.signatures import Function, shaped
from frtspec.dims import Constraint, Shape
from frtspec.ir.decl import Gate, MetricBound, Part, Port, Rule, Seam, Slot, Structure


@dataclass(frozen=True)
class StructureView:
    """``functions`` are the seams in order, then the reference; ``fields`` the keyword
    arguments of ``StructureSpec`` that are not constants of the module."""

    name: str
    version: int
    path: str
    doc: tuple[str, ...]
    summary: tuple[str, ...]
    imports: tuple[str, ...]
    source_digest: str
    contract_digest: str
    dims: str | None
    shapes: tuple[str, ...]
    variants: tuple[str, ...]
    functions: tuple[Function, ...]
    seams: tuple[str, ...]
    checks: tuple[str, ...]
    patterns: tuple[str, ...]
    rules: tuple[str, ...]
    fields: tuple[str, ...]


def structure_view(structure: Structure, homes: Homes | None = None) -> StructureView:
    """The view of a structure. Raises ``Unsupported`` for what has no generator.

    ``homes``: where the structures in its slots are; may be None where it has none.
    """
    modules = inner_modules(structure, homes)
    references = References(structure, {n: module for n, (_, module) in modules.items()})
    functions = [references.seam(seam) for seam in structure.seams]
    functions.append(references.reference())
    names = DimNames.fresh()
    shapes = [f"{pyrepr(name)}: {names.shape(shape)}" for name, shape in _shapes(structure)]
    fields = _fields(structure, references, names)
    symbols = _symbols(structure)
    if symbols:
        names.functions.add("dims")
    seams = tuple(_seam_row(seam, references) for seam in structure.seams)
    patterns = pattern_rows(structure)
    rules = tuple(rule_row(rule, names) for rule in structure.rules)
    checks = tuple(_digest_checks(structure, modules, homes))
    return StructureView(
        name=structure.name,
        version=structure.version,
        path=structure.origin.path,
        doc=tuple(told_lines(structure.doc, structure.evidence)),
        summary=tuple(_summary(structure, references)),
        imports=tuple(
            _imports(
                functions,
                [*seams, *fields, *patterns, *rules],
                names,
                checks,
                _inner_imports(modules.values()),
            )
        ),
        checks=checks,
        source_digest=structure.origin.source_digest,
        contract_digest=structure.origin.contract_digest,
        dims=dims_line(symbols),
        shapes=tuple(shapes),
        variants=tuple(f"{pyrepr(v.name)}: {pyrepr(v.values)}" for v in structure.variants),
        functions=tuple(functions),
        seams=seams,
        patterns=patterns,
        rules=rules,
        fields=tuple(fields),
    )


# ---------------------------------------------------------------- dims and shapes


def _shapes(structure: Structure) -> list[tuple[str, Shape]]:
    values: list[Port | Slot] = [*structure.inputs, *structure.slots, *structure.outputs]
    return [(value.name, value.shape) for value in values if value.shape is not None]


def _rules(structure: Structure) -> list[Constraint]:
    return [rule.test for rule in structure.rules if isinstance(rule.test, Constraint)]


def _symbols(structure: Structure) -> list[str]:
    """Symbols in the order the spec declares their dims."""
    used = dimsrc.symbols([shape for _, shape in _shapes(structure)], _rules(structure))
    order = {name: k for k, name in enumerate(structure.dims)}
    return sorted(used, key=lambda symbol: order.get(symbol, len(order)))


def dims_line(symbols: Sequence[str]) -> str | None:
    if not symbols:
        return None
    names = ", ".join(dimsrc.symbol_name(symbol) for symbol in symbols)
    target = f"({names},)" if len(symbols) == 1 else names
    return f"{target} = {call('dims', *(pyrepr(symbol) for symbol in symbols))}"


# ---------------------------------------------------------------- text


def _summary(structure: Structure, references: References) -> list[str]:
    """Inputs, slots and outputs with their shapes, and what the shapes leave unsaid."""
    optional = references.optional()

    def shown(values: Iterable[Port | Slot]) -> str:
        return ", ".join(
            shaped(v.name, v.index, v.shape, v.name in optional, v.dtype)
            for v in values
            if v.shape is not None
        )

    lines: list[str] = []
    rows = (
        ("inputs", structure.inputs),
        ("slots", structure.slots),
        ("outputs", structure.outputs),
    )
    for title, values in rows:
        if values:
            lines += wrapped(shown(values), f"    {title:<9}", " " * 13)
    if structure.parts:
        lines += wrapped("; ".join(map(_signature, structure.parts)), f"    {'parts':<9}", " " * 13)
    for gate in structure.gates:
        lines += wrapped(f"{gate.kind} {_judged(gate)}", f"    {'gate':<9}", " " * 13)
    conventions = wrapped(_conventions(structure))
    return [*lines, "", *conventions] if conventions else lines


def _signature(part: Part) -> str:
    """``attn (q, k, v) -> o``: what stays the host's, and how it is called."""
    return f"{part.name} ({', '.join(part.params)}) -> {', '.join(part.results)}"


def _results(part: Part, structure: Structure) -> tuple[int | str, ...]:
    """What each result of a part looks like: an argument, by position, or an output."""
    outputs = [port.name for port in structure.outputs]
    return tuple(
        part.params.index(r) if r in part.params else r if r in outputs else 0 for r in part.results
    )


def _judged(gate: Gate) -> str:
    """``on real_distribution: cosine >= 0.999, max_abs``: a gate as the spec says it."""
    where = [f"{word} {name}" for word, name in (("on", gate.on), ("per", gate.per)) if name]
    wanted = [f"{m.metric} {m.op} {m.bound}" if m.op else m.metric for m in gate.metrics]
    including = f" including {gate.including}" if gate.including else ""
    against = f", against {', '.join(gate.against)}" if gate.against else ""
    return f"{' '.join(where)}: {', '.join(wanted)}{including}{against}".removeprefix(": ")


def _conventions(structure: Structure) -> str:
    said = []
    folded = dict.fromkeys(
        str(axis).removeprefix("rows ")
        for _, shape in _shapes(structure)
        for axis in shape
        if axis.rows
    )
    if folded:
        names = " and ".join(f"`{name}`" for name in folded)
        said.append(
            f"{names} {'stands' if len(folded) == 1 else 'stand'} for any number of leading axes."
        )
    if any(slot.shape is not None and len(slot.shape) == 2 for slot in structure.slots):
        said.append("Weights are `in_out`: `x @ w`.")
    for index in structure.indexes:
        said.append(f"`{index.name}` counts {index.lo} to {index.hi} of a repeated value.")
    return " ".join(said)


def _imports(
    functions: Sequence[Function],
    facts: Sequence[str],
    names: DimNames,
    checks: Sequence[str],
    generated: Sequence[str],
) -> list[str]:
    code = "\n".join(line for f in functions for line in (*f.parameters, *f.body))
    runtime = {"StructureSpec", "check_abi", "ops", *(["require_digest"] if checks else [])}
    text = "\n".join(facts)
    known = ("Bound", "InnerSpec", "SeamSpec", "Wire", "qualify", "require")
    runtime |= {name for name in known if re.search(rf"\b{name}\(", text)}
    runtime |= names_used(tuple(facts))
    return import_lines(code, names.functions, runtime, generated)


# ---------------------------------------------------------------- facts


def _fields(structure: Structure, references: References, names: DimNames) -> list[str]:
    """Keyword arguments of ``StructureSpec``, in its order."""
    optional = references.optional()
    params = {p.name: p.default for p in structure.params if p.default is not None}
    against = [name for g in structure.gates if g.kind == "latency" for name in g.against]
    fields = [
        f"inputs={pyrepr(references.inputs())}",
        f"outputs={pyrepr(tuple(port.name for port in structure.outputs))}",
        f"optional={pyrepr(tuple(optional))}",
        f"slots={pyrepr(tuple(slot.name for slot in structure.slots))}",
        "shapes=SHAPES",
        "variants=VARIANTS" if structure.variants else "variants={}",
        f"params={pyrepr(params)}",
        f"points={pyrepr({p.name: p.kind for p in structure.every_point})}",
        "seams=SEAMS" if structure.seams else "seams={}",
        f"boundary_gate={boundary_bounds(structure)}",
        f"latency_against={pyrepr(tuple(dict.fromkeys(against)))}",
        "reference=reference",
    ]
    if structure.rules:
        fields.append("rules=RULES")
    if structure.parts:
        fields.append(f"parts={pyrepr({p.name: _results(p, structure) for p in structure.parts})}")
    inner = [_inner_row(slot, references, names) for slot in structure.slots if slot.inner]
    if inner:
        fields.append(f"inner={{{', '.join(inner)}}}")
    for name in ("updates", "aliases"):
        owned = {p.name: getattr(p, name) for p in structure.outputs if getattr(p, name)}
        fields += [f"{name}={pyrepr(owned)}"] if owned else []
    ports = (*structure.inputs, *structure.outputs)
    wires = [
        f"{pyrepr(p.name)}: {call('Wire', pyrepr(p.dtype), pyrepr(p.scale))}"
        for p in ports
        if p.scale
    ]
    if wires:
        fields.append(f"wires={{{', '.join(wires)}}}")
    plain: list[Port | Slot] = [*(p for p in ports if p.scale is None), *structure.slots]
    dtypes = {value.name: value.dtype for value in plain if value.dtype not in ("host", None)}
    if dtypes:
        fields.append(f"dtypes={pyrepr(dtypes)}")
    if references.sizes:
        fields.append(f"sizes={pyrepr(references.sizes)}")
    if structure.discover:
        fields.append("discover=DISCOVER")
    if structure.status.name == "imported":
        fields.append(f"imported={text_literal(structure.status.reason or 'not verified')}")
    return fields


def inner_modules(structure: Structure, homes: Homes | None) -> dict[str, tuple[str, str]]:
    """Slot -> (package, module) of the structure in it: ``flashrt_gen.structures``,
    ``decoder_ffn_v1``."""
    out = {}
    for slot in structure.slots:
        if slot.inner is not None and homes is not None:
            inner = homes.program.structures[slot.inner.name, slot.inner.version]
            package, _, module = homes.path(inner).rpartition(".")
            out[slot.name] = (package, module)
    return out


def _inner_imports(modules: Iterable[tuple[str, str]]) -> list[str]:
    by_package: dict[str, set[str]] = {}
    for package, module in modules:
        by_package.setdefault(package, set()).add(module)
    return [
        f"from {package} import {', '.join(sorted(names))}" for package, names in by_package.items()
    ]


def _digest_checks(
    structure: Structure, modules: Mapping[str, tuple[str, str]], homes: Homes | None
) -> list[str]:
    """Inner structures that another package holds have to be the ones meant here."""
    lines = []
    for slot in structure.slots:
        if slot.inner is None or homes is None:
            continue
        inner = homes.program.structures[slot.inner.name, slot.inner.version]
        if homes.shared(inner):
            module = modules[slot.name][1]
            lines.append(f'require_digest({module}.SPEC, "{inner.origin.contract_digest}")')
    return list(dict.fromkeys(lines))


def _inner_row(slot: Slot, references: References, names: DimNames) -> str:
    """One entry of ``inner=``: which spec, which seam, what is settled, its dims outside."""
    assert slot.inner is not None
    dims = ", ".join(f"{pyrepr(name)}: {names.outer(size)}" for name, size in slot.inner.dims)
    fields = (
        f"{references.modules[slot.name]}.SPEC",
        pyrepr(slot.inner.seam),
        pyrepr(dict(slot.inner.pins)),
        f"{{{dims}}}",
    )
    return f"{pyrepr(slot.name)}: {call('InnerSpec', *fields)}"


def _seam_row(seam: Seam, references: References) -> str:
    fields = {
        "name": pyrepr(seam.name),
        "sources": pyrepr(seam.sources),
        "targets": pyrepr(seam.targets),
        "slots": pyrepr(seam.slots),
        "points": pyrepr(seam.points),
        "variants": pyrepr(seam.variants),
        "params": pyrepr(seam.params),
        "gates": bounds_text(seam.gates),
        "call": references.functions[seam.name],
    }
    inner = ", ".join(f"{key}={value}" for key, value in fields.items())
    return f"{pyrepr(seam.name)}: SeamSpec({inner},)"


def rule_row(rule: Rule, names: DimNames) -> str:
    """``qualify(at_least(M * K * N, 200000000), form="fp8_static", …)``."""
    test = rule.test
    what = names.rule(test) if isinstance(test, Constraint) else names.measured(test)
    keywords: dict[str, Py | str] = {}
    if rule.form is not None:
        keywords["form"] = pyrepr(rule.form)
    if rule.when is not None:
        axes = {axis: f'v["{axis}"]' for axis in condsrc.axes(rule.when)}
        keywords["when"] = f"lambda v: {condsrc.condition(rule.when, axes)}"
        keywords["because"] = pyrepr(condsrc.spoken(rule.when))
    return call(rule.kind, what, **keywords).text


def boundary_bounds(structure: Structure) -> str:
    """The boundary gate as a tuple of ``Bound``."""
    return bounds_text([m for g in structure.gates if g.kind == "boundary" for m in g.metrics])


def bounds_text(metrics: Sequence[MetricBound]) -> str:
    """A tuple of ``Bound``."""
    rows = [
        call("Bound", *(pyrepr(v) for v in (m.metric, m.op, m.bound) if v is not None)).text
        for m in metrics
    ]
    return f"({', '.join(rows)}{',' if len(rows) == 1 else ''})"


def module_of(structure: Structure) -> str:
    """``structures.decoder_ffn_v1``, below the package."""
    return f"structures.{structure_module(structure)}"

"""The pages of the catalog, in Markdown: an overview, and one page a structure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from frtspec.diag.source import SourceFile, Span
from frtspec.dims import shape_text
from frtspec.docgen import maths
from frtspec.docgen.costs import Sizes, cost_section
from frtspec.docgen.flow import flow
from frtspec.docgen.markdown import code, first_sentence, names, table
from frtspec.docgen.pipepages import pipeline_page
from frtspec.docgen.stages import stage_flow
from frtspec.docgen.svg import draw
from frtspec.ir.decl import Binding, Impl, Pipeline, Port, Program, Rung, Scheme, Slot, Structure
from frtspec.ir.expr import Cond
from frtspec.sema.combos import combos

OVERVIEW = "catalog.md"
FOLDER = "catalog"

Key = tuple[str, int]

_RULES = {"require": "is refused", "qualify": "is kept where speed is judged"}


@dataclass(frozen=True)
class Catalog:
    """What the pages are made from."""

    program: Program
    sources: Mapping[str, SourceFile]
    sizes: Sequence[Sizes] = ()
    only: frozenset[str] | None = None
    """Spec files, as shown, whose declarations get pages; None: all."""

    def wanted(self, decl: Structure | Pipeline | Scheme | Binding) -> bool:
        return self.only is None or decl.origin.span.path in self.only


def pages(catalog: Catalog) -> dict[str, str]:
    """Path below the docs folder -> text, for every page and picture."""
    made = {OVERVIEW: overview(catalog)}
    for key, structure in catalog.program.structures.items():
        if not catalog.wanted(structure):
            continue
        title = f"Dataflow of {structure.name} version {structure.version}"
        picture = draw(flow(structure, catalog.sources), title, first_sentence(structure.doc))
        made[f"{FOLDER}/{stem(key)}.svg"] = picture
        made[f"{FOLDER}/{stem(key)}.md"] = structure_page(catalog, structure)
    for key, pipeline in catalog.program.pipelines.items():
        if not catalog.wanted(pipeline):
            continue
        title = f"Stages of {pipeline.name} version {pipeline.version}"
        picture = f"{stem(key)}.svg"
        drawn = draw(stage_flow(pipeline), title, first_sentence(pipeline.doc))
        made[f"{FOLDER}/{picture}"] = drawn
        page = pipeline_page(catalog.program, pipeline, catalog.sources, picture)
        made[f"{FOLDER}/{stem(key)}.md"] = page
    return made


def stem(key: Key) -> str:
    """``decoder_ffn_v1``: how a structure's files are called."""
    return f"{key[0]}_v{key[1]}"


# ---------------------------------------------------------------- overview


def overview(catalog: Catalog) -> str:
    """Every structure, impl, scheme and binding on one page."""
    program = catalog.program
    uses = {key: _bindings_of(program, key) for key in program.structures}
    structures = [
        (
            f"[`{name}` {version}]({FOLDER}/{stem((name, version))}.md)",
            first_sentence(s.doc),
            str(len(s.slots)),
            str(len(combos(s))),
            ", ".join(code(i.name) for i in _impls_of(program, (name, version))) or "none",
            str(len(uses[name, version])),
        )
        for (name, version), s in program.structures.items()
        if catalog.wanted(s)
    ]
    pipelines = [
        (
            f"[`{name}` {version}]({FOLDER}/{stem((name, version))}.md)",
            first_sentence(p.doc),
            names(stage.name for stage in p.stages),
            str(len(p.conform)),
        )
        for (name, version), p in program.pipelines.items()
        if catalog.wanted(p)
    ]
    schemes = [
        (code(s.name), first_sentence(s.doc), str(sum(r.use is not None for r in s.routes)))
        for s in program.schemes.values()
        if catalog.wanted(s)
    ]
    bindings = [
        (code(b.name), first_sentence(b.doc), _hosts(b), _seats(b), b.status.name)
        for b in program.bindings.values()
        if catalog.wanted(b)
    ]
    sections = [
        "# The catalog",
        (
            "Made by `frtspec docs` from the specs. A *combination* is one choice of variants and "
            "of what is given; every one of them is checked."
        ),
        *_section(
            "Structures",
            ("structure", "is", "weights", "combinations", "impls", "bindings"),
            structures,
        ),
        *_section("Pipelines", ("pipeline", "is", "stages", "rules"), pipelines),
        *_section("Schemes", ("scheme", "is", "routes"), schemes),
        *_section("Bindings", ("binding", "is", "hosts", "seats", "status"), bindings),
    ]
    return "\n\n".join(sections) + "\n"


def _section(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"## {title}", table(head, rows)] if rows else []


def _hosts(binding: Binding) -> str:
    hosts = (f"{h.package} {h.versions or ''}".strip() for h in binding.hosts)
    return ", ".join(code(host) for host in hosts)


def _seats(binding: Binding) -> str:
    names = {
        f"{seat.structure[0]}{'.' + seat.seam if seat.seam else ''}"
        for group in binding.groups
        for seat in group.seats
    }
    return ", ".join(code(name) for name in sorted(names))


# ---------------------------------------------------------------- one structure


def structure_page(catalog: Catalog, structure: Structure) -> str:
    """Formula, drawing, boundary, variants, points, seams, gates, cost, who uses it."""
    key = (structure.name, structure.version)
    made = _Page(catalog, structure, key)
    sections = [
        f"# {structure.name} version {structure.version}",
        structure.doc.strip(),
        f"[All structures](../{OVERVIEW})",
        f"![Dataflow of {structure.name}]({stem(key)}.svg)",
        (
            "Orange boxes are points, dashed grey ones weights; a dashed line carries a value in some "
            "combinations only."
        ),
        "## Formula",
        f"```math\n{maths.formulas(structure.reference)}\n```",
        "## Boundary",
        made.boundary(),
        *made.variants(),
        *made.points(),
        *made.judged(),
        *cost_section(structure, catalog.sizes),
        *made.served(),
    ]
    if structure.evidence:
        sections += ["## Evidence", *(text.strip() for text in structure.evidence)]
    return "\n\n".join(sections) + "\n"


@dataclass(frozen=True)
class _Page:
    catalog: Catalog
    structure: Structure
    key: Key

    def boundary(self) -> str:
        s = self.structure
        rows = [_row(port.direction, port) for port in (*s.inputs, *s.outputs)]
        rows += [_row("slot", slot) for slot in s.slots]
        rows += [
            ("part", code(part.name), f"({', '.join(part.params)}) -> {', '.join(part.results)}",
             "the host's", _when(part.when))
            for part in s.parts
        ]  # fmt: skip
        rows += [
            ("param", code(param.name), "", "" if param.default is None else str(param.default), "")
            for param in s.params
        ]
        return table(("", "name", "shape", "dtype or default", "there"), rows)

    def variants(self) -> list[str]:
        s = self.structure
        if not s.variants:
            return []
        rows = [
            (code(v.name), ", ".join(map(code, v.values)), code(v.default) if v.default else "")
            for v in s.variants
        ]
        number = len(combos(s))
        left_out = [f"`{maths.condition(cond)}`" for cond in s.excluded]
        note = f"{number} combinations" + (
            f"; none where {' or '.join(left_out)}." if left_out else "."
        )
        return ["## Variants", table(("variant", "values", "default"), rows), note]

    def points(self) -> list[str]:
        s = self.structure
        made: list[str] = []
        rows: list[tuple[str, ...]]
        if s.points:
            rows = [(code(p.name), p.kind, _when(p.when)) for p in s.points]
            made += ["## Points", table(("point", "kind", "there"), rows)]
        if s.seams:
            rows = [
                (
                    code(seam.name),
                    f"{names(seam.sources)} to {names(seam.targets)}",
                    names(seam.slots),
                    names(seam.points),
                    ", ".join(
                        f"{g.metric} {g.op} {g.bound}" if g.op else g.metric for g in seam.gates
                    ),
                )
                for seam in s.seams
            ]
            head = ("seam", "cut", "weights inside", "points inside", "gate")
            made += ["## Seams", table(head, rows)]
        return made

    def judged(self) -> list[str]:
        """Gates and rules, in the words of the spec."""
        s = self.structure
        made = []
        if s.gates:
            gates = "\n".join(self.text(gate.span) for gate in s.gates)
            made += ["## Gates", f"```frt\n{gates}\n```"]
        if s.rules:
            rows = [
                (
                    code(self.text(rule.span)),
                    _RULES[rule.kind],
                    "" if rule.form is None else code(rule.form),
                    _when(rule.when),
                )
                for rule in s.rules
            ]
            made += ["## Rules", table(("rule", "a seat that breaks it", "for", "there"), rows)]
        return made

    def served(self) -> list[str]:
        program = self.catalog.program
        impls = [
            (
                code(impl.name),
                code(impl.seam) if impl.seam else "whole",
                ", ".join(dict.fromkeys(rung.kind for rung in _rungs(impl))),
                f"chains in {code(impl.wire)}"
                if impl.wire
                else names(scheme.name for scheme in _schemes_of(program, self.key, impl)),
                _own_gates(impl),
                first_sentence(impl.doc),
            )
            for impl in _impls_of(program, self.key)
        ]
        hosts = [
            (code(binding.name), _hosts(binding), code(seat))
            for binding, seat in _bindings_of(program, self.key)
        ]
        made = ["## Who serves it"]
        made.append(
            table(("impl", "seam", "rungs", "schemes", "on random data", "is"), impls)
            if impls
            else "No impl yet: every scheme keeps it on the host."
        )
        made.append("## Who binds it")
        made.append(table(("binding", "hosts", "seat"), hosts) if hosts else "No binding yet.")
        return made

    def text(self, span: Span) -> str:
        return self.catalog.sources[span.path].text[span.start : span.end]


def _row(role: str, item: Port | Slot) -> tuple[str, ...]:
    index = f"[{item.index}]" if item.index else ""
    shape = "" if item.shape is None else shape_text(item.shape)
    there = _when(item.when)
    facts = [item.dtype or "host's"]
    if isinstance(item, Slot) and item.inner is not None:
        inner = item.inner
        facts = [f"structure {inner.name}{'.' + inner.seam if inner.seam else ''} {inner.version}"]
    if isinstance(item, Port):
        facts += [f"= {item.default}"] if item.default else []
        facts += [f"updates {item.updates}"] if item.updates else []
        facts += [f"aliases {item.aliases}"] if item.aliases else []
    if item.optional:
        there = f"{there}; may be absent" if there else "may be absent"
    return (role, code(item.name + index), code(shape) if shape else "", ", ".join(facts), there)


def _when(cond: Cond | None) -> str:
    return "" if cond is None else f"when {maths.condition(cond)}"


# ---------------------------------------------------------------- who uses what


def _impls_of(program: Program, key: Key) -> list[Impl]:
    return [impl for impl in program.impls.values() if impl.structure == key]


def _own_gates(impl: Impl) -> str:
    """Bounds of an impl's own, with the reason; of most, those of the structure hold."""
    bounds = [
        f"{gate.kind} {code(f'{m.metric} {m.op} {m.bound}')}"
        for gate in impl.gates
        for m in gate.metrics
    ]
    reason = f" ({first_sentence(impl.evidence[0])})" if impl.evidence else ""
    return ", ".join(bounds) + reason if bounds else "as the structure asks"


def _rungs(impl: Impl) -> Iterable[Rung]:
    yield from impl.rungs
    for band in impl.bands:
        yield from band.rungs


def _schemes_of(program: Program, key: Key, impl: Impl) -> list[Scheme]:
    return [
        scheme
        for scheme in program.schemes.values()
        if any(
            (r.structure, r.structure_version, r.seam, r.use) == (*key, impl.seam, impl.name)
            for r in scheme.routes
        )
    ]


def _bindings_of(program: Program, key: Key) -> list[tuple[Binding, str]]:
    return [
        (binding, seat.path.text)
        for binding in program.bindings.values()
        for group in binding.groups
        for seat in group.seats
        if seat.structure == key
    ]

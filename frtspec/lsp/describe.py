"""What is shown of a name: its line in the spec, its doc, formula, sizes and cost."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from frtspec.devices import DEVICES
from frtspec.dims import DimError, shape_text
from frtspec.docgen import maths
from frtspec.docgen.costs import Sizes, short
from frtspec.docgen.markdown import first_sentence
from frtspec.ir.decl import Binding, Impl, Pipeline, Port, Scheme, Seam, Slot, Structure
from frtspec.ir.expr import Let
from frtspec.ir.ops import OPS
from frtspec.ir.walk import statements
from frtspec.lsp.occurrences import Occurrence, Symbol
from frtspec.lsp.positions import offset, span_range
from frtspec.lsp.workspace import Document, Workspace
from frtspec.sema.combos import combos
from frtspec.sema.cost import Cost, cost

DEVICE = DEVICES["h200"]
ROWS = 64
LONGEST = 160


def outline(document: Document, one: Occurrence) -> str:
    """The line that defines a name, or the head of its block."""
    if one.whole is None:
        return ""
    text = document.source.text[one.whole.start : one.whole.end]
    if one.kind in ("structure", "pipeline", "impl", "scheme", "binding", "seat", "stage", "index"):
        text = text.split("{", 1)[0]
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


class Describer:
    """Makes hovers. ``sizes``: of models, for costs; costs are worked out once a structure."""

    def __init__(self, workspace: Workspace, sizes: tuple[Sizes, ...] = ()) -> None:
        self.ws = workspace
        self.sizes = sizes
        self._costs: dict[tuple[int, str | None], Cost] = {}

    def hover(self, document: Document, at: types.Position) -> types.Hover | None:
        one = document.at(offset(document.source, at))
        if one is None:
            return None
        text = "\n\n".join(part for part in self.parts(one) if part)
        if not text:
            return None
        content = types.MarkupContent(types.MarkupKind.Markdown, text)
        return types.Hover(content, span_range(document.source, one.span))

    def parts(self, one: Occurrence) -> Iterator[str]:
        """Paragraphs of Markdown about a name."""
        symbol = self.ws.settled(one.symbol)
        if symbol[0] == "op":
            op = OPS[str(symbol[1])]
            names = ", ".join(f"{p.name}?" if p.optional else p.name for p in op.params)
            yield f"```frt\n{op.name}({names})\n```"
            yield f"{op.doc}. Revision {op.revision}."
            return
        for definer, defining in self.ws.define(symbol)[:1]:
            yield f"```frt\n{outline(definer, defining)}\n```"
        yield from self.meaning(symbol)

    def meaning(self, symbol: Symbol) -> Iterator[str]:
        program = self.ws.program
        match symbol:
            case ("structure", str(name), int(version)):
                structure = program.structures.get((name, version))
                if structure is not None:
                    yield from self.structure(structure)
            case ("pipeline", str(name), int(version)):
                pipeline = program.pipelines.get((name, version))
                if pipeline is not None:
                    yield from _pipeline(pipeline)
            case ("impl", str(name), int(version), seam, str(form)):
                impl = program.impls.get((name, version, seam, form))  # type: ignore[arg-type]
                if impl is not None:
                    yield from _impl(impl)
            case ("scheme", str(name)):
                if name in program.schemes:
                    yield from _scheme(program.schemes[name])
            case ("binding", str(name)):
                if name in program.bindings:
                    yield from _binding(program.bindings[name])
            case ("member", ("structure", str(name), int(version)), str(member)):
                structure = program.structures.get((name, version))
                if structure is not None:
                    yield from _member(structure, member)
            case ("seam", ("structure", str(name), int(version)), str(member)):
                structure = program.structures.get((name, version))
                seams = () if structure is None else structure.seams
                for seam in seams:
                    if seam.name == member and structure is not None:
                        yield from self.seam(structure, seam)
            case ("value", ("structure", str(name), _), str(axis), _):
                yield f"A value of variant `{axis}` of `{name}`."

    # ------------------------------------------------------------ structures

    def structure(self, structure: Structure) -> Iterator[str]:
        yield structure.doc.strip()
        yield f"```math\n{maths.formulas(structure.reference)}\n```"
        yield f"Dims: {', '.join(f'`{dim}`' for dim in _dims(structure))}."
        yield self.costs(structure, None)

    def seam(self, structure: Structure, seam: Seam) -> Iterator[str]:
        yield (
            f"Cuts `{structure.name}` from {', '.join(f'`{n}`' for n in seam.sources)} to "
            f"{', '.join(f'`{n}`' for n in seam.targets)}; inside: "
            f"{', '.join(f'`{n}`' for n in (*seam.slots, *seam.points)) or 'no slots or points'}."
        )
        yield f"```math\n{maths.formulas(seam.body)}\n```"
        yield self.costs(structure, seam)

    def costs(self, structure: Structure, seam: Seam | None) -> str:
        """Operations and bytes as formulas, and the roofline at the sizes of models."""
        key = (id(structure), None if seam is None else seam.name)
        found = self._costs.get(key)
        if found is None:
            found = cost(structure, next(iter(combos(structure))), seam=seam)
            self._costs[key] = found
        lines = [
            (
                f"Operations `{found.flops}`; bytes `{found.least}` at least, of these weights "
                f"`{found.weights}` (16 bits)."
            )
        ]
        for sizes in [one for one in self.sizes if one.of(structure)][:2]:
            try:
                at = found.at({**sizes.dims, sizes.rows: ROWS})
            except DimError:
                continue
            seconds = at.seconds(DEVICE.peak["bf16"], DEVICE.bandwidth)
            lines.append(
                f"- {sizes.model}, {sizes.rows} = {ROWS}: {short(at.flops / 1e9)} GFLOP, "
                f"{short(at.least / 1e6)} MB, {short(seconds * 1e6)} us on an {DEVICE.name} at best"
            )
        return "\n".join(lines)


def _dims(structure: Structure) -> list[str]:
    return [*structure.dims, *(f"{name}[{index}]" for name, index in structure.indexed_dims)]


def _member(structure: Structure, name: str) -> Iterator[str]:
    """A port, slot, dim, point, variant, param or value of a structure."""
    items: list[Port | Slot] = [*structure.inputs, *structure.outputs, *structure.slots]
    for item in items:
        if item.name == name:
            shape = "" if item.shape is None else f"`{shape_text(item.shape)}`"
            there = "" if item.when is None else f", there when {maths.condition(item.when)}"
            may = ", may be absent" if item.optional else ""
            yield f"{shape} in `{structure.name}` version {structure.version}{there}{may}."
    for point in structure.points:
        if point.name == name:
            yield f"A point ({point.kind}) of `{structure.name}` version {structure.version}."
    for variant in structure.variants:
        if variant.name == name:
            yield f"Values: {', '.join(f'`{value}`' for value in variant.values)}."
    lets = [s for s in statements(structure.reference) if isinstance(s, Let) and s.name == name]
    if lets:
        yield f"```math\n{maths.formulas(lets)}\n```"
    if name in _dims(structure):
        readers = [
            item.name for item in items if item.shape is not None and name in shape_text(item.shape)
        ]
        yield f"A size of `{structure.name}`: {', '.join(f'`{n}`' for n in readers)}."


# ---------------------------------------------------------------- other declarations


def _impl(impl: Impl) -> Iterator[str]:
    yield impl.doc.strip()
    rungs = [*impl.rungs, *(rung for band in impl.bands for rung in band.rungs)]
    kinds = ", ".join(dict.fromkeys(rung.kind for rung in rungs))
    yield f"Rungs: {kinds or 'none'}. Packs: {', '.join(p.name for p in impl.packs) or 'none'}."


def _scheme(scheme: Scheme) -> Iterator[str]:
    yield scheme.doc.strip()
    lines = [
        f"- `{r.structure}{'.' + r.seam if r.seam else ''}` version {r.structure_version}: "
        f"`{r.use}`"
        for r in scheme.routes
        if r.use is not None
    ]
    yield "\n".join(lines)


def _binding(binding: Binding) -> Iterator[str]:
    yield binding.doc.strip()
    seats = [seat.name for group in binding.groups for seat in group.seats]
    hosts = ", ".join(f"{h.package} {h.versions or ''}".strip() for h in binding.hosts)
    yield f"Host: {hosts}. Seats: {', '.join(f'`{seat}`' for seat in seats) or 'none'}."


def _pipeline(pipeline: Pipeline) -> Iterator[str]:
    yield first_sentence(pipeline.doc)
    yield f"Stages: {', '.join(f'`{stage.name}`' for stage in pipeline.stages)}."

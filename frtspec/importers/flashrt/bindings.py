"""A binding of flash-rt as its YAML has it: fields checked, every value with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.suggest import did_you_mean
from frtspec.importers.flashrt.fields import WRONG_KIND, Fields, Report, texts_of
from frtspec.importers.flashrt.structures import PeerStructure
from frtspec.importers.flashrt.yamldoc import Map, Scalar, Seq, Value

NAME_UNKNOWN = "FRT0885"
CONSTANTS = ("zeros", "ones")


@dataclass(frozen=True)
class Host:
    """A row of ``hosts``."""

    name: Scalar
    module_path: Scalar | None
    versions: Scalar | None


@dataclass(frozen=True)
class Weight:
    """One slot: ``path`` is a template with ``{i}``, or None where ``const`` says what
    stands in its place."""

    slot: Scalar
    path: Scalar | None
    const: str | None


@dataclass(frozen=True)
class Phase:
    """A row of ``m_profile``: how many rows come in one phase of the host."""

    name: Scalar
    rows: Scalar
    phase: Scalar


@dataclass(frozen=True)
class Conditioning:
    source: Scalar
    weight: Scalar
    bias: Scalar | None
    chunk_order: tuple[Scalar, ...]
    residual_gate: bool
    key: Scalar


@dataclass(frozen=True)
class Region:
    """A binding of a region structure. ``weights_host``: the key of its ``weights_map``;
    ``dims`` without ``layers``, which is how often the region is there."""

    name: Scalar
    structure: PeerStructure
    dims: tuple[tuple[Scalar, int], ...]
    layers: int
    variant: tuple[tuple[Scalar, Scalar], ...]
    dtype: Scalar | None
    profile: tuple[Phase, ...]
    weights_host: Scalar
    layout: Scalar | None
    weights: tuple[Weight, ...]
    conditioning: Conditioning | None
    hosts: tuple[Host, ...]


@dataclass(frozen=True)
class Stage:
    """One stage; ``texts`` are its fields that are plain texts or numbers, in order."""

    name: Scalar
    texts: tuple[tuple[Scalar, Scalar], ...]
    outputs: tuple[tuple[Scalar, Scalar], ...]


@dataclass(frozen=True)
class Segment:
    name: Scalar
    stage: Scalar
    kind: Scalar
    seam: Scalar
    structures: tuple[Scalar, ...]


@dataclass(frozen=True)
class Pipeline:
    """A binding of a pipeline. ``contract`` None: no coverage is declared."""

    name: Scalar
    structure: PeerStructure
    stages: tuple[Stage, ...]
    cadences: tuple[tuple[Scalar, tuple[Scalar, ...]], ...]
    contract: Scalar | None
    hot_path: tuple[Scalar, ...]
    segments: tuple[Segment, ...]
    hosts: tuple[Host, ...]


def binding(
    root: Map, stem: str, structures: Mapping[str, PeerStructure], report: Report
) -> Region | Pipeline | None:
    """The binding of one file, or None when an error keeps it from meaning anything."""
    fields = Fields(root, f"binding `{stem}`", report)
    name = fields.text("binding", needed=True)
    named = fields.text("structure", needed=True)
    if name is not None and name.text != stem:
        message = f"the file is called `{stem}.yaml` and declares the binding `{name.text}`"
        report(Diagnostic(WRONG_KIND, message, name.span, help="rename one of them"))
    if name is None or named is None:
        return None
    found = structures.get(named.text)
    if found is None:
        unknown("structure", named, structures, report)
        return None
    if found.pipeline:
        return _Pipelines(fields, structures, report).build(name, found)
    return _region(fields, name, found, report)


def unknown(what: str, at: Scalar, known: object, report: Report) -> None:
    """A name that the catalog does not have."""
    names = [str(name) for name in known]  # type: ignore[attr-defined]
    report(
        Diagnostic(
            NAME_UNKNOWN,
            f"no {what} is called `{at.text}`",
            at.span,
            help=did_you_mean(at.text, names)
            or (f"known: {', '.join(names)}" if names else "there is none here"),
        )
    )


# ---------------------------------------------------------------- regions


def _region(
    fields: Fields, name: Scalar, structure: PeerStructure, report: Report
) -> Region | None:
    weights = fields.mapping("weights_map", needed=True)
    dims = _dims(fields, structure, report)
    variant = fields.mapping("variant")
    dtype = fields.text("boundary_dtype")
    profile = _profile(fields, name, report)
    conditioning = _conditioning(fields, name, report)
    hosts = _hosts(fields, name, report)
    fields.done()
    if fields.held.get("coverage") is not None:
        report(
            Diagnostic(
                WRONG_KIND,
                f"`{structure.name}` is a region: its binding has no coverage of a hot path",
                fields.held.span,
            )
        )
    read = _weights(weights, name, structure, report) if weights else None
    if read is None or dims is None:
        return None
    host, layout, slots = read
    pairs = () if variant is None else texts_of(variant, f"the variant of `{name.text}`", report)
    return Region(
        name=name,
        structure=structure,
        dims=tuple((key, size) for key, size in dims if key.text != "layers"),
        layers=next(size for key, size in dims if key.text == "layers"),
        variant=tuple(p for p in pairs if _known_value(p, structure, report)),
        dtype=dtype,
        profile=profile,
        weights_host=host,
        layout=layout,
        weights=slots,
        conditioning=conditioning,
        hosts=hosts,
    )


def _dims(
    fields: Fields, structure: PeerStructure, report: Report
) -> list[tuple[Scalar, int]] | None:
    """The dims, ``layers`` among them; None where that is missing."""
    held = fields.mapping("dims", needed=True)
    if held is None:
        return None
    rows = Fields(held, f"the dims of {fields.what}", report)
    out = []
    for key, value in held:
        size = rows.whole(key.text)
        if key.text != "layers" and key.text not in structure.dims:
            unknown(f"dim of {structure.name}", key, structure.dims, report)
        elif size is not None and size < 1:
            rows.wrong(key.text, "a number of at least 1", value)
        elif size is not None:
            out.append((key, size))
    if "layers" not in held.names():
        report(Diagnostic(WRONG_KIND, f"{rows.what} say no `layers`", held.span))
    return out if any(key.text == "layers" for key, _ in out) else None


def _known_value(pair: tuple[Scalar, Scalar], structure: PeerStructure, report: Report) -> bool:
    axis, value = pair
    values = structure.axes.get(axis.text)
    if values is None:
        unknown(f"variant of {structure.name}", axis, structure.axes, report)
    elif value.text not in values:
        unknown(f"value of {axis.text}", value, values, report)
    else:
        return True
    return False


def _weights(
    held: Map, name: Scalar, structure: PeerStructure, report: Report
) -> tuple[Scalar, Scalar | None, tuple[Weight, ...]] | None:
    """Key, layout and slots of the one host that ``weights_map`` names."""
    what = f"the weights_map of `{name.text}`"
    if len(held.entries) != 1:
        message = f"{what} names {len(held.entries)} hosts; one can be carried over"
        report(Diagnostic(WRONG_KIND, message, held.span))
        return None
    host, rows = held.entries[0]
    if not isinstance(rows, Map):
        Fields(held, what, report).wrong(host.text, "a mapping of slots", rows)
        return None
    fields = Fields(rows, what, report)
    layout = fields.text("layout")
    out = []
    for key, value in rows:
        if key.text == "layout":
            continue
        fields.skip(key.text)
        weight = _weight(key, value, fields)
        if structure.slot(key.text) is None:
            unknown(
                f"slot of {structure.name}", key, [s.name.text for s in structure.slots], report
            )
        elif weight is not None:
            out.append(weight)
    for slot in structure.slots:
        if not slot.optional and slot.name.text not in rows.names():
            message = f"{what} has no slot `{slot.name.text}`"
            report(Diagnostic(WRONG_KIND, message, host.span))
    return host, layout, tuple(out)


def _weight(key: Scalar, value: Value, fields: Fields) -> Weight | None:
    """A path template, or ``{const: zeros}``."""
    if isinstance(value, Map):
        const = Fields(value, f"slot `{key.text}`", fields.report)
        word = const.text("const", needed=True)
        const.done()
        if word is None:
            return None
        if word.text not in CONSTANTS:
            unknown("constant", word, CONSTANTS, fields.report)
            return None
        return Weight(key, None, word.text)
    path = fields.text(key.text)
    return None if path is None else Weight(key, path, None)


def _profile(fields: Fields, name: Scalar, report: Report) -> tuple[Phase, ...]:
    held = fields.mapping("m_profile")
    out = []
    for key, value in held or ():
        if not isinstance(value, Map):
            Fields(held or Map((), key.span), "m_profile", report).wrong(
                key.text, "a mapping", value
            )
            continue
        row = Fields(value, f"m_profile.{key.text} of `{name.text}`", report)
        rows, phase = row.text("m_class", needed=True), row.text("phase", needed=True)
        row.done()
        if rows is not None and phase is not None:
            out.append(Phase(key, rows, phase))
    return tuple(out)


def _conditioning(fields: Fields, name: Scalar, report: Report) -> Conditioning | None:
    held = fields.mapping("conditioning")
    if held is None:
        return None
    rows = Fields(held, f"the conditioning of `{name.text}`", report)
    source, gated = rows.text("source", needed=True), rows.truth("residual_gate")
    projection = rows.mapping("projection", needed=True)
    rows.done()
    if projection is None or source is None:
        return None
    inner = Fields(projection, f"the projection of `{name.text}`", report)
    weight, bias = inner.text("weight", needed=True), inner.text("bias")
    order = inner.texts("chunk_order", needed=True)
    inner.done()
    key = fields.held.key("conditioning")
    if weight is None or key is None:
        return None
    return Conditioning(source, weight, bias, order, gated, key)


def _hosts(fields: Fields, name: Scalar, report: Report) -> tuple[Host, ...]:
    held = fields.mapping("hosts", needed=True)
    out = []
    for key, value in held or ():
        if not isinstance(value, Map):
            Fields(held or Map((), key.span), f"the hosts of `{name.text}`", report).wrong(
                key.text, "a mapping", value
            )
            continue
        row = Fields(value, f"host `{key.text}` of `{name.text}`", report)
        out.append(Host(key, row.text("module_path"), row.text("versions")))
        row.done()
    return tuple(out)


# ---------------------------------------------------------------- pipelines


class _Pipelines:
    """Reads what a binding says about a pipeline."""

    def __init__(
        self, fields: Fields, structures: Mapping[str, PeerStructure], report: Report
    ) -> None:
        self.fields = fields
        self.structures = structures
        self.report = report

    def build(self, name: Scalar, structure: PeerStructure) -> Pipeline | None:
        stages = self.stages(name, structure)
        cadences = self.cadences(name, stages)
        coverage = self.fields.mapping("coverage")
        contract: Scalar | None = None
        hot: tuple[Scalar, ...] = ()
        segments: tuple[Segment, ...] = ()
        if coverage is not None:
            rows = Fields(coverage, f"the coverage of `{name.text}`", self.report)
            contract = rows.text("contract", needed=True)
            hot = rows.texts("hot_path", needed=True)
            segments = tuple(s for row in rows.mappings("segments") if (s := self.segment(row)))
            rows.done()
        hosts = _hosts(self.fields, name, self.report)
        self.fields.done()
        return Pipeline(name, structure, stages, cadences, contract, hot, segments, hosts)

    def stages(self, name: Scalar, structure: PeerStructure) -> tuple[Stage, ...]:
        held = self.fields.mapping("stages", needed=True)
        out = []
        for key, value in held or ():
            if key.text not in structure.stages:
                unknown(f"stage of {structure.name}", key, structure.stages, self.report)
            elif not isinstance(value, Map):
                rows = Fields(
                    held or Map((), key.span), f"the stages of `{name.text}`", self.report
                )
                rows.wrong(key.text, "a mapping", value)
            else:
                out.append(self.stage(key, value))
        given = held.names() if held else []
        for stage, optional in structure.stages.items():
            if not optional and stage not in given:
                message = f"binding `{name.text}` has no stage `{stage}`, which is not optional"
                self.report(Diagnostic(WRONG_KIND, message, self.fields.held.span))
        return tuple(out)

    def stage(self, key: Scalar, held: Map) -> Stage:
        fields = Fields(held, f"stage `{key.text}`", self.report)
        outputs = fields.mapping("outputs")
        texts = []
        for name in held.names():
            at = held.key(name)
            value = None if name == "outputs" else fields.scalar(name)
            if at is not None and value is not None:
                texts.append((at, value))
        pairs = (
            () if outputs is None else texts_of(outputs, f"outputs of {fields.what}", self.report)
        )
        return Stage(key, tuple(texts), pairs)

    def cadences(
        self, name: Scalar, stages: tuple[Stage, ...]
    ) -> tuple[tuple[Scalar, tuple[Scalar, ...]], ...]:
        held = self.fields.mapping("cadences")
        if held is None:
            return ()
        fields = Fields(held, f"the cadences of `{name.text}`", self.report)
        known = [stage.name.text for stage in stages]
        out = []
        for key, value in held:
            if isinstance(value, Seq):
                names = fields.texts(key.text)
            else:
                one = fields.text(key.text)
                names = () if one is None else (one,)
            for stage in names:
                if stage.text not in known:
                    unknown("bound stage", stage, known, self.report)
            out.append((key, names))
        return tuple(out)

    def segment(self, held: Map) -> Segment | None:
        fields = Fields(held, "a segment", self.report)
        name = fields.text("name", needed=True)
        stage, kind = fields.text("stage", needed=True), fields.text("classification", needed=True)
        seam = fields.text("seam", needed=True)
        structures = fields.texts("structures")
        fields.done()
        for item in structures:
            if item.text not in self.structures:
                unknown("structure", item, self.structures, self.report)
        if name is None or stage is None or kind is None or seam is None:
            return None
        return Segment(name, stage, kind, seam, structures)

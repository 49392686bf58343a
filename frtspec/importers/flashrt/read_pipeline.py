"""Reading what a binding says about a pipeline."""

from __future__ import annotations

from collections.abc import Mapping

from frtspec.diag.diagnostic import Diagnostic
from frtspec.importers.flashrt.bindings import Host, Pipeline, Segment, Stage, unknown
from frtspec.importers.flashrt.fields import WRONG_KIND, Fields, Report, texts_of
from frtspec.importers.flashrt.structures import PeerStructure
from frtspec.importers.flashrt.yamldoc import Map, Scalar, Seq


def read_pipeline(
    fields: Fields,
    name: Scalar,
    structure: PeerStructure,
    structures: Mapping[str, PeerStructure],
    report: Report,
) -> Pipeline | None:
    """The binding of a pipeline; ``fields`` are those of its file."""
    return _Pipelines(fields, structures, report).build(name, structure)


def hosts_of(fields: Fields, name: Scalar, report: Report) -> tuple[Host, ...]:
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
        hosts = hosts_of(self.fields, name, self.report)
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

"""The page of a pipeline: its stages drawn, its values, rules and gates, who binds it."""

from __future__ import annotations

from collections.abc import Mapping

from frtspec.diag.source import SourceFile
from frtspec.docgen.markdown import code, names, table
from frtspec.ir import pipewords
from frtspec.ir.decl import Pipeline, Program


def pipeline_page(
    program: Program, pipeline: Pipeline, sources: Mapping[str, SourceFile], picture: str
) -> str:
    """Markdown. ``picture``: the file name of the drawing."""
    sections = [
        f"# {pipeline.name} version {pipeline.version}",
        pipeline.doc.strip(),
        "[All pipelines](../catalog.md)",
        f"![Stages of {pipeline.name}]({picture})",
        (
            "Blue boxes come from the caller, green ones are read back, grey ones are buffers, "
            "orange ones state; a bracket holds what a loop repeats."
        ),
        "## Stages",
        _stages(pipeline),
        "## Values",
        _values(pipeline),
        *_loops(pipeline),
        *_rules(pipeline),
        *_gates(pipeline, sources),
        *_parts(pipeline),
        *_bound(program, pipeline),
    ]
    if pipeline.evidence:
        sections += ["## Evidence", *(text.strip() for text in pipeline.evidence)]
    return "\n\n".join(sections) + "\n"


def _stages(pipeline: Pipeline) -> str:
    rows = []
    for stage in pipeline.stages:
        reads = names(v.name for v in stage.values if v.reads)
        writes = names(v.name for v in stage.values if v.writes)
        doc = " ".join(stage.doc.split())
        there = "optional" if stage.optional else ""
        rows.append(
            (code(stage.name), doc, stage.cadence, reads, writes, code(stage.capture), there)
        )
    return table(("stage", "is", "cadence", "reads", "writes", "capture", "there"), rows)


def _values(pipeline: Pipeline) -> str:
    rows = []
    for window in pipeline.windows:
        ways = (["from the caller"] if window.caller else []) + (
            ["read back"] if window.readback else []
        )
        rows.append(
            (code(window.name), f"{window.mode} window", window.cadence or "", ", ".join(ways))
        )
    for buffer in pipeline.buffers:
        rows.append((code(buffer.name), f"{buffer.mode} buffer", buffer.cadence or "", ""))
    for state in pipeline.states:
        who = [f"written by {names(state.writers)}"] if state.writers else []
        who += [f"read by {names(state.readers)}"] if state.readers else []
        rows.append((code(state.name), "state region", state.cadence or "", "; ".join(who)))
    return table(("value", "is", "cadence", ""), rows)


def _loops(pipeline: Pipeline) -> list[str]:
    rows = [
        (
            code(loop.name),
            names(loop.runs),
            "as the binding says" if loop.steps is None else str(loop.steps),
            "" if loop.until is None else code(loop.until),
            loop.shapes,
        )
        for loop in pipeline.loops
    ]
    head = ("loop", "runs", "steps", "ends early by", "shapes")
    return ["## Loops", table(head, rows)] if rows else []


def _rules(pipeline: Pipeline) -> list[str]:
    rows = [
        (
            code(rule.name),
            f"{code(rule.check)} {names(rule.subjects)}".strip(),
            pipewords.CHECKS[rule.check].doc,
        )
        for rule in pipeline.conform
    ]
    if not rows:
        return []
    return [
        "## Rules",
        "Each is held by one check of a run.",
        table(("rule", "check", "holds"), rows),
    ]


def _gates(pipeline: Pipeline, sources: Mapping[str, SourceFile]) -> list[str]:
    texts = [sources[g.span.path].text[g.span.start : g.span.end] for g in pipeline.gates]
    return ["## Gates", "```frt\n" + "\n".join(texts) + "\n```"] if texts else []


def _parts(pipeline: Pipeline) -> list[str]:
    made = []
    if pipeline.embeds:
        links = [f"[`{n}` {v}]({n}_v{v}.md)" for n, v in pipeline.embeds]
        made += ["## Made up of", ", ".join(links)]
    if pipeline.substructures:
        rows = [(code(s.name), s.cadence) for s in pipeline.substructures]
        made += ["## Done at a slower cadence", table(("work", "cadence"), rows)]
    return made


def _bound(program: Program, pipeline: Pipeline) -> list[str]:
    key = (pipeline.name, pipeline.version)
    rows = []
    for binding in program.bindings.values():
        for use in binding.pipelines:
            if use.pipeline != key:
                continue
            covered = "not declared"
            if use.coverage is not None:
                kinds = [segment.kind for segment in use.coverage.segments]
                counts = (f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
                covered = ", ".join(counts)
            stages = names(stage.name for stage in use.stages)
            status = binding.status.name if use.status.name == "draft" else use.status.name
            rows.append((code(binding.name), stages, covered, status))
    head = ("binding", "stages", "segments", "status")
    return ["## Who binds it", table(head, rows) if rows else "No binding yet."]

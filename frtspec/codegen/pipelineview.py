"""What the template of a pipeline needs: its facts as expressions, its rules in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frtspec.codegen.pysrc import call, docstring, pyrepr, told_lines, wrapped
from frtspec.ir import pipewords
from frtspec.ir.decl import Pipeline, PipelineGate, Stage, StageLoop


@dataclass(frozen=True)
class PipelineView:
    """Rows are finished expressions; ``open_loops``: loops whose count the binding gives."""

    name: str
    version: int
    path: str
    title: str
    doc: tuple[str, ...]
    summary: tuple[str, ...]
    source_digest: str
    contract_digest: str
    family: str
    flows: tuple[str, ...]
    stages: tuple[str, ...]
    loops: tuple[str, ...]
    embeds: tuple[tuple[str, int], ...]
    substructures: dict[str, str]
    rules: tuple[str, ...]
    parity: str | None
    net_win: str | None
    bounds: bool
    stage_names: tuple[str, ...]
    first_stage: str
    open_loops: str
    imported: str | None


def pipeline_view(pipeline: Pipeline) -> PipelineView:
    gates = {gate.kind: gate for gate in pipeline.gates}
    parity = gates.get("parity")
    net_win = gates.get("net_win")
    open_loops = [loop.name for loop in pipeline.loops if loop.steps is None]
    return PipelineView(
        name=pipeline.name,
        version=pipeline.version,
        path=pipeline.origin.path,
        title="\n".join(
            docstring(f"{pipeline.name}, version {pipeline.version}: {_family(pipeline)}.")
        ),
        doc=tuple(told_lines(pipeline.doc, pipeline.evidence)),
        summary=tuple(_summary(pipeline)),
        source_digest=pipeline.origin.source_digest,
        contract_digest=pipeline.origin.contract_digest,
        family=pipeline.family,
        flows=tuple(_flows(pipeline)),
        stages=tuple(_stage(stage) for stage in pipeline.stages),
        loops=tuple(_loop(loop) for loop in pipeline.loops),
        embeds=pipeline.embeds,
        substructures={s.name: s.cadence for s in pipeline.substructures},
        rules=tuple(
            call(
                "trace.Rule",
                pyrepr(rule.name),
                pyrepr(rule.check),
                *([pyrepr(rule.subjects)] if rule.subjects else []),
            ).text
            for rule in pipeline.conform
        ),
        parity=_parity(parity) if parity else None,
        net_win=_net_win(net_win) if net_win else None,
        bounds=parity is not None,
        stage_names=tuple(wrapped(", ".join(s.name for s in pipeline.stages), width=72)),
        first_stage=pipeline.stages[0].name,
        open_loops=", ".join(open_loops),
        imported=pipeline.status.reason if pipeline.status.name == "imported" else None,
    )


def _family(pipeline: Pipeline) -> str:
    return pipewords.FAMILIES[pipeline.family]


def _given(**named: object) -> dict[str, str]:
    """Arguments that say something: no None, no False, nothing empty."""
    return {key: pyrepr(value) for key, value in named.items() if value}


def _flows(pipeline: Pipeline) -> list[str]:
    rows = [
        call(
            "trace.Flow",
            pyrepr("window"),
            pyrepr(window.name),
            pyrepr(window.mode),
            **_given(cadence=window.cadence, caller=window.caller, readback=window.readback),
        )
        for window in pipeline.windows
    ]
    rows += [
        call(
            "trace.Flow",
            pyrepr("buffer"),
            pyrepr(buffer.name),
            pyrepr(buffer.mode),
            **_given(cadence=buffer.cadence),
        )
        for buffer in pipeline.buffers
    ]
    rows += [
        call("trace.Flow", pyrepr("state"), pyrepr(state.name), **_given(cadence=state.cadence))
        for state in pipeline.states
    ]
    return [row.text for row in rows]


def _stage(stage: Stage) -> str:
    return call(
        "trace.Stage",
        pyrepr(stage.name),
        cadence=pyrepr(stage.cadence),
        capture=pyrepr(stage.capture),
        **_given(
            reads=tuple(v.name for v in stage.values if v.reads),
            writes=tuple(v.name for v in stage.values if v.writes),
            maybe=tuple(v.name for v in stage.values if v.optional),
            optional=stage.optional,
        ),
    ).text


def _loop(loop: StageLoop) -> str:
    return call(
        "trace.Loop",
        pyrepr(loop.name),
        runs=pyrepr(loop.runs),
        **_given(steps=loop.steps, until=loop.until),
        shapes=pyrepr(loop.shapes),
    ).text


def _parity(gate: PipelineGate) -> str:
    bounds = [
        call("Bound", *(pyrepr(v) for v in (m.metric, m.op, m.bound) if v is not None)).text
        for m in gate.metrics
    ]
    return call(
        "trace.ParityGate",
        on=pyrepr(gate.on),
        against=pyrepr(gate.against[0]),
        bounds=f"({', '.join(bounds)},)",
    ).text


def _net_win(gate: PipelineGate) -> str:
    return call(
        "trace.WinGate",
        per=pyrepr(gate.per),
        against=pyrepr(gate.against[0]),
        metrics=pyrepr(tuple(m.metric for m in gate.metrics)),
    ).text


# ---------------------------------------------------------------- in words


def _summary(pipeline: Pipeline) -> list[str]:
    """The stages and the rules, one aligned row each."""
    rows = []
    for stage in pipeline.stages:
        optional = ", optional" if stage.optional else ""
        rows.append((stage.name, f"{stage.cadence}{optional}", _touches(stage)))
    lines = ["Stages, in the order of runs:", "", *_table(rows)]
    for stage in pipeline.stages:
        if stage.doc:
            lines += ["", *wrapped(f"{stage.name}: {' '.join(stage.doc.split())}")]
    for loop in pipeline.loops:
        count = "as many steps as the host says" if loop.steps is None else f"{loop.steps} steps"
        ends = f", until {loop.until}" if loop.until else ""
        lines += ["", f"Loop {loop.name}: {', '.join(loop.runs)}; {count}{ends}."]
    if pipeline.conform:
        lines += ["", "Rules, each held by a check over a run:", ""]
        for rule in pipeline.conform:
            about = f" ({', '.join(rule.subjects)})" if rule.subjects else ""
            held = f"{rule.check}{about}: {pipewords.CHECKS[rule.check].doc}"
            lines += wrapped(f"{rule.name}: {held}", "    ", " " * 8)
    return lines


def _touches(stage: Stage) -> str:
    parts = []
    for word, access in (("reads", "read"), ("writes", "write"), ("updates", "read_write")):
        names = [v.name for v in stage.values if v.access == access]
        if names:
            parts.append(f"{word} {', '.join(names)}")
    return "; ".join(parts)


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]) - 1)]
    lines: list[str] = []
    for row in rows:
        head = "".join(f"{cell:<{w}}   " for cell, w in zip(row, widths, strict=False))
        lines += wrapped(row[-1], f"    {head}", " " * (len(head) + 4)) or [f"    {head.rstrip()}"]
    return lines

"""A pipeline's binding as the text of a spec.

The source's own words about places (seams, windows, buffers) are kept as words: nothing
of a native pipeline can be looked at, so such a binding is imported unverified.
"""

from __future__ import annotations

from collections.abc import Iterator

from frtspec.importers.flashrt.bindings import Pipeline, Segment, Stage
from frtspec.importers.flashrt.words import (
    CAPTURE_WORDS,
    POLICIES,
    TARGET,
    exported_name,
    imported_name,
    quoted,
)
from frtspec.importers.flashrt.yamldoc import Scalar
from frtspec.ir import decl as ir

NOISE = "noise_window"
STAGE_KEYS = (
    "seam",
    "eager_seam",
    "capture",
    "policy",
    "mutation_guard",
    "loop_steps",
    NOISE,
)
"""What is carried over of a stage besides its outputs."""


def pipeline_text(found: Pipeline, ours: ir.Pipeline, reason: str, evidence: str) -> str:
    """The spec's text, not yet formatted."""
    return "\n".join(_lines(found, ours, reason, evidence)) + "\n"


def noise_of(stage: str, ours: ir.Pipeline) -> str | None:
    """The window that holds a stage's noise: what the caller fills and its loop reads."""
    names = {window.name for window in ours.windows if window.name in ("noise", "latent")}
    declared = ours.stage(stage)
    reads = [] if declared is None else [v.name for v in declared.values if v.name in names]
    return next(iter(reads), None)


def kind_of(name: str, ours: ir.Pipeline) -> str | None:
    """``window``, ``buffer`` or ``state``: what a value of the pipeline is."""
    for kind, rows in (("window", ours.windows), ("buffer", ours.buffers), ("state", ours.states)):
        if any(row.name == name for row in rows):
            return kind
    return None


def _lines(found: Pipeline, ours: ir.Pipeline, reason: str, evidence: str) -> Iterator[str]:
    yield from ("frt 1", "", f"binding {imported_name(found.name.text)} {{")
    yield f'"""The {found.structure.name} of flash-rt\'s binding {found.name.text}."""'
    yield f"status imported {quoted(reason)}"
    yield f"evidence {quoted(evidence)}"
    for host in found.hosts:
        versions = "" if host.versions is None else f" {quoted(host.versions.text)}"
        module = "" if host.module_path is None else f" module {quoted(host.module_path.text)}"
        yield f"host {host.name.text}{versions}{module}"
    yield ""
    yield f"pipeline {ours.name} version {ours.version} {{"
    for stage in found.stages:
        yield from _stage(stage, ours)
    yield from _loops(found, ours)
    for cadence, stages in found.cadences:
        yield f"cadence {cadence.text} runs {_names([s.text for s in stages])}"
    if found.contract is not None:
        yield from _coverage(found)
    yield "}"
    yield from _export(found)
    yield "}"


def _names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _stage(stage: Stage, ours: ir.Pipeline) -> Iterator[str]:
    said = {key.text: value for key, value in stage.texts}
    yield f"stage {stage.name.text} {{"
    if "seam" in said:
        yield f"seam {quoted(said['seam'].text)}"
    if "eager_seam" in said:
        yield f"seam eager {quoted(said['eager_seam'].text)}"
    if "capture" in said:
        yield _capture(said["capture"].text)
    if "policy" in said:
        yield f"policy {POLICIES[said['policy'].text]}"
    if "mutation_guard" in said:
        yield f"protect {said['mutation_guard'].text}"
    for name, text in stage.outputs:
        yield f"{kind_of(name.text, ours)} {name.text} = {quoted(text.text)}"
    if NOISE in said:
        yield f"window {noise_of(stage.name.text, ours)} = {quoted(said[NOISE].text)}"
    yield "}"


def _capture(text: str) -> str:
    """The nearest word of ours, and the source's own where it says more."""
    word = capture_word(text)
    return f"capture {word}" if word == text else f"capture {word} {quoted(text)}"


def capture_word(text: str) -> str:
    """``position_bucketed_cuda_graph`` is ``bucketed``, ``eager_once`` is ``eager``."""
    parts = set(text.split("_"))
    graph, eager, bucketed = "graph" in parts, "eager" in parts, "bucketed" in parts
    return CAPTURE_WORDS.get((graph, eager, bucketed and graph), "host_dependent")


def _loops(found: Pipeline, ours: ir.Pipeline) -> Iterator[str]:
    for stage in found.stages:
        steps = next((value for key, value in stage.texts if key.text == "loop_steps"), None)
        loop = ours.loop_of(stage.name.text)
        if steps is not None and loop is not None:
            yield f"loop {loop.name} steps = {_steps(steps)}"


def _steps(steps: Scalar) -> str:
    return str(steps.value) if isinstance(steps.value, int) else quoted(steps.text)


def _coverage(found: Pipeline) -> Iterator[str]:
    assert found.contract is not None
    yield ""
    yield f"coverage {found.contract.text} {{"
    yield f"hot_path ({', '.join(name.text for name in found.hot_path)})"
    for segment in found.segments:
        yield from _segment(segment)
    yield "}"


def _segment(segment: Segment) -> Iterator[str]:
    head = f"segment {segment.name.text} : {segment.kind.text} in {segment.stage.text}"
    yield f"{head} {{"
    yield f"seam {quoted(segment.seam.text)}"
    if segment.structures:
        yield f"covers {_names([item.text for item in segment.structures])}"
    yield "}"


def _export(found: Pipeline) -> Iterator[str]:
    """What the export needs and nothing here says."""
    if exported_name(imported_name(found.name.text)) != found.name.text:
        yield f"export {TARGET} {{ binding = {quoted(found.name.text)} }}"

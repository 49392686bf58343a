"""A binding of a pipeline as a document of flash-rt's catalog."""

from __future__ import annotations

from frtspec.importers.flashrt.plaindoc import CannotExport, whole
from frtspec.importers.flashrt.words import POLICIES
from frtspec.importers.flashrt.write_pipeline import NOISE, noise_of
from frtspec.ir.decl import Binding, BoundPipeline, BoundStage, Coverage, Pipeline, Program, Segment
from frtspec.syntax import ast


def pipeline_document(program: Program, binding: Binding, name: str) -> dict[str, object]:
    """The document of the binding's one pipeline. Raises ``CannotExport``."""
    if len(binding.pipelines) > 1:
        message = f"binding `{binding.name}` has several pipelines; flash-rt's format has one"
        raise CannotExport(message, binding.origin.span)
    use = binding.pipelines[0]
    declared = program.pipelines[use.pipeline]
    document: dict[str, object] = {
        "binding": name,
        "structure": declared.name,
        "stages": {stage.name: _stage(stage, use, declared) for stage in use.stages},
    }
    if use.cadences:
        document["cadences"] = {
            cadence.name: _one_or_all(cadence.stages) for cadence in use.cadences
        }
    if use.coverage is not None:
        document["coverage"] = _coverage(use.coverage, binding)
    document["hosts"] = _hosts(binding)
    return document


def _one_or_all(names: tuple[str, ...]) -> str | list[str]:
    return names[0] if len(names) == 1 else list(names)


def _stage(stage: BoundStage, use: BoundPipeline, declared: Pipeline) -> dict[str, object]:
    rows: dict[str, object] = {}
    seam = stage.seam or (stage.path.text if stage.path is not None else None)
    if seam is not None:
        rows["seam"] = seam
    if stage.eager_seam is not None:
        rows["eager_seam"] = stage.eager_seam
    loop = declared.loop_of(stage.name)
    steps = next((b.steps for b in use.loops if loop is not None and b.name == loop.name), None)
    if steps is not None and _first_of(loop_runs=loop.runs if loop else (), stage=stage, use=use):
        rows["loop_steps"] = _steps(steps, stage)
    noise = noise_of(stage.name, declared)
    outputs = {}
    for value in stage.values:
        if value.text is None:
            message = f"`{value.name}` is a place in a model, and flash-rt's format takes words"
            raise CannotExport(message, value.span)
        if value.kind == "window" and value.name == noise:
            rows[NOISE] = value.text
        else:
            outputs[value.name] = value.text
    capture = stage.capture_text or stage.capture
    if capture is not None:
        rows["capture"] = capture
    if stage.policy is not None:
        rows["policy"] = next(theirs for theirs, ours in POLICIES.items() if ours == stage.policy)
    if stage.protect is not None:
        rows["mutation_guard"] = stage.protect
    if outputs:
        rows["outputs"] = outputs
    return rows


def _first_of(loop_runs: tuple[str, ...], stage: BoundStage, use: BoundPipeline) -> bool:
    """Whether the stage is the first bound one of its loop: the steps stand there, once."""
    bound = {s.name for s in use.stages}
    first = next((name for name in loop_runs if name in bound), None)
    return first == stage.name


def _steps(steps: ast.Expr, stage: BoundStage) -> int | str:
    if isinstance(steps, ast.String):
        return steps.value
    return whole(steps, "the number of steps", stage.span)


def _coverage(coverage: Coverage, binding: Binding) -> dict[str, object]:
    return {
        "contract": coverage.contract,
        "hot_path": list(coverage.hot_path),
        "segments": [_segment(segment, binding) for segment in coverage.segments],
    }


def _segment(segment: Segment, binding: Binding) -> dict[str, object]:
    """Name, stage, class and seam; the structures where it has any."""
    row: dict[str, object] = {
        "name": segment.name,
        "stage": segment.stage,
        "classification": segment.kind,
        "seam": segment.seam or ", ".join(segment.seats),
    }
    structures = list(segment.covers) or _seated(segment, binding)
    if structures:
        row["structures"] = structures
    return row


def _seated(segment: Segment, binding: Binding) -> list[str]:
    """The structures of the seats that make a segment up."""
    of = {seat.name: seat.structure[0] for group in binding.groups for seat in group.seats}
    return list(dict.fromkeys(of[name] for name in segment.seats if name in of))


def _hosts(binding: Binding) -> dict[str, object]:
    hosts: dict[str, object] = {}
    for host in binding.hosts:
        row = {}
        if host.module is not None:
            row["module_path"] = host.module
        if host.versions is not None:
            row["versions"] = host.versions
        hosts[host.package] = row
    return hosts

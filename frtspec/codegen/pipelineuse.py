"""What the template of a pipeline's use needs: the stages of one host, and its coverage."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.codegen import configsrc
from frtspec.codegen.configsrc import Scope
from frtspec.codegen.homes import Homes
from frtspec.codegen.pysrc import Py, call, imports, pyrepr, told_lines
from frtspec.ir.decl import (
    Binding,
    BoundPipeline,
    BoundStage,
    Coverage,
    PlaceRef,
    Segment,
    ValuePlace,
)
from frtspec.syntax import ast


@dataclass(frozen=True)
class CoverageView:
    contract: str
    hot_path: tuple[str, ...]
    segments: tuple[str, ...]


@dataclass(frozen=True)
class PipelineUseView:
    """``stages`` are finished rows; ``steps`` the lines of the function of that name."""

    binding: str
    path: str
    title: str
    doc: tuple[str, ...]
    summary: tuple[str, ...]
    imports: tuple[str, ...]
    assertions: tuple[str, ...]
    stage_locals: tuple[str, ...]
    stages: tuple[str, ...]
    steps: tuple[str, ...]
    words: dict[str, str]
    cadences: dict[str, tuple[str, ...]]
    coverage: CoverageView | None
    imported: str | None


def pipeline_use_view(binding: Binding, use: BoundPipeline, homes: Homes) -> PipelineUseView:
    pipeline = homes.program.pipelines[use.pipeline]
    sizes = {name: Py(f'size["{name}"]') for name, _ in binding.dims}
    scope = Scope({"config": Py("config"), "model": Py("model"), **sizes})
    order = [stage.name for stage in pipeline.stages]
    stages = sorted(use.stages, key=lambda stage: order.index(stage.name))
    rows = tuple(_stage(stage, scope) for stage in stages)
    body = _steps(use, scope)
    located = _locals(rows)
    counted = _locals(body)
    module = homes.path(pipeline)
    lines = [
        "from frtspec.runtime import "
        + ", ".join(
            [
                *(["InputOf"] if any("InputOf(" in row for row in rows) else []),
                *(["OutputOf"] if any("OutputOf(" in row for row in rows) else []),
                "check_abi",
                *(["require_digest"] if homes.shared(pipeline) else []),
                "trace",
            ]
        ),
        f"from {module} import PIPELINE",
    ]
    if any("dims(" in line for line in (*located, *counted)):
        lines.append(f"from {homes.package}.{binding.name} import dims")
    return PipelineUseView(
        binding=binding.name,
        path=binding.origin.path,
        title=f"{pipeline.name} version {pipeline.version} on the hosts of {binding.name}.",
        doc=tuple(told_lines(use.doc, ())),
        summary=tuple(_summary(use)),
        imports=imports(lines),
        assertions=(
            call("require_digest", "PIPELINE", pyrepr(pipeline.origin.contract_digest)).text,
        )
        if homes.shared(pipeline)
        else (),
        stage_locals=located,
        stages=rows,
        steps=(*counted, *body),
        words={
            loop.name: loop.steps.value for loop in use.loops if isinstance(loop.steps, ast.String)
        },
        cadences={cadence.name: cadence.stages for cadence in use.cadences},
        coverage=None if use.coverage is None else _coverage(use.coverage),
        imported=_imported(binding, use),
    )


def _imported(binding: Binding, use: BoundPipeline) -> str | None:
    for status in (use.status, binding.status):
        if status.name == "imported":
            return status.reason
    return None


def _locals(lines: tuple[str, ...]) -> tuple[str, ...]:
    """What the lines of a function need before them."""
    text = "\n".join(lines)
    found = ["config: Any = model.config"] if "config." in text or "(config" in text else []
    return (*found, *(["size = dims(model)"] if "size[" in text else []))


def _stage(stage: BoundStage, scope: Scope) -> str:
    given = {
        "seam": stage.seam,
        "eager_seam": stage.eager_seam,
        "capture": stage.capture,
        "capture_words": stage.capture_text,
        "policy": stage.policy,
        "protect": stage.protect,
    }
    named = {key: pyrepr(value) for key, value in given.items() if value is not None}
    if stage.path is not None:
        named = {"path": configsrc.path(stage.path, scope).text, **named}
    if stage.values:
        rows = ", ".join(f"{pyrepr(v.name)}: {_at(v, scope)}" for v in stage.values)
        named["flows"] = "{" + rows + "}"
    return call("trace.StageUse", pyrepr(stage.name), **named).text


def _at(value: ValuePlace, scope: Scope) -> str:
    if value.place is None:
        return call("trace.At", words=pyrepr(value.text)).text
    return call("trace.At", _place(value.place, scope)).text


def _place(place: PlaceRef, scope: Scope) -> Py:
    given: list[Py | str] = [
        Py(pyrepr("")) if place.path is None else configsrc.path(place.path, scope)
    ]
    if place.arg is not None:
        given.append(pyrepr(place.arg))
    named = {} if place.item is None else {"item": pyrepr(place.item)}
    return call("OutputOf" if place.kind == "output" else "InputOf", *given, **named)


def _steps(use: BoundPipeline, scope: Scope) -> tuple[str, ...]:
    rows = [
        f"{pyrepr(loop.name)}: {configsrc.value(loop.steps, scope).text}"
        for loop in use.loops
        if not isinstance(loop.steps, ast.String)
    ]
    return ("return {" + ", ".join(rows) + "}",)


def _coverage(coverage: Coverage) -> CoverageView:
    return CoverageView(
        contract=coverage.contract,
        hot_path=coverage.hot_path,
        segments=tuple(_segment(segment) for segment in coverage.segments),
    )


def _segment(segment: Segment) -> str:
    named = {
        key: pyrepr(value)
        for key, value in (
            ("seam", segment.seam),
            ("covers", segment.covers),
            ("seats", segment.seats),
        )
        if value
    }
    return call(
        "trace.Segment",
        pyrepr(segment.name),
        pyrepr(segment.kind),
        pyrepr(segment.stage),
        **named,
    ).text


def _summary(use: BoundPipeline) -> list[str]:
    """One row a stage: where it is."""
    rows = [
        (stage.name, stage.path.text if stage.path is not None else stage.seam or "not told")
        for stage in use.stages
    ]
    width = max((len(name) for name, _ in rows), default=0)
    return [f"    {name:<{width}}   {where}" for name, where in rows]

"""What a pipeline's binding claims, compared with the pipeline and with flash-rt's sources."""

from __future__ import annotations

from collections.abc import Iterable

from frtspec.diag.diagnostic import Diagnostic
from frtspec.importers.flashrt import hosts, native
from frtspec.importers.flashrt.bindings import Pipeline, Segment, Stage, unknown
from frtspec.importers.flashrt.catalog import Catalog
from frtspec.importers.flashrt.fields import UNKNOWN_KEY, WRONG_KIND, Report
from frtspec.importers.flashrt.judge import OPEN, versions
from frtspec.importers.flashrt.words import POLICIES
from frtspec.importers.flashrt.write_pipeline import NOISE, STAGE_KEYS, kind_of, noise_of
from frtspec.importers.flashrt.yamldoc import Scalar
from frtspec.ir import decl as ir
from frtspec.ir import pipewords

COVERAGE = "FRT0892"
NATIVE = "a pipeline of flash-rt's own: its places are words, and nothing here can run it"


def pipeline(found: Pipeline, ours: ir.Pipeline, catalog: Catalog, report: Report) -> str | None:
    """Why the binding is imported unverified, in one line; None where an error keeps it
    from being written."""
    errors: list[Diagnostic] = []

    def tell(diagnostic: Diagnostic) -> None:
        report(diagnostic)
        if diagnostic.severity == "error":
            errors.append(diagnostic)

    for stage in found.stages:
        _stage(stage, ours, tell)
    _cadences(found, tell)
    if found.contract is None:
        tell(
            Diagnostic(
                COVERAGE,
                f"`{found.name.text}` declares no coverage: what its hot path is made of is not "
                "said",
                found.name.span,
                "note",
                help="imported without one",
            )
        )
    else:
        _coverage(found, found.contract, tell)
    for host in found.hosts:
        versions(host, tell)
    for problem in native.problems(found, catalog):
        tell(problem)
    if errors:
        return None
    reason = _reason(found)
    message = f"`{found.name.text}` is imported unverified: {reason}"
    tell(Diagnostic(OPEN, message, found.name.span, "note"))
    return reason


def _reason(found: Pipeline) -> str:
    if found.name.text in hosts.OPEN:
        return hosts.OPEN[found.name.text]
    for host in found.hosts:
        if host.name.text in hosts.UNSEEN:
            return hosts.UNSEEN[host.name.text]
    return NATIVE


# ---------------------------------------------------------------- stages


def _stage(stage: Stage, ours: ir.Pipeline, report: Report) -> None:
    declared = ours.stage(stage.name.text)
    values = [] if declared is None else [value.name for value in declared.values]
    for name, _ in stage.outputs:
        if name.text not in values or kind_of(name.text, ours) is None:
            unknown(f"value of stage {stage.name.text}", name, values, report)
    for key, value in stage.texts:
        if key.text != "loop_steps" and not isinstance(value.value, str):
            message = f"`{key.text}` of stage `{stage.name.text}` must be a text"
            report(Diagnostic(WRONG_KIND, message, value.span))
            continue
        _said(stage, key, value, ours, report)


def _said(stage: Stage, key: Scalar, value: Scalar, ours: ir.Pipeline, report: Report) -> None:
    """One field of a stage."""
    if key.text == "policy":
        _word("policy", value, POLICIES, report)
    elif key.text == "mutation_guard":
        _word("mutation_guard", value, pipewords.PROTECTIONS, report)
    elif key.text == "loop_steps":
        _steps(stage, value, ours, report)
    elif key.text == NOISE and noise_of(stage.name.text, ours) is None:
        message = f"stage `{stage.name.text}` reads no noise that a window could hold"
        report(Diagnostic(WRONG_KIND, message, key.span))
    elif key.text not in STAGE_KEYS:
        _not_carried(key, report)


def _word(what: str, value: Scalar, known: Iterable[str], report: Report) -> None:
    if value.text not in known:
        unknown(what, value, known, report)


def _steps(stage: Stage, value: Scalar, ours: ir.Pipeline, report: Report) -> None:
    loop = ours.loop_of(stage.name.text)
    if loop is None or loop.steps is not None:
        message = f"stage `{stage.name.text}` is in no loop whose steps a binding gives"
        report(Diagnostic(WRONG_KIND, message, value.span))
    elif isinstance(value.value, bool) or (isinstance(value.value, int) and value.value < 1):
        message = "a loop takes a whole number of steps from 1, or words that say where it stands"
        report(Diagnostic(WRONG_KIND, message, value.span))


def _not_carried(key: Scalar, report: Report) -> None:
    report(
        Diagnostic(
            UNKNOWN_KEY,
            f"a stage has the unknown key `{key.text}`; it is not carried over",
            key.span,
            "warning",
            help=f"known: {', '.join((*STAGE_KEYS, 'outputs'))}",
        )
    )


def _cadences(found: Pipeline, report: Report) -> None:
    for name, _ in found.cadences:
        if name.text not in pipewords.CADENCES:
            unknown("cadence", name, pipewords.CADENCES, report)
        elif name.text not in found.structure.cadences and name.text != "replan":
            theirs = ", ".join(sorted(found.structure.cadences))
            report(
                Diagnostic(
                    COVERAGE,
                    f"no stage of {found.structure.name} runs at the cadence `{name.text}`",
                    name.span,
                    "warning",
                    help=f"its stages run at {theirs}; kept, as the host may have others",
                )
            )


# ---------------------------------------------------------------- coverage


def _coverage(found: Pipeline, contract: Scalar, report: Report) -> None:
    _word("coverage", contract, pipewords.COVERAGES, report)
    names = [segment.name.text for segment in found.segments]
    _once("segment", (segment.name for segment in found.segments), report)
    _once("hot path entry", found.hot_path, report)
    for name in found.hot_path:
        if name.text not in names:
            message = f"`{name.text}` is on the hot path and no segment"
            report(Diagnostic(COVERAGE, message, name.span))
    bound = [stage.name.text for stage in found.stages]
    for segment in found.segments:
        _segment(segment, found, bound, report)
    for stage in found.stages:
        if not any(segment.stage.text == stage.name.text for segment in found.segments):
            message = f"no segment lies in stage `{stage.name.text}`: the coverage is not complete"
            report(Diagnostic(COVERAGE, message, stage.name.span))


def _segment(segment: Segment, found: Pipeline, bound: list[str], report: Report) -> None:
    if segment.stage.text not in bound:
        unknown("bound stage", segment.stage, bound, report)
    if segment.kind.text not in pipewords.SEGMENTS:
        unknown("classification", segment.kind, pipewords.SEGMENTS, report)
    _once("structure", segment.structures, report)
    kind = segment.kind.text
    if kind in ("host_stage", "control") and segment.structures:
        message = f"a segment that is {kind} is made of no structures"
        report(Diagnostic(COVERAGE, message, segment.kind.span))
    elif kind == "structure" and not segment.structures:
        message = f"`{segment.name.text}` does not say which structures make it up"
        report(Diagnostic(COVERAGE, message, segment.name.span))
    for item in segment.structures:
        if item.text in found.structure.embeds:
            continue
        said = f"{found.structure.name} does not embed `{item.text}`"
        if kind == "structure":
            report(Diagnostic(COVERAGE, said, item.span))
        elif kind == "state_region":
            help = "the source asks it of `structure` segments only; kept"
            report(Diagnostic(COVERAGE, said, item.span, "note", help=help))


def _once(what: str, names: Iterable[Scalar], report: Report) -> None:
    first: dict[str, Scalar] = {}
    for name in names:
        before = first.setdefault(name.text, name)
        if before is not name:
            notes = ((before.span, "the first one is here"),)
            message = f"the {what} `{name.text}` stands twice"
            report(Diagnostic(COVERAGE, message, name.span, notes=notes))

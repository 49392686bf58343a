"""The checks of a pipeline's record: one function a check, each finds what it is about.

A check gets the rule and two records of the same run: the second one on the same content
of every window, or None where there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from frtspec.runtime.gating.metrics import meets
from frtspec.runtime.trace.case import Case, Check, Violation, between, in_loops, pairs, where
from frtspec.runtime.trace.record import Record, SkippedStep, StageRun

# ---------------------------------------------------------------- who runs, who writes


def every_stage_runs(case: Case) -> Iterator[Violation]:
    ran = {run.stage for run in case.record.runs}
    for stage in case.record.bound:
        if stage not in ran:
            yield case.says(
                f"stage {stage} never ran",
                "bind what the host really calls, or leave the stage out",
                stage=stage,
            )


def declared_writers(case: Case) -> Iterator[Violation]:
    """A value changes while a stage runs that writes it. Between stages only what the
    caller fills may change, and what a stage of the host's own may hand over."""
    pipeline = case.record.pipeline
    for value in case.rule.about:
        writers = [s.name for s in pipeline.stages if value in s.writes]
        for run in case.record.runs:
            if run.changed(value) and run.stage not in writers:
                yield case.says(
                    f"{where(run)} changed {value}, which it does not declare to write",
                    f"keep {value} out of the stage, or declare `write {value}`",
                    run,
                    value=value,
                )
        if pipeline.flow(value).caller:
            continue
        yield from _untouched_between(case, value)


def _untouched_between(case: Case, value: str) -> Iterator[Violation]:
    for before, after in pairs(case.record.runs):
        if between(before, after, value):
            yield case.says(
                f"{value} changed between stage {before.stage} and {where(after)}, while no "
                "stage ran",
                "do it inside the stage that declares to write it",
                after,
                value=value,
            )


def changes_only_in(case: Case) -> Iterator[Violation]:
    value, *stages = case.rule.about
    yield from _only(case, value, stages)


def changes_only_at(case: Case) -> Iterator[Violation]:
    value, cadence = case.rule.about
    stages = [s.name for s in case.record.pipeline.stages if s.cadence == cadence]
    yield from _only(case, value, stages)


def _only(case: Case, value: str, stages: Sequence[str]) -> Iterator[Violation]:
    for run in case.record.runs:
        if run.changed(value) and run.stage not in stages:
            yield case.says(
                f"{where(run)} changed {value}; only {' and '.join(stages) or 'no stage'} may",
                "move that work into the stage it belongs to",
                run,
                value=value,
            )
    yield from _untouched_between(case, value)


def populated_before_loop(case: Case) -> Iterator[Violation]:
    pipeline = case.record.pipeline
    for value in case.rule.about:
        readers = {s.name for s in pipeline.stages if value in s.reads}
        first = next((r for r in in_loops(case.record) if r.stage in readers), None)
        if first is None:
            continue
        until = case.record.runs.index(first)
        earlier = [r for r in case.record.runs[:until] if r.changed(value)]
        if not earlier:
            yield case.says(
                f"{where(first)} reads {value}, and no stage before it wrote it",
                "run the stage that fills it first, on the same buffers",
                first,
                value=value,
            )


# ---------------------------------------------------------------- what stays the same


def read_only_in_loop(case: Case) -> Iterator[Violation]:
    for value in case.rule.about:
        for run in in_loops(case.record):
            if run.changed(value):
                yield case.says(
                    f"{where(run)} changed {value}, which is read-only inside the loop",
                    f"let the stage write to a buffer of its own; {value} is written before the "
                    "loop",
                    run,
                    value=value,
                )
        for before, after in pairs(case.record.runs):
            inside = before.loop is not None and before.loop == after.loop
            if inside and between(before, after, value):
                yield case.says(
                    f"{value} changed before {where(after)}, while the loop was running",
                    "exchange its content before the loop or after it",
                    after,
                    value=value,
                )


def static_storage(case: Case) -> Iterator[Violation]:
    """From the first run after which a value is there, it stays where it is."""
    for value in case.rule.about:
        first = None
        for run in case.record.runs:
            for state in (run.before.get(value), run.after.get(value)):
                if state is None or state.absent:
                    continue
                if first is not None and not first.same_storage(state):
                    was, now = _storage(first), _storage(state)
                    yield case.says(
                        f"{value} is static and moved in {where(run)}: {was} before, {now} now",
                        f"write into its storage ({value}.copy_(…)) instead of replacing it",
                        run,
                        value=value,
                    )
                first = state


def _storage(state: object) -> str:
    shapes = getattr(state, "shapes", ())
    places = getattr(state, "places", ())
    rows = [
        f"{list(shape)} {dtype.removeprefix('torch.')} at {place:#x}"
        for (shape, dtype, _), (place, _) in zip(shapes, places, strict=True)
    ]
    return ", ".join(rows[:3]) + (", …" if len(rows) > 3 else "")


def fixed_shapes(case: Case) -> Iterator[Violation]:
    pipeline = case.record.pipeline
    for name in case.rule.about:
        for stage in pipeline.loop(name).runs:
            declared = pipeline.stage(stage)
            assert declared is not None
            runs = [r for r in case.record.runs if r.stage == stage and r.loop == name]
            for value in dict.fromkeys((*declared.reads, *declared.writes)):
                yield from _same_shapes(case, runs, value)


def _same_shapes(case: Case, runs: Sequence[StageRun], value: str) -> Iterator[Violation]:
    for before, after in pairs([r for r in runs if value in r.after]):
        old, new = before.after[value], after.after[value]
        if not old.absent and not new.absent and old.shapes != new.shapes:
            shown = [[list(s) for s, _, _ in p.shapes] for p in (old, new)]
            yield case.says(
                f"{value} has the shapes {shown[1]} after {where(after)} and had {shown[0]} the "
                "step before",
                "give it its full size from the first step on",
                after,
                value=value,
            )


def step_count(case: Case) -> Iterator[Violation]:
    for name in case.rule.about:
        loop = case.record.pipeline.loop(name)
        wanted = case.record.steps.get(name)
        steps = [e.step for e in case.record.events if e.loop == name and e.step is not None]
        if wanted is None or not set(loop.runs) & set(case.record.bound):
            continue
        found = max(steps, default=-1) + 1
        if found > wanted or found < wanted and loop.until is None:
            told = f"at most {wanted}" if loop.until is not None else str(wanted)
            yield case.says(
                f"loop {name} took {found} steps and was told to take {told}",
                "run as many steps as declared, or declare as many as the host runs",
            )


def fixed_loop(case: Case) -> Iterator[Violation]:
    yield from step_count(case)
    yield from fixed_shapes(case)


# ---------------------------------------------------------------- noise


def explicit_window(case: Case) -> Iterator[Violation]:
    """No stage draws random numbers, and the same windows give the same bits twice."""
    for run in case.record.runs:
        if run.drew:
            yield case.says(
                f"{where(run)} drew random numbers ({', '.join(run.drew)})",
                f"draw them before and put them into {' or '.join(case.rule.about)}",
                run,
            )
    if case.again is None:
        yield case.says(
            "only one run was recorded: nothing shows that the same windows give the same bits",
            "record a second run on the same content of every window",
        )
        return
    yield from _same_bits(case, case.record, case.again)


def _same_bits(case: Case, first: Record, again: Record) -> Iterator[Violation]:
    for one, two in zip(first.runs, again.runs, strict=False):
        if one.stage != two.stage:
            break
        given = [v for v in one.before if case.record.pipeline.flow(v).caller]
        other = [v for v in given if one.before[v].bits != two.before[v].bits]
        if other:
            yield case.says(
                f"the second run has other content in {other[0]} at {where(one)}",
                "put the same content into every window before each run",
                one,
                value=other[0],
            )
            return
        for value in one.after:
            if value in two.after and one.after[value].bits != two.after[value].bits:
                yield case.says(
                    f"{value} is another after {where(one)} of a second run, on the same windows",
                    f"let everything that varies come in through {' or '.join(case.rule.about)}",
                    one,
                    value=value,
                )
                return
    if [run.stage for run in first.runs] != [run.stage for run in again.runs]:
        yield case.says(
            f"the second run took {len(again.runs)} runs of stages and the first "
            f"{len(first.runs)}, on the same windows",
            "let nothing but the windows decide what runs",
        )


# ---------------------------------------------------------------- what is reported


def cost_reported(case: Case) -> Iterator[Violation]:
    for run in case.record.runs:
        if run.stage in case.rule.about and run.seconds is None:
            yield case.says(
                f"{where(run)} has no time", "record it with the time that it took", run
            )


def fallback_reported(case: Case) -> Iterator[Violation]:
    """A stage that does not run as a graph says why, unless it is bound eager."""
    for stage in case.rule.about:
        if case.record.captures.get(stage) == "eager":
            continue
        for run in (r for r in case.record.runs if r.stage == stage):
            told = run.form is not None and (run.form.kind == "graph" or run.form.reason)
            if not told:
                how = "in no form that is told" if run.form is None else f"as {run.form.kind}"
                yield case.says(
                    f"{where(run)} ran {how}, without a reason",
                    'say `form="graph"`, or `form="eager", reason="…"`',
                    run,
                )


def skips_gated(case: Case) -> Iterator[Violation]:
    for name in case.rule.about:
        for event in case.record.events:
            if isinstance(event, SkippedStep) and event.loop == name:
                yield from _accepted(case, event)
        yield from _silent_skips(case, name)


def _accepted(case: Case, event: SkippedStep) -> Iterator[Violation]:
    gate = case.record.pipeline.parity
    judged = [b for b in gate.bounds if b.op is not None] if gate is not None else []
    at = f"step {event.step + 1} of loop {event.loop} was skipped"
    for bound in judged:
        value = event.quality.get(bound.metric)
        if value is None or not meets(value, bound):
            found = "without" if value is None else f"with {bound.metric} {value:.6g}, not"
            yield case.says(
                f"{at} {found} {bound.metric} {bound.op} {bound.value}",
                "run the step, or measure what stands in for it and keep within the bound",
                step=event.step,
            )


def _silent_skips(case: Case, name: str) -> Iterator[Violation]:
    """Steps that left out a stage without saying so; the last may end early."""
    loop = case.record.pipeline.loop(name)
    wanted = [stage for stage in loop.runs if stage in case.record.bound]
    inside = [run for run in case.record.runs if run.loop == name]
    steps = [(step, list(runs)) for step, runs in groupby(inside, key=lambda run: run.step)]
    for step, runs in steps:
        missing = [stage for stage in wanted if stage not in {run.stage for run in runs}]
        early = loop.until is not None and step == steps[-1][0]
        if missing and not early:
            yield case.says(
                f"step {(step or 0) + 1} of loop {name} left out stage {missing[0]}",
                "run it, or record the step with `trace.skip(…)`",
                stage=missing[0],
                step=step,
            )


CHECKS: dict[str, Check] = {
    "every_stage_runs": every_stage_runs,
    "explicit_window": explicit_window,
    "read_only_in_loop": read_only_in_loop,
    "populated_before_loop": populated_before_loop,
    "declared_writers": declared_writers,
    "changes_only_in": changes_only_in,
    "changes_only_at": changes_only_at,
    "step_count": step_count,
    "fixed_loop": fixed_loop,
    "fixed_shapes": fixed_shapes,
    "static_storage": static_storage,
    "cost_reported": cost_reported,
    "fallback_reported": fallback_reported,
    "skips_gated": skips_gated,
}
"""Check -> what holds it; the names are those that a spec's rules use."""

"""Trace checks: whether a run of a pipeline keeps its rules.

Two ways lead to a report. ``run`` executes callables, one a stage, in the pipeline's
order, twice on the same windows. ``check`` judges records that a ``Trace`` made around a
host's own code.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from frtspec.runtime import trace_values
from frtspec.runtime.errors import Refusal
from frtspec.runtime.trace_checks import CHECKS, Case, Violation
from frtspec.runtime.trace_record import Form, Record, Trace
from frtspec.runtime.trace_spec import PipelineSpec, Stage, StageUse

StageCall = Callable[[MutableMapping[str, Any]], None]


@dataclass(frozen=True)
class Report:
    """What a run showed. ``violations``: everything that does not hold, in order of rules
    (the pipeline's own first, then what its declarations imply)."""

    record: Record
    again: Record | None
    violations: tuple[Violation, ...]

    @property
    def ok(self) -> bool:
        return not self.violations

    def seconds(self) -> dict[str, list[float]]:
        """Stage -> the time of each of its runs."""
        return self.record.seconds()

    def require(self) -> Report:
        """The report itself. Raises Refusal ``trace.broken`` unless every rule holds."""
        if self.ok:
            return self
        rows = "; ".join(str(v) for v in self.violations[:4])
        more = len(self.violations) - 4
        raise Refusal(
            "trace.broken",
            f"{self.record.pipeline.key} does not keep its rules: {rows}"
            + (f"; and {more} more" if more > 0 else ""),
            fix=self.violations[0].fix,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the pipeline, each rule with its violations, each stage with its times."""
        pipeline = self.record.pipeline
        rules = [*pipeline.rules, *pipeline.implied()]
        return {
            "pipeline": {
                "name": pipeline.name,
                "version": pipeline.version,
                "contract_digest": pipeline.contract_digest,
            },
            "rules": {
                rule.name: [vars(v) for v in self.violations if v.rule == rule.name]
                for rule in rules
            },
            "seconds": self.seconds(),
            "ok": self.ok,
        }

    def __str__(self) -> str:
        pipeline = self.record.pipeline
        count = len(pipeline.rules) + len(pipeline.implied())
        if self.ok:
            return f"{pipeline.key}: {count} rules hold over {len(self.record.runs)} stage runs"
        return "\n".join([f"{pipeline.key}:", *(f"  {v}" for v in self.violations)])


def check(record: Record, again: Record | None = None) -> Report:
    """Judge a record by every rule of its pipeline and by what its declarations imply.

    again  the record of a second run on the same content of every window; without it no
           rule about explicit noise can hold
    """
    pipeline = record.pipeline
    found: list[Violation] = []
    for rule in (*pipeline.rules, *pipeline.implied()):
        found += CHECKS[rule.check](Case(rule, record, again))
    return Report(record, again, tuple(_once(found)))


def _once(found: Sequence[Violation]) -> Iterator[Violation]:
    """One violation a fact: what a rule says, the implied ones need not repeat."""
    seen: set[tuple[object, ...]] = set()
    for violation in found:
        key = (violation.code, violation.stage, violation.value, violation.step, violation.what)
        if key not in seen:
            seen.add(key)
            yield violation


# ---------------------------------------------------------------- callables


class StageValues(MutableMapping[str, Any]):
    """What a stage sees: the values that it declares, by name. Raises Refusal
    ``trace.access`` for any other, and for putting in what it does not declare to write."""

    def __init__(self, stage: Stage, values: MutableMapping[str, Any], protect: bool) -> None:
        self._stage = stage
        self._values = values
        self._protect = protect

    def __getitem__(self, name: str) -> Any:
        self._declared(name, (*self._stage.reads, *self._stage.writes), "read")
        value = self._values[name]
        container = isinstance(value, list | dict | set)
        return copy.copy(value) if self._protect and container else value

    def __setitem__(self, name: str, value: Any) -> None:
        self._declared(name, self._stage.writes, "write")
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        self._declared(name, self._stage.writes, "write")
        self._values[name] = None

    def __iter__(self) -> Iterator[str]:
        declared = dict.fromkeys((*self._stage.reads, *self._stage.writes))
        return (name for name in declared if name in self._values)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _declared(self, name: str, names: Sequence[str], verb: str) -> None:
        if name not in names:
            raise Refusal(
                "trace.access",
                f"stage {self._stage.name} wants to {verb} {name}, which it does not declare",
                fix=f"it declares {', '.join(names) or 'nothing'}",
            )


def run(
    pipeline: PipelineSpec,
    stages: Mapping[str, StageCall],
    values: Mapping[str, Any],
    *,
    steps: Mapping[str, int] | None = None,
    before_step: Callable[[str, int, MutableMapping[str, Any]], None] | None = None,
    forms: Mapping[str, Form] | None = None,
    uses: Sequence[StageUse] | None = None,
    twice: bool = True,
) -> Report:
    """Run a pipeline stage by stage and judge the run.

    pipeline     as generated
    stages       stage -> function of the stage's values; it writes in place, or puts a new
                 value in by its name
    values       what windows, buffers and state regions hold before the run; see ``Trace``
    steps        loop -> number of steps, where the pipeline leaves it to the binding
    before_step  what the caller does before each step of a loop (``loop, step, values``),
                 such as writing the next timestep into its window
    forms        stage -> how it runs, ``Form("eager", reason)`` or ``Form("graph")``
    uses         the stages as a binding has them; None: those of ``stages``
    twice        run again on the same content, which rules about noise need

    The values that the caller handed in are left as the last run left them.
    Raises Refusal ``trace.name`` and ``trace.steps`` as ``Trace`` does, ``trace.access``
    when a stage touches what it does not declare.
    """
    bound: Sequence[str | StageUse] = uses if uses is not None else list(stages)
    live: dict[str, Any] = dict(values)
    kept = {name: trace_values.kept(name, value) for name, value in live.items()}
    protect = {use.name for use in uses or () if use.protect is not None}
    first = _Runner(pipeline, stages, live, protect, forms or {}, before_step)
    record = first.run(Trace(pipeline, live, steps=steps, bound=bound))
    if not twice:
        return check(record)
    live = dict(values)
    for name, content in kept.items():
        if not trace_values.restore(name, live[name], content):
            live[name] = _rebuilt(content)
    second = _Runner(pipeline, stages, live, protect, forms or {}, before_step)
    return check(record, second.run(Trace(pipeline, live, steps=steps, bound=bound)))


def _rebuilt(content: list[Any]) -> Any:
    return content[0] if len(content) == 1 else content


@dataclass
class _Runner:
    pipeline: PipelineSpec
    stages: Mapping[str, StageCall]
    values: dict[str, Any]
    protect: set[str]
    forms: Mapping[str, Form]
    before_step: Callable[[str, int, MutableMapping[str, Any]], None] | None

    def run(self, trace: Trace) -> Record:
        """Every bound stage in order; a loop's stages as often as it takes steps."""
        done: set[str] = set()
        for stage in self.pipeline.stages:
            loop = self.pipeline.loop_of(stage.name)
            if stage.name in done or stage.name not in self.stages:
                continue
            if loop is None:
                self.call(trace, stage)
                continue
            done |= set(loop.runs)
            for step in range(trace.steps.get(loop.name, 1 << 30)):
                if self.before_step is not None:
                    self.before_step(loop.name, step, self.values)
                if self.step(trace, loop.runs, loop.until):
                    break
        return trace.record()

    def step(self, trace: Trace, runs: Sequence[str], until: str | None) -> bool:
        """One step of a loop; True when it is to end."""
        for name in runs:
            stage = self.pipeline.stage(name)
            if stage is None or name not in self.stages:
                continue
            self.call(trace, stage)
            if until in stage.writes and _truth(self.values.get(until)):
                return True
        return False

    def call(self, trace: Trace, stage: Stage) -> None:
        form = self.forms.get(stage.name)
        seen = StageValues(stage, self.values, stage.name in self.protect)
        told = {} if form is None else {"form": form.kind, "reason": form.reason}
        with trace.stage(stage.name, **told):
            self.stages[stage.name](seen)


def _truth(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return bool(value.all())
    return bool(value)

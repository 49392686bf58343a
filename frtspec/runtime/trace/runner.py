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

from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts import host as hosts
from frtspec.runtime.trace import values as trace_values
from frtspec.runtime.trace.case import Case, Violation
from frtspec.runtime.trace.checks import CHECKS
from frtspec.runtime.trace.gates import Parity, Win, net_win, parity
from frtspec.runtime.trace.record import Form, Record, SkippedStep, StageRun, Trace
from frtspec.runtime.trace.spec import (
    At,
    Coverage,
    Flow,
    Loop,
    ParityGate,
    PipelineSpec,
    PipelineUse,
    Rule,
    Segment,
    Stage,
    StageUse,
    WinGate,
)

__all__ = [
    "At",
    "Coverage",
    "Flow",
    "Form",
    "Loop",
    "Parity",
    "ParityGate",
    "PipelineSpec",
    "PipelineUse",
    "Record",
    "Report",
    "Rule",
    "Segment",
    "SkippedStep",
    "Stage",
    "StageCall",
    "StageRun",
    "StageUse",
    "Trace",
    "Values",
    "Violation",
    "Win",
    "WinGate",
    "attached",
    "check",
    "modules",
    "net_win",
    "parity",
    "run",
]

StageCall = Callable[[MutableMapping[str, Any]], None]
Values = Mapping[str, Any] | Callable[[], Mapping[str, Any]]


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
    """What a stage sees: the values that it declares, by name; None for one that may be
    absent and is. Raises Refusal ``trace.access`` for any other, and for putting in what it
    does not declare to write."""

    def __init__(self, stage: Stage, values: MutableMapping[str, Any], protect: bool) -> None:
        self._stage = stage
        self._values = values
        self._protect = protect

    def __getitem__(self, name: str) -> Any:
        self._declared(name, (*self._stage.reads, *self._stage.writes), "read")
        if name not in self._values and name not in self._stage.maybe:
            raise Refusal(
                "trace.access",
                f"stage {self._stage.name} reads {name}, and nobody handed it in",
                fix=f"put {name} into the values of the run",
            )
        value = self._values.get(name)
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
    values: Values,
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
    values       what windows, buffers and state regions hold before the run, see ``Trace``; or
                 a function that makes them, called before each run
    steps        loop -> number of steps, where the pipeline leaves it to the binding
    before_step  what the caller does before each step of a loop (``loop, step, values``),
                 such as writing the next timestep into its window
    forms        stage -> how it runs, ``Form("eager", reason)`` or ``Form("graph")``
    uses         the stages as a binding has them; None: those of ``stages``
    twice        run again on the same content, which rules about noise need

    The values that the caller handed in are left as the last run left them.
    Raises Refusal ``trace.name`` and ``trace.steps`` as ``Trace`` does, ``trace.access``
    when a stage touches what it does not declare, ``trace.restore`` when a value has
    changed so much that its content can't be put back for the second run.
    """
    bound: Sequence[str | StageUse] = uses if uses is not None else list(stages)
    protect = {use.name for use in uses or () if use.protect is not None}

    def once(live: dict[str, Any]) -> Record:
        runner = _Runner(pipeline, stages, live, protect, forms or {}, before_step)
        return runner.run(Trace(pipeline, live, steps=steps, bound=bound))

    given = dict(values() if callable(values) else values)
    kept = {name: trace_values.kept(name, value) for name, value in given.items()}
    record = once(dict(given))
    if not twice:
        return check(record)
    if callable(values):
        return check(record, once(dict(values())))
    for name, content in kept.items():
        if not trace_values.restore(name, given[name], content):
            raise Refusal(
                "trace.restore",
                f"{name} has other shapes than before the run: its content can't be put back",
                fix="hand in a function that makes the values, not the values",
            )
    return check(record, once(dict(given)))


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


# ---------------------------------------------------------------- on a host


def modules(use: PipelineUse, model: Any) -> dict[str, torch.nn.Module]:
    """Stage -> its module on this model, for the stages that lie at one.

    Raises Refusal ``trace.imported`` when the binding was never verified, ``host.path``
    when a stage or a value of one lies at a module that is not there.
    """
    reason = use.imported or use.pipeline.imported
    if reason is not None:
        raise Refusal(
            "trace.imported",
            f"{use.pipeline.key} on {use.binding} was imported and not verified: {reason}",
            fix="verify it, then say `status draft` in its spec and generate again",
        )
    found: dict[str, torch.nn.Module] = {}
    for stage in use.stages(model):
        if stage.path is not None:
            found[stage.name] = hosts.submodule(model, stage.path)
        for at in (stage.flows or {}).values():
            if at.place is not None:
                hosts.submodule(model, at.place.path)
    return found


def attached(
    use: PipelineUse,
    model: Any,
    values: Mapping[str, Any],
    *,
    steps: Mapping[str, int] | None = None,
) -> Trace:
    """A trace of the pipeline of a live model, with the stages and steps of its binding.

    steps  loop -> number of steps, instead of what the host's config says

    Raises what ``modules`` and ``Trace`` raise.
    """
    modules(use, model)
    counts = {**use.steps(model), **(steps or {})}
    return Trace(use.pipeline, values, steps=counts, bound=use.stages(model))

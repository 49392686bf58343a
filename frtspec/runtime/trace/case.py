"""What a trace check gets and gives: a rule on a record, and violations of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from frtspec.runtime.trace.record import Record, StageRun
from frtspec.runtime.trace.spec import Rule


@dataclass(frozen=True)
class Violation:
    """One thing that does not hold.

    code   ``trace.<check>``
    rule   the pipeline's name of the rule
    stage, value, step   where; None where it is about the whole run
    what   what was found, one sentence; ``fix``: what to do about it
    """

    code: str
    rule: str
    what: str
    fix: str
    stage: str | None = None
    value: str | None = None
    step: int | None = None

    def __str__(self) -> str:
        return f"{self.code} ({self.rule}): {self.what}; {self.fix}"


@dataclass(frozen=True)
class Case:
    """A rule on a record."""

    rule: Rule
    record: Record
    again: Record | None

    def says(
        self,
        what: str,
        fix: str,
        run: StageRun | None = None,
        *,
        stage: str | None = None,
        value: str | None = None,
        step: int | None = None,
    ) -> Violation:
        return Violation(
            code=f"trace.{self.rule.check}",
            rule=self.rule.name,
            what=what,
            fix=fix,
            stage=run.stage if run is not None else stage,
            value=value,
            step=run.step if run is not None else step,
        )


Check = Callable[[Case], Iterator[Violation]]


def where(run: StageRun) -> str:
    """``stage denoise (step 2 of loop denoising)``; steps count from 1 for people."""
    if run.loop is None or run.step is None:
        return f"stage {run.stage}"
    return f"stage {run.stage} (step {run.step + 1} of loop {run.loop})"


def in_loops(record: Record) -> Iterator[StageRun]:
    return (run for run in record.runs if run.loop is not None)


def pairs(runs: Sequence[StageRun]) -> Iterator[tuple[StageRun, StageRun]]:
    return pairwise(runs)


def between(before: StageRun, after: StageRun, value: str) -> bool:
    """Whether a value changed after one run and before the next."""
    old, new = before.after.get(value), after.before.get(value)
    return old is not None and new is not None and old.bits != new.bits

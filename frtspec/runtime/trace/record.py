"""The record of a pipeline's run: which stage ran when, and what it changed.

A ``Trace`` is told of each stage by a ``with`` block (or wraps the function or module
that is the stage). Around each it takes the bits, shapes and places of every value. The
steps of a loop are counted by its stages: a step begins where its first stage begins anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.runtime.errors import Refusal
from frtspec.runtime.trace import random as trace_random
from frtspec.runtime.trace import values as trace_values
from frtspec.runtime.trace.spec import Loop, PipelineSpec, StageUse
from frtspec.runtime.trace.values import Print

Prints = Mapping[str, Print]


@dataclass(frozen=True)
class Form:
    """How a stage ran: ``graph`` or ``eager``, and for eager the reason."""

    kind: str
    reason: str | None = None


@dataclass(frozen=True)
class StageRun:
    """One run of a stage. ``step``: of its loop, from 0; None outside of one."""

    stage: str
    loop: str | None
    step: int | None
    seconds: float | None
    before: Prints
    after: Prints
    form: Form | None = None
    drew: tuple[str, ...] = ()

    def changed(self, name: str) -> bool:
        return _differs(self.before, self.after, name)


@dataclass(frozen=True)
class SkippedStep:
    """A step of a loop that ran no stage, and how close its stand-in came: metric -> value."""

    loop: str
    step: int
    quality: Mapping[str, float]


@dataclass(frozen=True)
class Record:
    """Everything of one run, as data.

    bound     the stages that this host has
    steps     loop -> number of steps it was told to take
    captures  stage -> how the binding captures it
    events    in order of time
    outputs   value -> its content after each run that wrote it (cadence token), or the last
    """

    pipeline: PipelineSpec
    bound: tuple[str, ...]
    steps: Mapping[str, int]
    captures: Mapping[str, str]
    events: tuple[StageRun | SkippedStep, ...]
    outputs: Mapping[str, tuple[tuple[Any, ...], ...]] = field(default_factory=dict)

    @property
    def runs(self) -> tuple[StageRun, ...]:
        return tuple(event for event in self.events if isinstance(event, StageRun))

    def seconds(self) -> dict[str, list[float]]:
        """Stage -> the time of each of its runs."""
        found: dict[str, list[float]] = {}
        for run in self.runs:
            if run.seconds is not None:
                found.setdefault(run.stage, []).append(run.seconds)
        return found


def _differs(before: Prints, after: Prints, name: str) -> bool:
    return name in before and name in after and before[name].bits != after[name].bits


class Trace:
    """Records one run of a pipeline.

    pipeline  the pipeline as generated
    values    window, buffer or state region -> what is in it: tensors, containers of
              tensors, plain values, or a function that returns these. What is missing is
              not looked at. A dict is read anew each time, so stages may put in new ones
    steps     loop -> number of steps, where the pipeline leaves it to the binding
    bound     the stages this host has, or their uses; None: those that are not optional

    Raises Refusal ``trace.imported`` when the pipeline was never verified, ``trace.name``
    for a name that it does not have, ``trace.steps`` for a loop without a count.
    """

    def __init__(
        self,
        pipeline: PipelineSpec,
        values: Mapping[str, Any],
        *,
        steps: Mapping[str, int] | None = None,
        bound: Sequence[str | StageUse] | None = None,
    ) -> None:
        if pipeline.imported is not None:
            raise Refusal(
                "trace.imported",
                f"pipeline {pipeline.key} was imported and not verified: {pipeline.imported}",
                fix="verify it, then say `status draft` in its spec and generate again",
            )
        self.pipeline = pipeline
        self.values = values
        uses = [s for s in bound or () if isinstance(s, StageUse)]
        names = [s.name if isinstance(s, StageUse) else s for s in bound or ()]
        self.bound = tuple(names or (s.name for s in pipeline.stages if not s.optional))
        self.captures = {use.name: use.capture for use in uses if use.capture is not None}
        self.steps = _counts(pipeline, self.bound, steps or {})
        for name in values:
            self._known("value", name, pipeline.names())
        for name in self.bound:
            self._known("stage", name, [s.name for s in pipeline.stages])
        self._events: list[StageRun | SkippedStep] = []
        self._outputs: dict[str, list[tuple[Any, ...]]] = {}
        self._running: str | None = None

    def _known(self, what: str, name: str, known: Sequence[str]) -> None:
        if name not in known:
            raise Refusal(
                "trace.name",
                f"pipeline {self.pipeline.key} has no {what} {name!r}",
                fix=f"it has {', '.join(known)}",
            )

    # ------------------------------------------------------------ recording

    @contextmanager
    def stage(
        self, name: str, *, form: str | None = None, reason: str | None = None
    ) -> Iterator[None]:
        """Around one run of a stage. ``form``: graph or eager; ``reason``: why eager.

        A run that raises is not recorded. Raises Refusal ``trace.name`` for a stage that is
        not bound, ``trace.nested`` for one inside another.
        """
        self._known("bound stage", name, self.bound)
        if self._running is not None:
            raise Refusal(
                "trace.nested",
                f"stage {name} begins while stage {self._running} runs",
                fix="stages follow each other; leave the inner one to the outer",
            )
        devices = self._devices()
        before = self._prints()
        random = trace_random.generators(devices)
        self._running = name
        try:
            _wait(devices)
            start = time.perf_counter()
            yield
            _wait(devices)
            seconds = time.perf_counter() - start
        finally:
            self._running = None
        loop, step = self._place(name)
        run = StageRun(
            stage=name,
            loop=loop,
            step=step,
            seconds=seconds,
            before=before,
            after=self._prints(),
            form=None if form is None else Form(form, reason),
            drew=trace_random.drawn(random, trace_random.generators(devices)),
        )
        self._events.append(run)
        self._keep(name)

    def skip(self, loop: str, quality: Mapping[str, float]) -> None:
        """A step of a loop that ran no stage; ``quality``: metrics of what stood in for it."""
        self._known("loop", loop, [item.name for item in self.pipeline.loops])
        self._events.append(SkippedStep(loop, self._next_step(loop), dict(quality)))

    def wrap(self, name: str, function: Callable[..., Any], **form: str) -> Callable[..., Any]:
        """``function``, each call of which is a run of the stage; ``form`` as for ``stage``."""

        def traced(*args: Any, **kwargs: Any) -> Any:
            with self.stage(name, **form):
                return function(*args, **kwargs)

        return traced

    @contextmanager
    def watching(self, modules: Mapping[str, nn.Module], **form: str) -> Iterator[Trace]:
        """Inside the block, each call of a module is a run of its stage. ``modules``: stage
        -> module. Raises Refusal ``trace.shared`` when two stages are one module."""
        if len({id(module) for module in modules.values()}) != len(modules):
            raise Refusal(
                "trace.shared",
                f"stages {', '.join(modules)} share a module: its calls don't tell them apart",
                fix="write `with trace.stage(…):` around each",
            )
        blocks: dict[str, Any] = {}
        handles = []

        def enter(name: str) -> Callable[..., None]:
            def hook(module: nn.Module, args: Any) -> None:
                blocks[name] = self.stage(name, **form)
                blocks[name].__enter__()

            return hook

        def leave(name: str) -> Callable[..., None]:
            def hook(module: nn.Module, args: Any, output: Any) -> None:
                blocks.pop(name).__exit__(None, None, None)

            return hook

        try:
            for name, module in modules.items():
                handles.append(module.register_forward_pre_hook(enter(name)))
                handles.append(module.register_forward_hook(leave(name)))
            yield self
        finally:
            for handle in handles:
                handle.remove()
            self._running = None

    def record(self) -> Record:
        """What was recorded so far."""
        outputs = {name: tuple(kept) for name, kept in self._outputs.items()}
        return Record(
            self.pipeline, self.bound, self.steps, self.captures, tuple(self._events), outputs
        )

    # ------------------------------------------------------------ inside

    def _prints(self) -> dict[str, Print]:
        return {name: trace_values.fingerprint(name, value) for name, value in self.values.items()}

    def _devices(self) -> set[torch.device]:
        found = [
            t for name, value in self.values.items() for t in trace_values.tensors(name, value)
        ]
        return {t.device for t in found if isinstance(t, Tensor)}

    def _keep(self, stage: str) -> None:
        """The content of the outputs that the parity gate is on, where this stage wrote them."""
        gate = self.pipeline.parity
        declared = self.pipeline.stage(stage)
        if gate is None or declared is None:
            return
        for name in gate.on:
            if name in declared.writes and name in self.values:
                content = tuple(trace_values.kept(name, self.values[name]))
                history = self._outputs.setdefault(name, [])
                if self.pipeline.flow(name).cadence != "token":
                    history.clear()
                history.append(content)

    def _place(self, stage: str) -> tuple[str | None, int | None]:
        """The loop and step that a run of a stage belongs to."""
        loop = self.pipeline.loop_of(stage)
        if loop is None:
            return None, None
        last = self._last_in(loop)
        if last is None:
            return loop.name, 0
        if isinstance(last, StageRun) and _later(loop, last.stage, stage):
            return loop.name, last.step
        return loop.name, self._next_step(loop.name)

    def _last_in(self, loop: Loop) -> StageRun | SkippedStep | None:
        inside = (e for e in reversed(self._events) if e.loop == loop.name)
        return next(inside, None)

    def _next_step(self, loop: str) -> int:
        last = self._last_in(self.pipeline.loop(loop))
        return 0 if last is None or last.step is None else last.step + 1


def _later(loop: Loop, before: str, now: str) -> bool:
    """Whether ``now`` can follow ``before`` in one step."""
    return loop.runs.index(now) > loop.runs.index(before)


def _counts(
    pipeline: PipelineSpec, bound: Sequence[str], given: Mapping[str, int]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for loop in pipeline.loops:
        count = loop.steps if loop.steps is not None else given.get(loop.name)
        if count is not None:
            found[loop.name] = count
        elif loop.until is None and set(loop.runs) <= set(bound):
            raise Refusal(
                "trace.steps",
                f"nothing says how many steps loop {loop.name} of {pipeline.key} takes",
                fix=f"pass steps={{{loop.name!r}: …}}",
            )
    unknown = given.keys() - {loop.name for loop in pipeline.loops}
    if unknown:
        raise Refusal(
            "trace.name",
            f"pipeline {pipeline.key} has no loop {min(unknown)!r}",
            fix=f"it has {', '.join(loop.name for loop in pipeline.loops) or 'none'}",
        )
    return found


def _wait(devices: set[torch.device]) -> None:
    for device in devices:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

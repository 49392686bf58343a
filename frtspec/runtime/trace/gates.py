"""The gates of a pipeline: its outputs and its times against a baseline's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor

from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating.metrics import broken, compare, violations
from frtspec.runtime.trace.record import Record, StageRun
from frtspec.runtime.trace.spec import PipelineSpec


@dataclass(frozen=True)
class Parity:
    """``metrics``: output -> metric -> number, over all that was compared. ``misses``: one
    sentence for each bound that is not met. ``failed``: why there are no numbers, or None."""

    metrics: Mapping[str, Mapping[str, float]]
    misses: tuple[str, ...]
    failed: str | None = None

    @property
    def ok(self) -> bool:
        return self.failed is None and not self.misses


def parity(baseline: Record, treated: Record) -> Parity:
    """The outputs of a treated run against those of the baseline's.

    Raises Refusal ``trace.gate`` when the pipeline has no parity gate, ``trace.baseline``
    when the two runs did not start from the same windows (or took other tokens), so that a
    difference would mean nothing.
    """
    gate = baseline.pipeline.parity
    if gate is None:
        raise Refusal(
            "trace.gate",
            f"pipeline {baseline.pipeline.key} has no parity gate",
            fix="add `gate parity on …` to its spec and generate again",
        )
    _comparable(gate.against, baseline, treated)
    wanted = {bound.metric for bound in gate.bounds}
    metrics: dict[str, dict[str, float]] = {}
    for name in gate.on:
        if name not in baseline.outputs and name not in treated.outputs:
            continue
        pairs, fault = _pairs(name, baseline, treated)
        if fault is not None:
            return Parity(metrics, (), fault)
        metrics[name] = {k: v for k, v in _metrics(pairs).items() if k in wanted}
    if not metrics:
        return Parity({}, (), f"neither run wrote {' or '.join(gate.on)}")
    misses = [
        f"{name}: {miss}" for name, row in metrics.items() for miss in violations(row, gate.bounds)
    ]
    return Parity(metrics, tuple(misses))


def _comparable(against: str, baseline: Record, treated: Record) -> None:
    pipeline = baseline.pipeline
    if treated.pipeline.contract_digest != pipeline.contract_digest:
        raise Refusal(
            "trace.baseline",
            f"one run is of {pipeline.key} and the other of {treated.pipeline.key}",
            fix="record both with the same generated pipeline",
        )
    if against == "host_eager_same_tokens":
        names = [f.name for f in pipeline.flows if f.cadence == "token" and f.mode == "swap"]
        _same(baseline, treated, names, "took other tokens", after=True)
        return
    names = [f.name for f in pipeline.flows if f.caller and f.kind == "window"]
    _same(baseline, treated, names, "had other content in its windows", after=False)


def _same(
    baseline: Record, treated: Record, names: Sequence[str], what: str, *, after: bool
) -> None:
    def seen(run: StageRun, name: str) -> str | None:
        state = (run.after if after else run.before).get(name)
        return None if state is None else state.bits

    for one, two in zip(baseline.runs, treated.runs, strict=False):
        for name in names:
            if one.stage == two.stage and seen(one, name) != seen(two, name):
                raise Refusal(
                    "trace.baseline",
                    f"the treated run {what} ({name}, at stage {one.stage})",
                    fix="feed both runs the same: the baseline's tokens, or the same windows",
                )


def _pairs(
    name: str, baseline: Record, treated: Record
) -> tuple[list[tuple[Tensor, Tensor]], str | None]:
    """(reference, treated) of every tensor of an output; or why they can't be compared."""
    ours = [t for row in treated.outputs.get(name, ()) for t in row if isinstance(t, Tensor)]
    theirs = [t for row in baseline.outputs.get(name, ()) for t in row if isinstance(t, Tensor)]
    if len(ours) != len(theirs) or not ours:
        return [], f"{name}: {len(ours)} tensors, the baseline has {len(theirs)}"
    pairs = list(zip(theirs, ours, strict=True))
    for reference, found in pairs:
        fault = broken(name, reference.float(), found.float())
        if fault is not None:
            return [], fault
    return pairs, None


def _metrics(pairs: Sequence[tuple[Tensor, Tensor]]) -> dict[str, float]:
    """Each metric over every pair together: the worst distance, the mean cosine, the share
    of positions whose most likely token is the same."""
    rows = [compare(reference.float(), found.float()) for reference, found in pairs]
    scores = [row.metrics for row in rows]
    agree = [(r.argmax(-1) == f.argmax(-1)).float().reshape(-1) for r, f in pairs if r.dim()]
    found = {
        "cosine": sum(s["cosine"] for s in scores) / len(scores),
        "max_abs": max(s["max_abs"] for s in scores),
        "rel_l2": max(s["rel_l2"] for s in scores),
    }
    if agree:
        found["token_agreement"] = float(torch.cat(agree).mean())
    return found


# ---------------------------------------------------------------- times


@dataclass(frozen=True)
class Win:
    """``times``: metric -> (baseline, treated) in seconds; ``ratios``: baseline / treated."""

    times: Mapping[str, tuple[float, float]]

    @property
    def ratios(self) -> dict[str, float]:
        return {name: base / ours for name, (base, ours) in self.times.items() if ours > 0}

    def wins(self, at_least: float = 1.0) -> bool:
        """Whether every metric of the whole (stages apart) is at least this much faster."""
        whole = {k: v for k, v in self.ratios.items() if not k.startswith("stage_latency.")}
        return bool(whole) and all(ratio >= at_least for ratio in whole.values())


def net_win(baseline: Record, treated: Record) -> Win:
    """The times that the pipeline's gate names, of both runs. ``stage_latency`` is told for
    each stage that both ran (``stage_latency.decode``).

    Raises Refusal ``trace.gate`` when the pipeline has no such gate, ``trace.times`` when a
    run has no times.
    """
    gate = baseline.pipeline.net_win
    if gate is None:
        raise Refusal(
            "trace.gate",
            f"pipeline {baseline.pipeline.key} has no net_win gate",
            fix="add `gate net_win per …` to its spec and generate again",
        )
    for which, record in (("baseline", baseline), ("treated", treated)):
        if not record.runs or any(run.seconds is None for run in record.runs):
            raise Refusal(
                "trace.times",
                f"the {which} run has stages without a time",
                fix="record it with a Trace, which takes the times",
            )
    ours = dict(_times(treated, gate.metrics))
    theirs = dict(_times(baseline, gate.metrics))
    return Win({name: (theirs[name], ours[name]) for name in theirs if name in ours})


def _times(record: Record, metrics: Sequence[str]) -> Iterator[tuple[str, float]]:
    pipeline = record.pipeline
    for metric in metrics:
        if metric == "stage_latency":
            for stage, seconds in record.seconds().items():
                yield f"stage_latency.{stage}", median(seconds)
        elif metric in ("tick_latency", "request_latency"):
            yield metric, sum(_seconds(run) for run in record.runs)
        elif metric == "ttft":
            yield metric, _to_first(pipeline, record)
        elif steps := _steps(record):  # tpot, step_latency
            yield metric, median(steps)


def _to_first(pipeline: PipelineSpec, record: Record) -> float:
    """From the start to the end of the first stage of the first step of a loop."""
    total = 0.0
    for run in record.runs:
        total += _seconds(run)
        if run.loop is not None:
            break
    return total


def _steps(record: Record) -> list[float]:
    """The time of each whole step of the loops; a last step that ended early is left out."""
    found: dict[tuple[str, int], list[StageRun]] = {}
    for run in record.runs:
        if run.loop is not None and run.step is not None:
            found.setdefault((run.loop, run.step), []).append(run)
    full = max((len(runs) for runs in found.values()), default=0)
    return [sum(map(_seconds, runs)) for runs in found.values() if len(runs) == full]


def _seconds(run: StageRun) -> float:
    return run.seconds or 0.0


def summary(win: Win) -> list[dict[str, Any]]:
    """One row a metric, as plain data."""
    ratios = win.ratios
    return [
        {"metric": name, "baseline_s": base, "treated_s": ours, "ratio": ratios.get(name)}
        for name, (base, ours) in win.times.items()
    ]

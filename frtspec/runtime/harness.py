"""Synthetic gate cases: an impl against its structure's reference, without a host.

What decides on a host is the gate that ``attach`` runs on its real activations. This
harness answers an earlier question, on any machine: does an impl do, in every variant
and at several sizes, what its structure says? Random activations have no outliers, so
a case that holds here can still miss its threshold on a host.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch import Tensor

from frtspec.dims import Axis, Shape, instance
from frtspec.runtime import metrics, numerics
from frtspec.runtime.impl import BoundImpl
from frtspec.runtime.reference import named
from frtspec.runtime.spec import Bound, RungSpec, StructureSpec

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

Value = Tensor | list[Tensor]


@dataclass(frozen=True)
class Case:
    """One combination of variants, which optional values are given, and the sizes.

    A repeated dim has one size a position: ``N[0]``, ``N[1]``…
    """

    variants: Mapping[str, str]
    given: tuple[str, ...]
    sizes: Mapping[str, int]

    def __str__(self) -> str:
        parts = [f"{axis}={value}" for axis, value in self.variants.items()]
        parts += [f"with {name}" for name in self.given]
        return " ".join([*parts, *(f"{dim}={size}" for dim, size in self.sizes.items())])


@dataclass(frozen=True)
class Result:
    """One impl on one case. ``verdict``: pass, fail (a bound is missed), failed (there is
    no number: a NaN, a changed shape) or not_applicable (``reason`` says why)."""

    impl: str
    rung: str
    case: Case
    verdict: str
    reason: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    seam: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        numbers = [f"{name}={value:.6g}" for name, value in self.metrics.items()]
        if "cosine" in self.seam:
            numbers.append(f"seam cosine={self.seam['cosine']:.6g}")
        why = [self.reason] if self.verdict != "pass" else []
        text = "  ".join([str(self.case), " ".join(numbers), *why])
        return f"{self.verdict:<14} {self.impl} on {self.rung}: {text}"


def subsets(needed: Iterable[str], free: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """What to give: all that is needed with every free value, and with none of them."""
    base = tuple(needed)
    return (base, (*base, *free)) if free else (base,)


def run(
    spec: StructureSpec,
    cases: Sequence[Case],
    impls: Sequence[type[BoundImpl]],
    *,
    bounds: Sequence[Bound],
    params: Mapping[str, float] | None = None,
    rung: str = "emulate",
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
    seed: int = 0,
) -> list[Result]:
    """Judge every impl on every case.

    bounds held against the outputs of the whole structure, the impl in its place; an
           impl of a seam has to hold the seam's own gate too
    params values of the params that have no default
    rung   the kind of rung to run; one that needs a kernel package is not applicable here
    dtype  of the host; None: the first one that the impl admits
    """
    out = []
    for impl in impls:
        for number, case in enumerate(cases):
            generator = torch.Generator().manual_seed(seed + number)
            known = {**spec.params, **(params or {})}
            trial = _Trial(spec, case, impl, bounds, known, rung, torch.device(device), generator)
            out.append(trial.run(dtype))
    return out


def report(results: Sequence[Result], write: Callable[[str], Any] = print) -> int:
    """One line a result and a count of verdicts; 1 when some result did not hold, else 0."""
    for result in results:
        write(str(result))
    counts = {verdict: 0 for verdict in ("pass", "fail", "failed", "not_applicable")}
    for result in results:
        counts[result.verdict] += 1
    write(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if counts["fail"] or counts["failed"] else 0


@dataclass
class _Trial:
    spec: StructureSpec
    case: Case
    impl: type[BoundImpl]
    bounds: Sequence[Bound]
    params: Mapping[str, float]
    rung: str
    device: torch.device
    generator: torch.Generator

    def run(self, dtype: torch.dtype | None) -> Result:
        facts = self.impl.SPEC
        for axis, served in facts.only.items():
            if self.case.variants[axis] not in served:
                return self._result("not_applicable", f"{facts.name} serves {axis} {served} only")
        rung = self._rung()
        if rung is None:
            return self._result(
                "not_applicable", f"{facts.name} has no rung {self.rung} to run here"
            )
        broken = [rule.text for rule in rung.envelope if not self._holds(rule.check)]
        if broken:
            return self._result("not_applicable", f"outside the envelope: {', '.join(broken)}")
        return self._judge(rung, dtype or self._admitted())

    def _rung(self) -> RungSpec | None:
        rungs = (*self.impl.SPEC.rungs, *(r for b in self.impl.SPEC.bands for r in b.rungs))
        return next((r for r in rungs if r.kind == self.rung and r.package is None), None)

    def _holds(self, check: Callable[[Mapping[str, int]], bool]) -> bool:
        return check(self.case.sizes)

    def _admitted(self) -> torch.dtype:
        names = next(iter(self.impl.SPEC.admits.values()), ("bf16",))
        return DTYPES[names[0]]

    def _judge(self, rung: RungSpec, dtype: torch.dtype) -> Result:
        inputs = dict(self._values(self.spec.inputs, dtype, weights=False))
        slots = dict(self._values(self.spec.slots, dtype, weights=True))
        sizes = {name: self.case.sizes[dim] for name, dim in self.spec.sizes.items()}
        calls: dict[str, Any] = {**inputs, **slots, **sizes, **self.case.variants, **self.params}
        amax: dict[str, float] = {}

        def measure(point: str, value: Tensor) -> None:
            amax[point] = max(amax.get(point, 0.0), float(value.detach().abs().max()))

        reference = self.spec.reference(**calls, record=measure)
        impl = self._packed(slots, amax).on(rung)
        treated, pieces = self._treated(impl, rung, inputs, calls)
        scores = _scores(self.spec.outputs, reference, treated)
        if scores.broken or (pieces is not None and pieces.broken):
            return self._result("failed", scores.broken or str(pieces and pieces.broken))
        missed = metrics.violations(scores.metrics, self.bounds)
        seam = {} if pieces is None else pieces.metrics
        if self.impl.SPEC.seam is not None:
            gates = self.spec.seams[self.impl.SPEC.seam].gates
            missed += [f"seam: {text}" for text in metrics.violations(seam, gates)]
        verdict, reason = ("fail", "; ".join(missed)) if missed else ("pass", "every bound holds")
        named_ones = [b.metric for b in self.bounds if b.metric in scores.metrics]
        found = {metric: scores.metrics[metric] for metric in named_ones}
        return self._result(verdict, reason, found, seam)

    def _treated(
        self, impl: BoundImpl, rung: RungSpec, inputs: Mapping[str, Value], calls: dict[str, Any]
    ) -> tuple[Any, metrics.Scores | None]:
        """The boundary with the impl in its place; for a seam, the cut's own scores too."""
        run = _on_rows(impl, rung)
        if self.impl.SPEC.seam is None:
            return run(*inputs.values()), None
        seam = self.spec.seams[self.impl.SPEC.seam]
        names = (*seam.slots, *seam.variants, *seam.params)
        own = {name: calls[name] for name in names if name in calls}
        kept: list[metrics.Scores] = []

        def in_place(*sources: Tensor) -> Any:
            result = run(*sources)
            kept.append(_scores(seam.targets, seam.call(*sources, **own), result))
            return result

        treated = self.spec.reference(**calls, **{f"{seam.name}_with": in_place})
        return treated, kept[0]

    def _packed(self, slots: Mapping[str, Value], amax: Mapping[str, float]) -> BoundImpl:
        known: dict[str, Any] = {
            **self.params,
            **self.case.variants,
            **dict.fromkeys(self.spec.optional),
            **slots,
        }
        for name, (point, _) in self.impl.SPEC.scales.items():
            known[name] = numerics.fp8_scale(amax[point]).to(self.device)
        wanted = inspect.signature(self.impl).parameters
        return self.impl(**{name: known[name] for name in wanted if name in known})

    # ------------------------------------------------------------ random values

    def _values(
        self, names: Sequence[str], dtype: torch.dtype, *, weights: bool
    ) -> Iterator[tuple[str, Value]]:
        """Random tensors for what exists in this case; a repeated value is a list."""
        for name in names:
            if name in self.spec.optional and name not in self.case.given:
                continue
            shape = self.spec.shapes[name]
            count = self._repeats(shape)
            if count is None:
                yield name, self._tensor(shape, dtype, weights)
            else:
                shapes = [instance(shape, position) for position in range(count)]
                yield name, [self._tensor(each, dtype, weights) for each in shapes]

    def _repeats(self, shape: Shape) -> int | None:
        """How many tensors a repeated value has; None for one that is not repeated."""
        for symbol in (s for axis in shape for s in axis.symbols()):
            if symbol.endswith("]"):
                return sum(
                    key.startswith(f"{symbol.partition('[')[0]}[") for key in self.case.sizes
                )
        return None

    def _tensor(self, shape: Shape, dtype: torch.dtype, weights: bool) -> Tensor:
        sizes = [self._size(axis) for axis in shape]
        value = torch.randn(sizes, generator=self.generator)
        if weights and len(sizes) == 1:
            value = 0.5 + 0.1 * value
        elif weights:  # half a unit of gain: a trained block adds little to its residual
            value = 0.5 * value * prod(sizes[:-1]) ** -0.5
        return value.to(self.device, dtype)

    def _size(self, axis: Axis) -> int:
        return axis.alternatives[-1].value(self.case.sizes) if axis.alternatives else 1

    def _result(
        self,
        verdict: str,
        reason: str,
        found: Mapping[str, float] | None = None,
        seam: Mapping[str, float] | None = None,
    ) -> Result:
        return Result(
            self.impl.SPEC.name, self.rung, self.case, verdict, reason, found or {}, seam or {}
        )


def _on_rows(impl: BoundImpl, rung: RungSpec) -> Callable[..., Any]:
    """The rung as a call that returns the dtype it was given, as the host's module would."""
    method = getattr(impl, rung.run)

    def call(*inputs: Tensor) -> Any:
        result = method(*inputs)
        if isinstance(result, Tensor):
            return result.to(inputs[0].dtype)
        return tuple(item.to(inputs[0].dtype) for item in result)

    return call


def _scores(names: Sequence[str], reference: Any, treated: Any) -> metrics.Scores:
    values = metrics.Values()
    values.add(named(names, reference), named(names, treated))
    return values.scores()

"""Synthetic gate cases: an impl against its structure's reference, without a host.

What decides on a host is the gate that ``attach`` runs on its real activations. This
harness answers an earlier question, on any machine: does an impl do, in every variant
and at several sizes, what its structure says? Random activations have no outliers, so
a case that holds here can still miss its threshold on a host.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import torch
from torch import Tensor

from frtspec.runtime import numerics, ops
from frtspec.runtime.dtypes import DTYPES
from frtspec.runtime.gating import baselines, metrics, selfcheck
from frtspec.runtime.gating.reference import named
from frtspec.runtime.gating.selfcheck import decoded, shared
from frtspec.runtime.gating.synthetic import InnerCase, Synthetic, Value
from frtspec.runtime.rungs.impl import BoundImpl
from frtspec.runtime.spec import Bound, RungSpec, StructureSpec

__all__ = ["Case", "InnerCase", "Result", "arms", "contract", "report", "run", "shared", "subsets"]


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
    inner: Sequence[Mapping[str, InnerCase]] = ({},),
    params: Mapping[str, float] | None = None,
    rung: str = "emulate",
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
    seed: int = 0,
) -> list[Result]:
    """Judge every impl on every case.

    bounds held against the outputs of the whole structure, the impl in its place; an
           impl of a seam has to hold the seam's own gate too. Where an impl has gates of
           its own, those take their place
    inner  how the structures in the spec's slots are set, one choice each: an impl is handed
           their references
    params values of the params that have no default
    rung   the kind of rung to run; one that needs a kernel package is not applicable here
    dtype  of the host; None: the first one that the impl admits
    """
    out = []
    for impl in impls:
        for (number, case), choice in product(enumerate(cases), inner):
            generator = torch.Generator().manual_seed(seed + number)
            known = {**spec.params, **(params or {})}
            place = torch.device(device)
            trial = _Trial(spec, case, impl, bounds, known, rung, place, generator, choice)
            out.append(trial.run(dtype))
    return out


def contract(
    spec: StructureSpec,
    cases: Sequence[Case],
    *,
    inner: Sequence[Mapping[str, InnerCase]] = ({},),
    params: Mapping[str, float] | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> list[Result]:
    """Run the reference itself on every case: whether it gives what the structure declares.

    inner   how the structures in its slots are set, one choice each

    Shapes and dtypes, finite numbers, inputs left as they were, and the storage of outputs
    that are an input's.
    """
    out = []
    for number, case in enumerate(cases):
        for choice in inner:
            generator = torch.Generator().manual_seed(seed + number)
            given = Synthetic(spec, case.given, case.sizes, generator, torch.device(device))
            known = {**spec.params, **(params or {})}
            problems = selfcheck.problems(given, case.variants, known, choice, dtype)
            verdict = "failed" if problems else "pass"
            reason = "; ".join(problems) or "gives what it declares"
            out.append(Result("the reference", "itself", case, verdict, reason))
    return out


def arms(
    spec: StructureSpec,
    case: Case,
    *,
    inner: Mapping[str, InnerCase] | None = None,
    params: Mapping[str, float] | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> dict[str, Callable[[], Any] | str]:
    """What the structure is to be faster than, each ready to be timed, or why it is not.

    An arm that can't be built here is a text: ``baseline_unavailable: …``.
    """
    generator = torch.Generator().manual_seed(seed)
    given = Synthetic(spec, case.given, case.sizes, generator, torch.device(device))
    known = {**spec.params, **(params or {})}
    calls = selfcheck.arguments(given, case.variants, known, inner or {}, dtype)
    return {
        name: baselines.arm(name, spec.reference, calls, torch.device(device))
        for name in spec.latency_against
    }


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
    inner: Mapping[str, InnerCase] = field(default_factory=dict)

    def run(self, dtype: torch.dtype | None) -> Result:
        facts = self.impl.SPEC
        rung = self._rung()
        if rung is None:
            return self._result(
                "not_applicable", f"{facts.name} has no rung {self.rung} to run here"
            )
        for axis, served in (*facts.only.items(), *rung.only.items()):
            if self.case.variants[axis] not in served:
                return self._result("not_applicable", f"{facts.name} serves {axis} {served} only")
        rules = [*(need.rule for need in self.impl.SPEC.needs), *rung.envelope]
        broken = [rule.text for rule in rules if not self._holds(rule.check)]
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
        given = Synthetic(self.spec, self.case.given, self.case.sizes, self.generator, self.device)
        wires = given.wires()
        found = dict(given.values(self.spec.inputs, dtype, weights=False)) | wires
        inputs = {name: found[name] for name in self.spec.inputs if name in found}
        scales = {wire.scale: wires[wire.scale] for wire in self.spec.wires.values()}
        slots = dict(given.values(self.spec.slots, dtype, weights=True))
        sizes = {name: self.case.sizes[dim] for name, dim in self.spec.sizes.items()}
        calls: dict[str, Any] = {
            **inputs,
            **slots,
            **sizes,
            **scales,
            **given.parts(dtype),
            **given.groups(self.inner, dtype),
            **self.case.variants,
            **self.params,
        }
        amax: dict[str, Tensor] = {}

        def measure(point: str, value: Tensor) -> None:
            found = value.detach().float().abs().reshape(-1, value.shape[-1]).amax(0)
            amax[point] = torch.maximum(amax.get(point, found), found)

        reference = self.spec.reference(**calls, record=measure)
        impl = self._packed(slots, amax).on(rung)
        treated, pieces = self._treated(impl, rung, inputs, calls)
        scores = _scores(
            self.spec.outputs,
            decoded(self.spec, reference, scales),
            decoded(self.spec, treated, scales),
        )
        unlike = [] if rung.kind == "emulate" else shared(self.spec, inputs, treated)
        if unlike:
            return self._result("failed", "; ".join(unlike))
        if scores.broken or (pieces is not None and pieces.broken):
            return self._result("failed", scores.broken or str(pieces and pieces.broken))
        gates = self.impl.SPEC.gates
        bounds = gates.get("boundary", self.bounds)
        missed = metrics.violations(scores.metrics, bounds)
        seam = {} if pieces is None else pieces.metrics
        if self.impl.SPEC.seam is not None:
            stated = gates.get("seam", self.spec.seams[self.impl.SPEC.seam].gates)
            missed += [f"seam: {text}" for text in metrics.violations(seam, stated)]
        verdict, reason = ("fail", "; ".join(missed)) if missed else ("pass", "every bound holds")
        named_ones = [b.metric for b in bounds if b.metric in scores.metrics]
        shown = {metric: scores.metrics[metric] for metric in named_ones}
        return self._result(verdict, reason, shown, seam)

    def _treated(
        self, impl: BoundImpl, rung: RungSpec, inputs: Mapping[str, Value], calls: dict[str, Any]
    ) -> tuple[Any, metrics.Scores | None]:
        """The boundary with the impl in its place; for a seam, the cut's own scores too."""
        run = _on_rows(impl, rung)
        if self.impl.SPEC.seam is None:
            read = inspect.signature(getattr(impl, rung.run)).parameters
            parts = {n: self._part(n, calls[n]) for n in self.impl.SPEC.parts if n in calls}
            own = {name: value for name, value in inputs.items() if name in read}
            return run(**own, **parts), None
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

    def _part(self, name: str, given: Any) -> Callable[..., Any]:
        """A part as the reference has it; of a structure in a slot, what its reference computes."""
        inner = self.spec.inner.get(name)
        if inner is None:
            part: Callable[..., Any] = given
            return part
        seam = None if inner.seam is None else inner.spec.seams[inner.seam]
        function = inner.spec.reference if seam is None else seam.call
        return ops.inner(name, function, given, ops.ignore, None, **inner.pins)

    def _packed(self, slots: Mapping[str, Value], amax: Mapping[str, Tensor]) -> BoundImpl:
        known: dict[str, Any] = {
            **self.params,
            **self.case.variants,
            **dict.fromkeys(self.spec.optional),
            **slots,
            **{name: self.case.sizes[dim] for name, dim in self.impl.SPEC.sizes.items()},
        }
        for name, scale in self.impl.SPEC.scales.items():
            known[name] = numerics.calibrated(scale.kind, amax[scale.point]).to(self.device)
        wanted = inspect.signature(self.impl).parameters
        return self.impl(**{name: known[name] for name in wanted if name in known})

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

    def call(*inputs: Tensor, **named: Any) -> Any:
        result = method(*inputs, **named)
        like = next(iter((*inputs, *named.values())))
        if isinstance(result, Tensor):
            return result.to(like.dtype)
        return tuple(None if item is None else item.to(like.dtype) for item in result)

    return call


def _scores(names: Sequence[str], reference: Any, treated: Any) -> metrics.Scores:
    values = metrics.Values()
    wanted = {n: v for n, v in named(names, reference).items() if v is not None}
    found = {n: v for n, v in named(names, treated).items() if v is not None}
    values.add(wanted, found)
    return values.scores()

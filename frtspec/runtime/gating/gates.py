"""The gates, kept apart because each answers another question.

    reference   does the structure, with the host's own weights, compute what the host
                computes here? (else the seat is not what its binding says it is)
    saturation  did calibration see the range that the judged samples use?
    parity      does the bound rung do the arithmetic its impl states?
    boundary    is that arithmetic close enough, over the structure's full boundary?
    host        what does the whole host lose?

A gate returns a ``GateResult`` and changes nothing. A NaN or an Inf on either side
is the verdict ``failed``: there is no number to hold against a bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from frtspec.runtime.gating import metrics
from frtspec.runtime.gating.percall import CallFigures, PerCall, told, worst_call
from frtspec.runtime.gating.reference import Pair, SeatReference, named
from frtspec.runtime.seats.forms import Form, Forms
from frtspec.runtime.seats.guard import Band
from frtspec.runtime.spec import Bound, ImplSpec, RungSpec, Seat, StructureSpec

if TYPE_CHECKING:
    from frtspec.runtime.observation.capture import SeatCapture
    from frtspec.runtime.observation.observe import Observation
    from frtspec.runtime.rungs.ladder import BoundSeat

CLIPS_FROM = 1.2
"""How far past its calibrated amax a point may go before clipping counts as a cause.

A static scale clips whatever lies past the calibrated amax. Two samplings of one
distribution differ by 1.2 and more without harm (1.56 was measured on a language model
whose boundary stayed above 0.9999), so clipping alone refuses nothing: the boundary
gate does, on the samples that clip, and clipping past this ratio is named as why.
"""


@dataclass(frozen=True)
class GateResult:
    """One gate's answer.

    verdict   pass, warn, low, fail (a bound is missed), failed (nothing can be
              measured) or not_applicable
    metrics   what was measured; ``bounds`` what it was held against
    also      further measurements that were not judged, by name
    label     which samples: ``held-out`` or ``fit residual``
    calls     of a seat that a sample calls several times: the figures of each call;
              ``metrics`` has the worst of them
    """

    gate: str
    verdict: str
    reason: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    bounds: tuple[Bound, ...] = ()
    also: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    label: str = ""
    calls: tuple[CallFigures, ...] = ()

    @property
    def holds(self) -> bool:
        return self.verdict in ("pass", "warn", "low", "not_applicable")


# ---------------------------------------------------------------- reference


def reference_agreement(reference: SeatReference, captures: Sequence[SeatCapture]) -> GateResult:
    """The structure's reference with the host's weights against what the host computed.

    Compared where a mistake can't hide behind a residual: at the seat's outputs, at
    the seat's inputs and at the boundary, each relative to its own size (rel_l2), call by call.
    """
    values: dict[str, PerCall] = {}
    tolerance: dict[str, float] = {}
    for capture in captures:
        for pair in reference.agreement(capture):
            values.setdefault(pair.what, PerCall()).add(
                capture.call, {pair.what: pair.host}, {pair.what: pair.reference}
            )
            tolerance.setdefault(pair.what, agreement_tolerance(pair))
    scores = {what: found.scores() for what, found in values.items()}
    unmeasured = [found.broken for found in scores.values() if found.broken]
    if unmeasured or not scores:
        reason = "; ".join(unmeasured) or "no call of the host was captured"
        return GateResult("reference", "failed", reason)
    distance = {what: found.metrics["rel_l2"] for what, found in scores.items()}
    bounds = tuple(Bound(what, "<=", tolerance[what]) for what in distance)
    calls = _distances(values)
    missed = [
        f"{bound.metric} is {distance[bound.metric]:.3g} away (rel_l2), {bound.value:.3g} is allowed"
        + _at(calls, bound.metric)
        for bound in bounds
        if not metrics.meets(distance[bound.metric], bound)
    ]
    if missed:
        return GateResult("reference", "fail", "; ".join(missed), distance, bounds, calls=calls)
    reason = f"host and reference agree at {', '.join(distance)}"
    notes = told(captures, calls)
    return GateResult("reference", "pass", reason, distance, bounds, notes=notes, calls=calls)


def _distances(values: Mapping[str, PerCall]) -> tuple[CallFigures, ...]:
    """Of each call, how far every place is; empty where there is one call."""
    by_call: dict[int, dict[str, float]] = {}
    for what, found in values.items():
        for row in found.figures():
            by_call.setdefault(row.call, {})[what] = row.metrics["rel_l2"]
    return tuple(CallFigures(call, row) for call, row in sorted(by_call.items()))


def _at(calls: Sequence[CallFigures], metric: str) -> str:
    """Which call is worst by a metric, where there are several."""
    call = worst_call(calls, metric)
    return "" if call is None else f" (in call {call} of {len(calls)} judged)"


def agreement_tolerance(pair: Pair) -> float:
    """Largest rel_l2 between a host and the right reference.

    With no matrix product in between, both round the same numbers in the same order
    and hardly a bit differs; a wrong order of rounding would show as a fifth of eps.
    So: eps/16, at least 1e-5 for sums over a row. Behind a product, sums in another
    order flip last bits: 2 eps, at least 2e-5 (2e-3 where float32 products are TF32).
    """
    eps = max(torch.finfo(pair.host.dtype).eps, torch.finfo(pair.reference.dtype).eps)
    if not pair.contracted:
        return max(eps / 16, 1e-5)
    tf32 = pair.host.is_cuda and torch.get_float32_matmul_precision() != "highest"
    return max(2 * eps, 2e-3 if tf32 else 2e-5)


# ---------------------------------------------------------------- saturation


def saturation(
    seat: Seat, points: Iterable[str], calibrated: Observation, seen: Observation
) -> GateResult:
    """The amax of the judged samples against the calibrated one, at each static point.

    ``metrics`` holds the ratio for each point (``calls``: in each call of a sample), ``also``
    both amax values. The verdict is
    ``warn`` past ``CLIPS_FROM``; whether that matters is the boundary gate's to say.
    """
    ratios: dict[str, float] = {}
    also: dict[str, dict[str, float]] = {}
    by_call: dict[int, dict[str, float]] = {}
    for point in dict.fromkeys(points):
        limit, peak = calibrated.amax(seat.name, point), max(seen.per_sample(seat.name, point))
        ratios[point] = peak / limit
        also[point] = {"calibrated_amax": limit, "seen_amax": peak}
        for call, reached in enumerate(seen.per_call(seat.name, point)):
            by_call.setdefault(call, {})[point] = reached / limit
    if not ratios:
        return GateResult("saturation", "not_applicable", "no point here has a static scale")
    calls = tuple(CallFigures(call, found) for call, found in sorted(by_call.items()))
    bounds = tuple(Bound(point, "<=", CLIPS_FROM) for point in ratios)
    texts = {
        point: f"{point} reaches {also[point]['seen_amax']:.6g}{_at(calls, point)},"
        f" {ratio:.3g} times the calibrated {also[point]['calibrated_amax']:.6g}"
        for point, ratio in sorted(ratios.items(), key=lambda item: -item[1])
    }
    past = [text for point, text in texts.items() if not ratios[point] <= CLIPS_FROM]
    verdict = "pass"
    if past:
        verdict = "warn" if all(math.isfinite(ratio) for ratio in ratios.values()) else "failed"
    reason = "; ".join(past or texts.values())
    return GateResult("saturation", verdict, reason, ratios, bounds, also, calls=calls)


# ---------------------------------------------------------------- parity and boundary


def parity_bound(k: int, *, chained: bool = False) -> float:
    """Largest distance of a rung from the emulation of its own impl, as the root mean
    square over rows of each row's rel_l2.

    ``2**-6 + sqrt(K) * 2**-23``: two bfloat16 steps for what is stored (and for the few
    codes that such a step flips in a format behind it), and float32 sums of K products in
    another order. Right rungs whose sums keep 14 bits measure up to half of it. A scale
    that is off by 2 in one block of 4,000 exceeds it.

    chained  a product's result is quantised to four bits for the next product: a code that
             a last bit flips is a third of the value, so 2**-4. Right rungs measure up to
             half of that.
    """
    return (2.0**-4 if chained else 2.0**-6) + math.sqrt(k) * 2.0**-23


def chained(spec: ImplSpec) -> bool:
    """Whether an impl quantises to four bits again behind a product."""
    scaled = [*spec.at_call.values(), *spec.scales.values()]
    return len({scale.point for scale in scaled if scale.kind == "nvfp4"}) > 1


def kernel_parity(
    bound: BoundSeat, reference: SeatReference, captures: Sequence[SeatCapture]
) -> GateResult:
    """The bound rung against ``run_emulate``, on the inputs that the seat really gets."""
    if all(rung.kind == "emulate" for rung in bound.rungs):
        reason = "the emulate rung is what other rungs are held against"
        return GateResult("parity", "not_applicable", reason)
    emulate = emulation(bound)
    values = PerCall()
    outputs = reference.outputs
    rows: dict[int, list[torch.Tensor]] = {}
    for capture in captures:
        inputs = reference.seat_inputs(capture)
        theirs, ours = named(outputs, emulate(*inputs)), named(outputs, bound.call(*inputs))
        if values.add(capture.call, theirs, ours):
            errors = [metrics.row_errors(ours[name], theirs[name]) for name in theirs]
            rows.setdefault(capture.call, []).extend(errors)
    k = reference.contraction()
    bounds = (
        Bound("row_rel_l2", "<=", parity_bound(k, chained=chained(bound.impl.SPEC))),
        Bound("worst_row_rel_l2", "<=", metrics.ROW),
    )
    scores = values.scores()
    calls: list[CallFigures] = []
    if not scores.broken:
        for call, found in sorted(rows.items()):
            every = torch.cat(found)
            row = metrics.row_distance(every)
            calls.append(
                CallFigures(call, {"row_rel_l2": row, "worst_row_rel_l2": float(every.max())})
            )
        by_row = {b.metric: max(each.metrics[b.metric] for each in calls) for b in bounds}
        scores = replace(scores, metrics={**by_row, "rel_l2": scores.metrics["rel_l2"]})
    notes = (f"K = {k}", *told(captures, calls))
    return _judged("parity", scores, bounds, notes=notes, calls=calls if len(calls) > 1 else ())


def emulation(bound: BoundSeat) -> Forms:
    """The emulation of a bound seat's impl, on the host's shapes and dtypes."""
    emulate = bound.impl.on(RungSpec("emulate", run="run_emulate"))
    return replace(bound.forms, forms=(Form(Band(), emulate),))


def boundary(
    bound: BoundSeat, reference: SeatReference, captures: Sequence[SeatCapture], *, label: str = ""
) -> GateResult:
    """The impl against the structure's reference, the structure's own threshold.

    Judged over the full boundary, residual included; the bare seam is measured and
    shown in ``also``. Where the host has no such boundary the seam's own gate judges
    and the result's name is ``seam``.
    """
    full, seam = PerCall(), PerCall()
    for capture in captures:
        found = reference.against(capture, bound.call)
        if found.full is not None:
            full.add(capture.call, *found.full)
        if found.seam is not None:
            seam.add(capture.call, *found.seam)
    structure = bound.seat.structure
    if not reference.has_boundary and reference.seam is not None:
        why = bound.seat.boundary.none if bound.seat.boundary else None
        calls = seam.figures()
        notes = (
            f"no full boundary on this host: {why or 'the binding declares none'}",
            *told(captures, calls),
        )
        bounds = reference.seam.gates
        return _judged("seam", seam.scores(), bounds, notes=notes, label=label, calls=calls)
    also = {"seam": seam.scores().metrics} if reference.seam is not None else {}
    calls, bounds = full.figures(), structure.boundary_gate
    notes = told(captures, calls)
    return _judged(
        "boundary", full.scores(), bounds, also=also, notes=notes, label=label, calls=calls
    )


def boundary_of(
    structure: StructureSpec,
    pairs: Iterable[tuple[Mapping[str, torch.Tensor], Mapping[str, torch.Tensor]]],
    *,
    label: str = "",
) -> GateResult:
    """Pairs of what should be and what is, by the threshold that the structure states."""
    full = metrics.Values()
    for theirs, ours in pairs:
        full.add(dict(theirs), dict(ours))
    return _judged("boundary", full.scores(), structure.boundary_gate, label=label)


def _judged(
    gate: str,
    scores: metrics.Scores,
    bounds: tuple[Bound, ...],
    *,
    also: Mapping[str, Mapping[str, float]] | None = None,
    notes: tuple[str, ...] = (),
    label: str = "",
    calls: Sequence[CallFigures] = (),
) -> GateResult:
    notes = (*notes, *scores.notes)
    if scores.broken:
        return GateResult(gate, "failed", scores.broken, {}, bounds, also or {}, notes, label)
    missed = [
        f"{text}{_at(calls, bound.metric)}"
        for bound in bounds
        for text in metrics.violations(scores.metrics, [bound])
    ]
    judged = [b.metric for b in bounds if b.op is not None and b.metric in scores.metrics]
    held = [f"{metric} {scores.metrics[metric]:.6g}" for metric in judged]
    return GateResult(
        gate,
        "fail" if missed else "pass",
        "; ".join(missed or held),
        scores.metrics,
        bounds,
        also or {},
        notes,
        label,
        tuple(calls),
    )


# ---------------------------------------------------------------- host


def host(
    reference_outputs: Iterable[metrics.View],
    treated_outputs: Iterable[metrics.View],
    kind: str,
    *,
    floors: Mapping[str, float] | None = None,
    noise: Mapping[str, float] | None = None,
    label: str = "",
) -> GateResult:
    """The treated host against the untouched one, sample by sample, by kind of output.

    floors   metric -> number the caller requires; a missed one is ``fail``
    noise    what the untouched host measures against itself, run twice or with its sums in
             another order; None: it stays the same bit for bit. A figure that is as good as
             the host's own noise passes, and every result says how it compares.
    """
    comparison = metrics.comparison(kind)
    for theirs, ours in zip(reference_outputs, treated_outputs, strict=True):
        comparison.add(theirs.tensors, ours.tensors)
    scores = comparison.scores()
    bounds = floor_bounds(floors or {})
    also = {"the host against itself": noise} if noise else {}
    result = _judged("host", scores, bounds, also=also, label=label)
    if result.verdict != "failed" and noise:
        result = replace(result, notes=(*result.notes, *_beside(kind, scores.metrics, noise)))
    if result.verdict != "pass":
        return result
    band = metrics.BANDS[kind]
    value = scores.metrics[band.metric]
    verdict = "pass" if value >= band.good else "warn" if value >= band.warn else "low"
    reason = f"{band.metric} {value:.6g} (pass from {band.good:g}, warn from {band.warn:g})"
    if noise is not None and verdict != "pass" and value >= noise[band.metric]:
        verdict = "pass"
        reason = f"{band.metric} {value:.6g}, within the host's own noise {noise[band.metric]:.6g}"
    return replace(result, verdict=verdict, reason=reason)


def _beside(kind: str, measured: Mapping[str, float], noise: Mapping[str, float]) -> Iterable[str]:
    """The distance as a multiple of the host's own."""
    metric = "rel_l2" if kind == "values" else "kl_per_token"
    if noise.get(metric, 0.0) > 0.0:
        times = measured[metric] / noise[metric]
        yield f"{metric} is {times:.3g} times that of the host against itself"


def floor_bounds(floors: Mapping[str, float]) -> tuple[Bound, ...]:
    """``floors=`` as bounds: at least, or at most for a metric where less is better."""
    return tuple(
        Bound(name, "<=" if name in metrics.LOWER else ">=", float(value))
        for name, value in floors.items()
    )

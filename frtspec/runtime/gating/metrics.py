"""Numbers for gates: how far one output is from another.

Two kinds of output are told apart. ``values`` (an action, a hidden state) are
compared element by element; a ``distribution`` (logits over a vocabulary, last
axis) is compared position by position. A NaN or an Inf on either side, or a
shape that changed, leaves no metric at all: a number would hide it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from frtspec.runtime.errors import Refusal
from frtspec.runtime.spec import Bound

HIGHER = {
    "cosine": "cosine over the whole tensor of a sample, averaged over samples, in float64",
    "worst_sample_cosine": "the lowest cosine of one sample",
    "top1_agreement": "share of positions whose most likely token is the same",
    "mean_position_cosine": "cosine of the logits, averaged over positions",
    "worst_position_cosine": "the lowest cosine of one position",
    "last_position_cosine": "the lowest cosine among the sequences' last positions",
}
LOWER = {
    "max_abs": "largest absolute difference",
    "p99_abs": "99th percentile of a sample's absolute differences, the worst sample's",
    "rel_l2": "norm of the difference over norm of the reference",
    "kl_per_token": "KL(reference, treated) per position, in nats",
}
VALUE_METRICS = ("cosine", "worst_sample_cosine", "max_abs", "p99_abs", "rel_l2")
DISTRIBUTION_METRICS = (
    "top1_agreement",
    "kl_per_token",
    "mean_position_cosine",
    "worst_position_cosine",
    "last_position_cosine",
    "max_abs",
)
KINDS = {"values": VALUE_METRICS, "distribution": DISTRIBUTION_METRICS}


@dataclass(frozen=True)
class Band:
    """What decides for one kind of output: ``pass`` from ``good``, ``warn`` from ``warn``,
    ``low`` below. A band never refuses."""

    metric: str
    good: float
    warn: float


BANDS = {
    "values": Band("cosine", 0.999, 0.995),
    "distribution": Band("top1_agreement", 0.95, 0.85),
}

_CHUNK = 1 << 22
"""Elements of logits compared at a time, so that float64 copies stay small."""


@dataclass(frozen=True)
class View:
    """What a host returned, as named floating-point tensors of one kind."""

    kind: str
    tensors: Mapping[str, Tensor]

    def kept(self) -> View:
        """A copy that no later run of the host can write to."""
        return View(self.kind, {name: t.detach().clone() for name, t in self.tensors.items()})

    @property
    def nbytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in self.tensors.values())


@dataclass(frozen=True)
class Scores:
    """``metrics`` is empty when the outputs couldn't be compared; ``broken`` says why."""

    metrics: Mapping[str, float]
    samples: int
    notes: tuple[str, ...] = ()
    broken: str | None = None


def view(output: Any, kind: str | None = None) -> View:
    """The tensors of ``output`` that are judged, and their kind.

    ``.logits`` or ``["logits"]`` is a distribution; a tensor, a tuple, a list or a
    mapping of tensors are values. ``kind``: what the caller says that it is; a distribution
    is then the logits, or the one tensor there is. Raises Refusal ``host.output`` for
    anything else.
    """
    if kind is not None:
        return _as(kind, output)
    logits = output.get("logits") if isinstance(output, Mapping) else None
    logits = getattr(output, "logits", logits)
    if isinstance(logits, Tensor):
        return View("distribution", {"logits": logits})
    tensors = {name: t for name, t in _named(output) if t.is_floating_point()}
    if not tensors:
        raise Refusal(
            "host.output",
            f"forward returned {_describe(output)}, which holds no floating-point tensor",
            fix="let forward return the model's output: logits, a tensor, or a tuple or mapping"
            " of tensors",
        )
    return View("values", tensors)


def _as(kind: str, output: Any) -> View:
    """The view of an output whose kind the caller tells."""
    logits = output.get("logits") if isinstance(output, Mapping) else None
    logits = getattr(output, "logits", logits)
    tensors = {name: t for name, t in _named(output) if t.is_floating_point()}
    if isinstance(logits, Tensor):
        tensors = {"logits": logits} if kind == "distribution" else tensors or {"logits": logits}
    if not tensors or (kind == "distribution" and len(tensors) > 1):
        raise Refusal(
            "host.output",
            f"output_kind={kind!r}, and what is judged is {_describe(output)} with"
            f" {len(tensors)} floating-point tensors",
            fix="pass output= that returns the one tensor of logits"
            if tensors
            else "pass output= that returns the tensors to judge",
        )
    return View(kind, tensors)


def _named(output: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(output, Tensor):
        yield "output", output
    elif isinstance(output, Mapping):
        yield from ((str(k), v) for k, v in output.items() if isinstance(v, Tensor))
    elif isinstance(output, list | tuple):
        yield from ((f"output[{i}]", v) for i, v in enumerate(output) if isinstance(v, Tensor))


def _describe(output: Any) -> str:
    if isinstance(output, list | tuple):
        return f"a {type(output).__name__} of {[type(item).__name__ for item in output]}"
    return "None" if output is None else f"a {type(output).__name__}"


def meets(value: float, bound: Bound) -> bool:
    """Whether ``value`` satisfies ``bound``; a NaN satisfies nothing."""
    if bound.op is None or bound.value is None:
        return True
    return value >= bound.value if bound.op == ">=" else value <= bound.value


def violations(metrics: Mapping[str, float], bounds: Iterable[Bound]) -> list[str]:
    """One sentence for each bound that ``metrics`` doesn't meet."""
    found = []
    for bound in bounds:
        if bound.metric not in metrics:
            if bound.op is not None:
                found.append(f"{bound.metric} was not measured (bound {bound.op} {bound.value:g})")
        elif not meets(metrics[bound.metric], bound):
            found.append(
                f"{bound.metric} {metrics[bound.metric]:.6g} misses {bound.op} {bound.value:g}"
            )
    return found


def broken(name: str, reference: Tensor, treated: Tensor) -> str | None:
    """Why the two tensors can't be compared, or None."""
    if reference.shape != treated.shape:
        return f"{name}: shape {list(treated.shape)}, the reference has {list(reference.shape)}"
    if not reference.numel():
        return f"{name}: shape {list(reference.shape)} holds no values"
    for side, tensor in (("reference", reference), ("treated", treated)):
        if not _finite(tensor):
            nans = int(torch.isnan(tensor).sum())
            infs = int(torch.isinf(tensor).sum())
            return f"{name}: the {side} has {nans} NaN and {infs} Inf of {tensor.numel()} values"
    return None


def _finite(tensor: Tensor) -> bool:
    """Whether there is no NaN and no Inf. Either reaches the sum, which takes a thirtieth of the
    time of a look at every value; so may large values, and bytes can't be summed."""
    if tensor.dtype.itemsize > 1 and bool(torch.isfinite(tensor.sum())):
        return True
    return bool(torch.isfinite(tensor).all())


def compare(reference: Tensor, treated: Tensor) -> Scores:
    """Value metrics of one pair of tensors."""
    comparison = Values()
    comparison.add({"output": reference}, {"output": treated})
    return comparison.scores()


# ---------------------------------------------------------------- rows of a rung

ROW = 0.25
"""Largest error of one row against its own size. A row that rests on one value may move
by a whole E4M3 step (an eighth) when that value's code tips over; a lost row is 1."""


def row_errors(found: Tensor, wanted: Tensor) -> Tensor:
    """rel_l2 of each row, float64. A row that is small beside the usual one (the median of
    those that are not zero) counts by a quarter of that one's size."""
    wanted = wanted.double().reshape(-1, wanted.shape[-1])
    errors = (found.double().reshape(wanted.shape) - wanted).norm(dim=-1)
    size = wanted.norm(dim=-1)
    usual = size[size > 0].median() if bool((size > 0).any()) else errors.max()
    return torch.where(errors > 0, errors / size.clamp_min(usual / 4), torch.zeros_like(errors))


def row_distance(errors: Tensor) -> float:
    """Root mean square of row errors: no single loud row decides, and none hides the others."""
    return float(errors.square().mean().sqrt())


# ---------------------------------------------------------------- sample by sample


def comparison(kind: str) -> Values | Distribution:
    """An accumulator for outputs of this kind."""
    return Values() if kind == "values" else Distribution()


@dataclass
class _Accumulator(ABC):
    samples: int = 0
    max_abs: float = 0.0
    fault: str | None = None

    def add(self, reference: Mapping[str, Tensor], treated: Mapping[str, Tensor]) -> None:
        """One sample: tensors by name on both sides."""
        self.samples += 1
        if list(reference) != list(treated):
            self._fail(f"outputs {list(treated)}, the reference has {list(reference)}")
            return
        pairs = [(reference[name], treated[name].to(reference[name].device)) for name in reference]
        for name, (ref, out) in zip(reference, pairs, strict=True):
            fault = broken(name, ref, out)
            if fault:
                self._fail(fault)
                return
        self._measure(pairs)

    def _fail(self, what: str) -> None:
        self.fault = self.fault or f"sample {self.samples - 1}, {what}"

    @abstractmethod
    def _measure(self, pairs: list[tuple[Tensor, Tensor]]) -> None:
        """Adds up one sample whose tensors are finite and alike in shape."""

    @abstractmethod
    def _metrics(self) -> dict[str, float]: ...

    def _notes(self) -> tuple[str, ...]:
        return ()

    def scores(self) -> Scores:
        """The metrics of every sample added so far."""
        if self.fault or not self.samples:
            return Scores({}, self.samples, broken=self.fault or "nothing was compared")
        return Scores(self._metrics(), self.samples, self._notes())


@dataclass
class Values(_Accumulator):
    """Element-wise metrics. Sums are float64; percentiles are exact order statistics.

    ``cosine`` is that of each sample's whole tensors, averaged over samples: a sample of
    large values does not hide the others.
    """

    cosine: float = 0.0
    ref_sq: float = 0.0
    diff_sq: float = 0.0
    p99_abs: float = 0.0
    worst_sample: float = 1.0

    def _measure(self, pairs: list[tuple[Tensor, Tensor]]) -> None:
        ref = torch.cat([r.reshape(-1).double() for r, _ in pairs])
        out = torch.cat([o.reshape(-1).double() for _, o in pairs])
        diff = (out - ref).abs()
        dot, ref_sq, out_sq = float(ref @ out), float(ref @ ref), float(out @ out)
        self.ref_sq += ref_sq
        self.diff_sq += float(diff @ diff)
        cosine = _cosine(dot, ref_sq, out_sq)
        self.cosine += cosine
        self.worst_sample = min(self.worst_sample, cosine)
        rank = math.ceil(0.99 * diff.numel())
        self.p99_abs = max(self.p99_abs, float(torch.kthvalue(diff, rank).values))
        self.max_abs = max(self.max_abs, float(diff.max()))

    def _metrics(self) -> dict[str, float]:
        return {
            "cosine": self.cosine / self.samples,
            "worst_sample_cosine": self.worst_sample,
            "max_abs": self.max_abs,
            "p99_abs": self.p99_abs,
            "rel_l2": _ratio(math.sqrt(self.diff_sq), math.sqrt(self.ref_sq)),
        }


@dataclass
class Distribution(_Accumulator):
    """Per-position metrics of logits ``[..., positions, vocabulary]``."""

    positions: int = 0
    agreed: int = 0
    kl: float = 0.0
    cosine: float = 0.0
    worst: tuple[float, str] = (1.0, "")
    last: float = 1.0

    def _measure(self, pairs: list[tuple[Tensor, Tensor]]) -> None:
        ((ref, out),) = pairs
        length = ref.shape[-2] if ref.dim() > 1 else 1
        cosines = self._rows(ref.reshape(-1, ref.shape[-1]), out.reshape(-1, out.shape[-1]))
        self.cosine += float(cosines.sum())
        low = int(cosines.argmin())
        if float(cosines[low]) < self.worst[0]:
            where = f"sample {self.samples - 1}, sequence {low // length}, position {low % length}"
            self.worst = (float(cosines[low]), where)
        self.last = min(self.last, float(cosines.reshape(-1, length)[:, -1].min()))

    def _rows(self, ref: Tensor, out: Tensor) -> Tensor:
        """Adds up what is summed over positions; returns the cosine of each, float64."""
        step = max(1, _CHUNK // max(1, ref.shape[-1]))
        cosines = []
        for r, o in zip(torch.split(ref, step), torch.split(out, step), strict=True):
            r, o = r.double(), o.double()
            self.positions += r.shape[0]
            self.agreed += int((r.argmax(-1) == o.argmax(-1)).sum())
            log_r, log_o = r.log_softmax(-1), o.log_softmax(-1)
            self.kl += float((log_r.exp() * (log_r - log_o)).sum())
            self.max_abs = max(self.max_abs, float((o - r).abs().max()))
            norms = r.norm(dim=-1) * o.norm(dim=-1)
            same = (r == o).all(-1)
            cosine = (r * o).sum(-1) / norms.clamp_min(torch.finfo(torch.float64).tiny)
            cosines.append(torch.where(same, torch.ones_like(cosine), cosine.clamp(-1, 1)))
        return torch.cat(cosines)

    def _metrics(self) -> dict[str, float]:
        return {
            "top1_agreement": self.agreed / self.positions,
            "kl_per_token": max(0.0, self.kl / self.positions),
            "mean_position_cosine": self.cosine / self.positions,
            "worst_position_cosine": self.worst[0],
            "last_position_cosine": self.last,
            "max_abs": self.max_abs,
        }

    def _notes(self) -> tuple[str, ...]:
        return (f"{self.positions} positions",) + (
            (f"worst position: {self.worst[1]}",) if self.worst[1] else ()
        )


def _cosine(dot: float, ref_sq: float, out_sq: float) -> float:
    """1 for two zero vectors, 0 when only one is zero."""
    if ref_sq == 0.0 or out_sq == 0.0:
        return 1.0 if ref_sq == out_sq else 0.0
    return max(-1.0, min(1.0, dot / (math.sqrt(ref_sq) * math.sqrt(out_sq))))


def _ratio(part: float, whole: float) -> float:
    """``part / whole``; a difference from nothing is all of it."""
    return part / whole if whole else (0.0 if part == 0.0 else 1.0)

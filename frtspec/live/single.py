"""One structure on one module: ``get("decoder_ffn").bind(module, calibration=[x])``.

The module is put into a host of its own, which a scan looks at and ``build`` binds; then the
bound form is held against the module itself on real inputs. What comes back stands for the
module anywhere, with its guard and ledger, and carries what it was certified by.
"""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from frtspec import runtime as rt
from frtspec.live.scan import scan
from frtspec.live.scan.catalog import structures_of
from frtspec.runtime import receipt
from frtspec.runtime.errors import Refusal, TrailRow
from frtspec.runtime.gating import metrics
from frtspec.runtime.gating.gates import floor_bounds
from frtspec.runtime.observation import samples
from frtspec.runtime.options import one_of
from frtspec.runtime.plan import Plan
from frtspec.runtime.records import SeatRecord
from frtspec.runtime.seats import root
from frtspec.runtime.session import check_eval
from frtspec.runtime.spec import RUNTIME_ABI, Bound, Host, HostBinding, Seat, StructureSpec

PLACE = "module"
"""Where the module lies in the host that is made around it."""


@dataclass(frozen=True)
class Certification:
    """By what a part was accepted.

    gate      ``boundary``: the structure's whole boundary was compared, residual included;
              ``seam``: the module alone
    metrics   over all judged samples; ``worst_sample_cosine`` is the worst sample's
    label     ``held-out``, or ``fit residual`` where the samples are those of the calibration
    rows      row count -> calls at calibration
    trail     every rung that was looked at
    specs     name -> contract digest of structure, impl and scheme
    """

    structure: str
    seam: str | None
    impl: str
    rung: str
    scheme: str
    gate: str
    metrics: Mapping[str, float]
    bounds: tuple[Bound, ...]
    samples: int
    label: str
    rows: Mapping[int, int]
    dims: Mapping[str, int]
    variants: Mapping[str, str]
    trail: tuple[TrailRow, ...]
    specs: Mapping[str, str]
    environment: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        rows = {str(count): calls for count, calls in self.rows.items()}
        return {**asdict(self), "rows": rows}

    @property
    def digest(self) -> str:
        """sha256 over all of it."""
        return receipt.digest(self.to_json())


@dataclass(frozen=True)
class Part:
    """A structure to be bound to single modules; ``specs``: its versions, best first."""

    name: str
    specs: tuple[StructureSpec, ...]
    package: str

    def bind(
        self,
        module: nn.Module,
        *,
        calibration: Iterable[Any],
        norm: nn.Module | None = None,
        residual: Iterable[Tensor] | None = None,
        held_out: Iterable[Any] | None = None,
        variant: Mapping[str, str] | None = None,
        scheme: str = "auto",
        floors: Mapping[str, float] | None = None,
        percentile: float = 99.9,
        max_samples: int | None = None,
        rungs: Sequence[str] | None = None,
        on_guard_fail: str = "fallback",
    ) -> nn.Module:
        """A module that computes what ``module`` does in this structure's form.

        module        in eval mode; it is run and read, never changed
        calibration   its real inputs: a tensor, a tuple of arguments or a mapping of keyword
                      arguments each; with ``norm`` what goes into the norm. Streamed
        norm          the norm before it: judged at the boundary ``x + module(norm(x))``
        residual      one tensor a calibration sample, added to what the module gives before
                      it is judged: the boundary, where the norm is not at hand
        held_out      more inputs to judge on; with ``residual`` pairs (input, residual)
        variant       variants that the module must turn out to have
        floors        metric -> number that is required besides the structure's own bounds

        The other arguments are those of ``runtime.build``. The result has ``certification``
        (a ``Certification``) and ``ledger()``. Raises Refusal ``part.*`` where the structure
        does not sit on the module, the seat's where it can't be bound, ``part.gate`` where
        the self-check fails, and those of ``build``.
        """
        if norm is not None and residual is not None:
            raise Refusal(
                "option.residual",
                "norm= and residual= are both given; with the norm the residual is its input",
                fix="pass one of the two",
            )
        check_eval(module)
        host = _Host(module, norm, added=residual is not None).eval()
        items = _Kept(_samples(calibration, residual))
        first = items.first(max_samples)
        seat = self._seat(host, first, variant or {})
        plan = rt.build(
            self._binding(host, seat),
            host,
            host.run,
            observations=items,
            scheme=scheme,
            percentile=percentile,
            max_samples=max_samples,
            rungs=rungs,
            on_guard_fail=on_guard_fail,
        )
        with plan:
            (record,) = plan.seats
            _require_bound(record)
            judged = list(held_out) if held_out is not None else items.kept
            label = "fit residual" if held_out is None else "held-out"
            whole = norm is not None or residual is not None
            certified = _certified(plan, record, host, judged, label, whole, floors or {})
        return _standing(record, certified)

    def _seat(self, host: _Host, first: Any, variant: Mapping[str, str]) -> Seat:
        """The seat of this structure on the module, as a scan of it finds and proves it."""
        found = scan(host, lambda: host.run(first), package=self.package)
        for seat in found.seats:
            if seat.structure.name == self.name and seat.path == PLACE and seat.form == "swap":
                for axis, value in variant.items():
                    one_of("variant", axis, seat.variants)
                    if seat.variants[axis] != value:
                        raise Refusal(
                            "part.variant",
                            f"the module has {axis} = {seat.variants[axis]}, not {value}",
                            fix="leave variant= out: it is told by what the module computes",
                        )
                return seat.seat(self.name)
        why = {row.path: row.reason for row in found.left_out}
        other = [seat.target for seat in found.seats if seat.path.startswith(PLACE)]
        told = why.get(PLACE) or (f"it is {' and '.join(other)}" if other else "no pattern fits")
        raise Refusal(
            "part.module",
            f"{self.name} does not sit on this one {type(host.module).__name__}: {told}",
            fix="get() the structure that it is; for one on several modules attach the model",
        )

    def _binding(self, host: _Host, seat: Seat) -> HostBinding:
        schemes = importlib.import_module(f"{self.package}.schemes")
        return HostBinding(
            name=self.name,
            source_digest=self.specs[0].source_digest,
            contract_digest=self.specs[0].contract_digest,
            hosts=(Host("frtspec", None, (type(host).__name__,)),),
            dims=lambda model: {},
            seats=lambda model: [seat],
            schemes=schemes.ALL,
            auto=schemes.AUTO,
            runtime_abi=RUNTIME_ABI,
        )


def get(name: str, *, package: str = "flashrt_gen") -> Part:
    """The structure of a generated package by name. Raises Refusal ``option.structure``."""
    specs = structures_of(package)
    one_of("structure", name, sorted({spec.name for spec in specs}))
    return Part(name, tuple(spec for spec in specs if spec.name == name), package)


# ---------------------------------------------------------------- the host around a module


class _Host(nn.Module):
    """One module, the norm before it and the residual around it, where they are given."""

    def __init__(self, module: nn.Module, norm: nn.Module | None, *, added: bool) -> None:
        super().__init__()
        self.norm, self.module, self.added = norm, module, added

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.norm is not None:
            x, *more = args
            return x + self.module(self.norm(x), *more, **kwargs)
        if self.added:
            residual, *args = args  # type: ignore[assignment]
            return residual + self.module(*args, **kwargs)
        return self.module(*args, **kwargs)

    def run(self, sample: Any) -> Any:
        """On one sample as ``bind`` takes it, after the residual where there is one."""
        args: list[Any] = []
        if self.added:
            sample, residual = sample
            args = [residual]
        with torch.no_grad():
            if isinstance(sample, Mapping):
                return self(*args, **sample)
            return self(*args, *(sample if isinstance(sample, tuple | list) else (sample,)))


class _Kept:
    """A stream that is iterated once and keeps its first few items for the self-check."""

    MOST = 8
    LOOKED_AT = 64

    def __init__(self, items: Iterable[Any]) -> None:
        self._source = iter(items)
        self.kept: list[Any] = []
        self._ahead: deque[Any] = deque()

    def first(self, max_samples: int | None) -> Any:
        """The first item with something in it; all stay in the stream.

        Raises Refusal ``samples.empty``, or ``calibration.zero`` where all are zero.
        """
        for item in islice(self._source, max_samples or self.LOOKED_AT):
            self._ahead.append(item)
            if _has_signal(item):
                return item
        if not self._ahead:
            raise Refusal(
                "samples.empty",
                "calibration= holds no sample",
                fix="pass at least one real input of the module",
            )
        raise Refusal(
            "calibration.zero",
            f"no signal: every value of {len(self._ahead)} calibration samples is zero",
            fix="pass real inputs of the module",
        )

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        item = self._ahead.popleft() if self._ahead else next(self._source)
        if len(self.kept) < self.MOST:
            self.kept.append(item)
        return item


def _has_signal(sample: Any) -> bool:
    if isinstance(sample, Tensor):
        return bool(sample.ne(0).any())
    if isinstance(sample, Mapping):
        sample = list(sample.values())
    return isinstance(sample, tuple | list) and any(map(_has_signal, sample))


def _samples(calibration: Any, residual: Iterable[Tensor] | None) -> Iterator[Any]:
    items = samples.items(calibration, "calibration")
    if residual is None:
        yield from items
        return
    added = iter(residual)
    for item in items:
        found = next(added, None)
        if found is None:
            raise Refusal(
                "option.residual",
                "residual= ends before calibration= does",
                fix="pass one residual a sample",
            )
        yield item, found


# ---------------------------------------------------------------- the self-check


def _require_bound(record: SeatRecord) -> None:
    if record.state == "bound":
        return
    if record.refusal is not None:
        raise record.refusal
    raise Refusal(
        f"part.{record.code or record.state}",
        record.reason,
        fix=record.fix or "choose another scheme= or rungs=",
        seat=record.name,
    )


def _certified(
    plan: Plan,
    record: SeatRecord,
    host: _Host,
    judged: Sequence[Any],
    label: str,
    whole: bool,
    floors: Mapping[str, float],
) -> Certification:
    """Holds the bound module against the module itself. Raises Refusal ``part.gate``."""
    seat, built, attachment = record.seat, record.built, plan.attachment
    assert built is not None and attachment is not None
    structure = seat.structure
    seam = None if seat.seam is None or whole else structure.seams[seat.seam]
    bounds = (*(structure.boundary_gate if seam is None else seam.gates), *floor_bounds(floors))
    values = metrics.Values()
    for sample in judged:
        with attachment.disabled():
            theirs = metrics.view(host.run(sample)).kept()
        values.add(theirs.tensors, metrics.view(host.run(sample)).tensors)
    fallen = attachment.ledger()[record.name]
    scores = values.scores()
    missed = [scores.broken] if scores.broken else metrics.violations(scores.metrics, bounds)
    if fallen.fallbacks:
        missed = [f"{fallen.fallbacks} calls ran the module itself: {fallen.last_reason}"]
    gate = "boundary" if seam is None else "seam"
    if missed:
        raise Refusal(
            "part.gate",
            f"the {gate} gate is missed on {len(judged)} samples ({label}): {'; '.join(missed)}",
            fix="use a scheme with a finer format; norm= or residual= judge at the structure's "
            "boundary, which the bare module is harsher than",
            seat=record.name,
            form=record.form,
        )
    return Certification(
        structure=structure.key,
        seam=seat.seam,
        impl=built.spec.name,
        rung=built.rung.label,
        scheme=plan.scheme.name,
        gate=gate,
        metrics=dict(scores.metrics),
        bounds=bounds,
        samples=len(judged),
        label=label,
        rows=_rows(plan, record.name),
        dims=dict(seat.dims),
        variants={axis: str(value) for axis, value in seat.variants.items()},
        trail=built.trail,
        specs={
            structure.key: structure.contract_digest,
            built.spec.name: built.spec.contract_digest,
            plan.scheme.name: plan.scheme.contract_digest,
        },
        environment=plan.environment,
    )


def _rows(plan: Plan, seat: str) -> dict[int, int]:
    """Row count -> calls, as calibration saw them."""
    draft = plan.calibration.draft if plan.calibration is not None else None
    calls = draft.seats[seat].calls if draft is not None else None
    return {} if calls is None else dict(sorted(calls.rows.items()))


def _standing(record: SeatRecord, certified: Certification) -> nn.Module:
    """The bound module on its own: moving or copying it is refused as on a whole model."""
    assert record.bound is not None
    (module,) = record.bound.modules.values()
    module.__dict__["certification"] = certified
    module.__dict__["ledger"] = record.bound.counter.ledger
    root.hold(module, certified)
    return module

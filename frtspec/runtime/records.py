"""What happened to each seat and each unit: the record that a plan is made of."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from frtspec.runtime.eligibility.deciding import Decision
from frtspec.runtime.eligibility.qualification import Ruling
from frtspec.runtime.errors import Failure, Refusal, TrailRow
from frtspec.runtime.gating.gates import GateResult
from frtspec.runtime.gating.latency import Latency
from frtspec.runtime.rungs.kernels import LoadedKernel, used
from frtspec.runtime.seats.forms import BandUse
from frtspec.runtime.spec import ImplSpec, RungSpec, Seat

if TYPE_CHECKING:
    from frtspec.runtime.calibration.data import Calibration, Draft
    from frtspec.runtime.rungs.ladder import BoundSeat

STATES = ("bound", "kept", "refused", "failed")
"""bound: runs our form. kept: the host's, by a decision that is no fault (scheme, speed,
not asked for). refused: the host's, because something does not hold. failed: the host's,
because something raised."""


@dataclass(frozen=True)
class Built:
    """What was built for a seat, without the packs: the impl, its rung and the way to it.

    kernels  the packages that its rungs run on
    """

    spec: ImplSpec
    rung: RungSpec
    trail: tuple[TrailRow, ...]
    bytes_added: int
    form: str
    bands: tuple[BandUse, ...] = ()
    kernels: tuple[LoadedKernel, ...] = ()


@dataclass
class SeatRecord:
    """One seat and what became of it. ``state`` is empty until it is settled, once.

    decision  what the scheme made of it, and why
    bound   the seat as built, packs and all; given up when the seat stays the host's
    built   what is known of it afterwards
    """

    seat: Seat
    state: str = ""
    code: str = ""
    reason: str = ""
    fix: str = ""
    refusal: Refusal | None = None
    failure: Failure | None = None
    decision: Decision | None = None
    bound: BoundSeat | None = None
    built: Built | None = None
    gates: list[GateResult] = field(default_factory=list)
    rules: list[Ruling] = field(default_factory=list)
    parameters: int = 0

    @property
    def name(self) -> str:
        return self.seat.name

    @property
    def open(self) -> bool:
        return not self.state

    @property
    def form(self) -> str:
        """``fp8_static on torch``, or nothing where no impl was bound."""
        return "" if self.built is None else self.built.form

    def build(self, bound: BoundSeat) -> None:
        self.bound = bound
        self.built = Built(
            bound.impl.SPEC,
            bound.rung,
            bound.trail,
            bound.bytes_added,
            bound.forms.label(),
            bound.bands,
            used(form.impl.kernel for form in bound.forms.forms),
        )

    def gate(self, *names: str) -> GateResult | None:
        """The first result among these gates, if it ran."""
        return next((result for result in self.gates if result.gate in names), None)

    def bind(self, reason: str) -> None:
        self._settle("bound", "", reason)

    def keep(self, code: str, reason: str) -> None:
        self._settle("kept", code, reason)

    def refuse(self, refusal: Refusal) -> None:
        self.refusal = refusal
        self.fix = refusal.fix
        self._settle("refused", refusal.code, refusal.what)

    def fail(self, failure: Failure) -> None:
        self.failure = failure
        self._settle("failed", "fault", f"{failure.what}: {failure.exception}")

    def _settle(self, state: str, code: str, reason: str) -> None:
        if self.state:
            raise RuntimeError(f"{self.name} is {self.state} already, not {state}")
        self.state, self.code, self.reason = state, code, reason
        if state != "bound":
            self.bound = None


@dataclass(frozen=True)
class Trial:
    """One trial of a unit without some of its seats; ``verdict`` as a unit's."""

    without: tuple[str, ...]
    verdict: str
    reason: str


@dataclass
class UnitRecord:
    """Seats that were judged together on the host: one unit, or a union of several.

    verdict: accepted, kept, refused or failed. kind: structure, chain, route or union.
    trials: of a unit that misses as a whole, those without its most sensitive seats; ``seats``
    are then the ones left.
    """

    name: str
    seats: tuple[str, ...]
    verdict: str
    reason: str
    host: GateResult | None = None
    latency: Latency | None = None
    kind: str = "structure"
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True)
class Variation:
    """The untouched host in a numerically neutral variation, against itself.

    what     the variation
    metrics  how far it is; None when it is the same bits, or could not be measured
    broken   why it could not be measured
    """

    what: str
    metrics: Mapping[str, float] | None = None
    broken: str = ""

    @property
    def note(self) -> str:
        if self.broken:
            return f"{self.what}: {self.broken}"
        if self.metrics is None:
            return f"{self.what}: the same bits"
        return f"{self.what}: " + ", ".join(f"{n} {v:.6g}" for n, v in self.metrics.items())


@dataclass(frozen=True)
class Noise:
    """The untouched host against itself. ``metrics`` is None when it repeats bit for bit;
    ``variations``: how far it moves when only the order of its sums, or its form, changes."""

    metrics: Mapping[str, float] | None
    note: str
    variations: tuple[Variation, ...] = ()

    def floor(self, metric: str) -> Mapping[str, float] | None:
        """The figures of the variation (a second run among them) that is furthest by
        ``metric``, where more is closer; None when all are the same bits."""
        found = [self.metrics, *(v.metrics for v in self.variations)]
        measured = [m for m in found if m is not None and metric in m]
        return min(measured, key=lambda m: m[metric], default=None)

    @property
    def bit_equal(self) -> bool:
        return self.metrics is None


@dataclass(frozen=True)
class CalibrationRecord:
    """How the static scales were measured and what the gates were judged on.

    judged    samples that the gates ran on; ``held_out`` tells whether they are apart
              from those that the scales were fitted to
    origin    measured, file, cache or given (as an object)
    digest    of the saved calibration, where one was used or kept
    runs      how many runs or ranks it was merged of
    draft     what was measured, for ``save``
    """

    samples: int
    percentile: float
    judged: int
    held_out: bool
    diagnostics: tuple[str, ...] = ()
    origin: str = "measured"
    digest: str | None = None
    runs: int = 1
    draft: Draft | Calibration | None = field(default=None, repr=False)

    def seal(self) -> Calibration:
        """The calibration with its key. Raises Refusal ``calibration.weights_changed`` where
        weights are not those that were calibrated any more."""
        from frtspec.runtime.calibration.data import Draft

        if self.draft is None:
            raise Refusal(
                "calibration.nothing",
                "nothing was calibrated: no seat asked for it",
                fix="attach with a scheme that has a form for some seat",
            )
        return self.draft.seal() if isinstance(self.draft, Draft) else self.draft

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the calibration to a file, or into a folder; returns the file. Errors are
        those of ``seal`` and ``Calibration.save``."""
        return self.seal().save(path)

    @property
    def method(self) -> str:
        reduced = f"percentile {self.percentile:g} across samples"
        return f"largest magnitude within a sample, {reduced}"

    @property
    def label(self) -> str:
        return "held-out" if self.held_out else "fit residual"


def failure_of(error: Exception, what: str, seats: Sequence[str]) -> Failure:
    """An exception with its traceback, whole."""
    text = "".join(traceback.format_exception(error))
    return Failure(what, f"{type(error).__name__}: {error}", text, tuple(seats))

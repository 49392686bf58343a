"""The plan: what ``attach`` and ``build`` return, whatever the outcome."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from torch import nn

from frtspec.runtime import receipt as receipts
from frtspec.runtime import store
from frtspec.runtime.cadence.updates import Updates
from frtspec.runtime.environment import drift
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.coverage import Coverage
from frtspec.runtime.memory.report import Memory
from frtspec.runtime.memory.store import WeightStore
from frtspec.runtime.options import Options
from frtspec.runtime.records import STATES, CalibrationRecord, Noise, SeatRecord, UnitRecord
from frtspec.runtime.reporting import document, figures
from frtspec.runtime.reporting import explain as explaining
from frtspec.runtime.reporting.costs import Costs
from frtspec.runtime.reporting.modelprecision import ModelPrecisionSpec
from frtspec.runtime.seats.watch import Drift, Watch
from frtspec.runtime.spec import HostBinding, SchemeSpec
from frtspec.runtime.toggles import Toggles

if TYPE_CHECKING:
    from frtspec.runtime.chains.negotiate import ChainRecord
    from frtspec.runtime.memory.originals import Originals
    from frtspec.runtime.seats.ledger import Ledger
    from frtspec.runtime.seats.swap import Attachment


@dataclass
class Plan:
    """The record of one attachment, and the handle that undoes it.

    door          ``attach`` (gated) or ``build`` (bound without judging)
    seats         every seat of the host, each in one state; see ``explain()``
    units         structures judged alone on the host; ``unions`` together
    noise         the untouched host against itself
    chains        declared chains: joined or apart, and why
    costs         where the untouched host's work and time go, and what that bounds
    before        what the ledgers held when ``attach`` returned
    receipt       all of it as JSON, sealed; ``save_receipt(path)`` writes it
    """

    door: str
    binding: HostBinding
    model: nn.Module
    options: Options
    scheme: SchemeSpec
    environment: dict[str, Any]
    seats: tuple[SeatRecord, ...]
    units: tuple[UnitRecord, ...]
    unions: tuple[UnitRecord, ...]
    noise: Noise | None
    output_kind: str | None
    calibration: CalibrationRecord | None
    coverage: Coverage
    precision_spec: ModelPrecisionSpec
    attachment: Attachment | None
    watch: Watch
    costs: Costs
    chains: tuple[ChainRecord, ...] = ()
    before: Mapping[str, Ledger] = field(default_factory=dict)
    receipt: dict[str, Any] = field(default_factory=dict)

    @property
    def bound(self) -> tuple[str, ...]:
        """Names of the seats that run our form."""
        return self.names("bound")

    @property
    def active(self) -> bool:
        """Whether anything is attached now."""
        return self.attachment is not None and bool(self.attachment.seats)

    def names(self, state: str) -> tuple[str, ...]:
        """Names of the seats in a state: bound, kept, refused or failed."""
        return tuple(record.name for record in self.seats if record.state == state)

    def seat(self, name: str) -> SeatRecord:
        """The record of one seat. Raises KeyError with the names there are."""
        for record in self.seats:
            if record.name == name:
                return record
        raise KeyError(f"no seat {name}; seats: {', '.join(r.name for r in self.seats)}")

    def unit(self, name: str) -> UnitRecord:
        """The record of one structure judged alone. Raises KeyError with the names there are."""
        for record in self.units:
            if record.name == name:
                return record
        raise KeyError(f"no unit {name}; units: {', '.join(u.name for u in self.units)}")

    @property
    def counts(self) -> dict[str, int]:
        return {state: len(self.names(state)) for state in STATES}

    def explain(self, format: str = "auto") -> str:
        """Every seat with its state and the whole reason.

        format  "text", "table", "html" or "json"; "auto": a table on a terminal, else text
        """
        return explaining.explain(self, format)

    def require(self, seats: int | Sequence[str] = 1, *, coverage: float = 0.0) -> Self:
        """This plan, if it bound what is required; for scripts that must not run on a no-op.

        seats     how many seats have to be bound, or which, by name
        coverage  least share of the host's parameters that they have to hold, 0 to 1

        Raises Refusal ``plan.require`` with every seat's reason in its notes; what is
        attached stays.
        """
        missing = []
        if isinstance(seats, int):
            if len(self.bound) < seats:
                missing.append(f"{len(self.bound)} seats are bound, {seats} are required")
        else:
            states = {record.name: record for record in self.seats}
            for name in seats:
                record = states.get(name)
                if record is None:
                    missing.append(f"{name} is no seat of this host")
                elif record.state != "bound":
                    missing.append(f"{name} is {record.state}: {record.reason}")
        if self.coverage.share < coverage:
            share = self.coverage.share
            missing.append(f"{share:.1%} of the parameters are bound, {coverage:.1%} are required")
        if missing:
            refusal = Refusal(
                "plan.require",
                "; ".join(missing),
                fix="see the reason of each seat in plan.explain(), also in this error's notes",
            )
            refusal.add_note(self.explain("text"))
            raise refusal
        return self

    def report(self) -> str:
        """Every figure that a gate measured, with its bound."""
        return figures.report(self)

    def ledger(self) -> Mapping[str, Ledger]:
        """What the bound seats did since ``attach`` returned: calls, fallbacks, reasons.

        What they did while they were judged (``before``) is taken off.
        """
        if self.attachment is None:
            return {}
        return {
            seat: replace(
                row,
                calls=row.calls - self.before[seat].calls,
                otherwise_host=row.otherwise_host - self.before[seat].otherwise_host,
                refreshes=row.refreshes - self.before[seat].refreshes,
                held=row.held - self.before[seat].held,
            )
            for seat, row in self.attachment.ledger().items()
        }

    def save_binding(self, path: str | os.PathLike[str]) -> Path:
        """Writes the binding of a host that was scanned as a `.frt` file; returns the file.

        Raises Refusal ``plan.binding`` where the binding is that of a generated package,
        whose spec is a file already.
        """
        if self.binding.text is None:
            raise Refusal(
                "plan.binding",
                f"binding {self.binding.name} is of a generated package: its spec is a file",
                fix="edit that file and run `frtspec gen`; only a scanned binding is saved here",
            )
        with store.locked(Path(path)), store.replacing(Path(path)) as new:
            new.write_text(self.binding.text)
        return Path(path)

    @property
    def toggles(self) -> Toggles:
        """Groups of bound seats that can be switched off and on by name."""
        return Toggles(self.seats, self.attachment)

    @property
    def updates(self) -> Updates:
        """Seat -> its refresh, for the seats that hold what changes with an observation or a
        prompt: the caller runs ``plan.updates[name]()`` when it does."""
        return Updates(self.seats, self.attachment)

    def refresh(self, cadence: str | None = None) -> None:
        """Runs every update, or those of one cadence (``observation``, ``prompt``). Where
        nothing is held it does nothing. Raises Refusal ``option.cadence``, ``swap.detached``."""
        self.updates.refresh(cadence)

    def environment_drift(self) -> tuple[str, ...]:
        """Where this process is no longer what it was at ``attach``: versions, device,
        threads, numeric settings. Empty where figures of the receipt still hold here."""
        return drift(self.environment)

    def save_receipt(self, path: str | os.PathLike[str]) -> Path:
        """Writes the receipt atomically to a file, or into a folder; returns the file."""
        return receipts.save(self.receipt, path)

    @property
    def memory(self) -> Memory:
        """Bytes that packs add, and what became of the host's own weights behind them."""
        originals = self.attachment.originals if self.attachment is not None else None
        return Memory.of(self.seats, originals, self.options.memory_budget)

    def consume(self, checkpoint: str | os.PathLike[str] | None = None) -> Memory:
        """Puts away the host's weights behind bound seats; they come back when the host's
        module has to run, and at detach. Weights that something else reads stay.

        checkpoint   a `.safetensors` file or a folder of them: a weight that it holds bit for
                     bit is read back from there, every other one is kept in host memory

        Raises Refusal ``option.checkpoint``, or ``memory.*``; then nothing was put away.
        """
        self._originals().consume(WeightStore(checkpoint))
        return self._sealed()

    def restore(self) -> Memory:
        """Brings every weight back that ``consume`` put away. Raises Refusal ``memory.*``."""
        self._originals().restore()
        return self._sealed()

    def finalize(self) -> Memory:
        """Gives up what ``consume`` put away, for good: from here on a fallback, ``detach``
        and ``state_dict`` raise Refusal ``memory.finalized``. Can't be undone."""
        self._originals().finalize()
        return self._sealed()

    def _originals(self) -> Originals:
        if not self.active or self.attachment is None or self.attachment.originals is None:
            raise Refusal(
                "swap.detached", "nothing is attached", fix="attach again to have seats to act on"
            )
        return self.attachment.originals

    def _sealed(self) -> Memory:
        self.receipt = receipts.seal(document.document(self))
        return self.memory

    def check(self) -> tuple[Drift, ...]:
        """Host weights that changed since their seats were bound, found by their bits.

        Packs were made from the weights as they were, so a seat named here computes
        with old weights: detach and attach again. Weights that were put away can't change.
        """
        originals = self.attachment.originals if self.attachment is not None else None
        return self.watch.changes(self.model, originals.paths if originals else ())

    def detach(self) -> None:
        """Puts the host's own modules back, bit for bit. Doing it twice does nothing."""
        if self.attachment is not None:
            self.attachment.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {state}" for state, count in self.counts.items())
        return f"<Plan {self.binding.name} ({self.door}): {counts}>"

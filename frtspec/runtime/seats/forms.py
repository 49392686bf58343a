"""A bound impl seen from the host: leading axes, dtypes and autocast taken care of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from frtspec.runtime.rungs.impl import BoundImpl
from frtspec.runtime.seats.calls import autocast_dtype, row_count
from frtspec.runtime.seats.guard import Band, Contract


@dataclass(frozen=True)
class Form:
    """An impl on one rung, for the row counts of one band."""

    band: Band
    impl: BoundImpl


@dataclass(frozen=True)
class BandUse:
    """What runs for some row counts, and how often calibration saw them.

    rows   ``1..=8``, or ``otherwise host``
    rung   what runs there; None: the host's module
    """

    rows: str
    rung: str | None
    calls: int


@dataclass(frozen=True)
class Forms:
    """The forms of one seat, callable like the host's module.

    Takes the structure's inputs in the host's shapes ([..., K]) and returns what the
    host's module returns: the same leading axes, the host's dtype, a tuple where the
    structure has several outputs. Autocast is off inside; the impl says its own dtypes.
    """

    contract: Contract
    forms: tuple[Form, ...]

    def __call__(self, *inputs: Tensor) -> Any:
        rows = form_rows(inputs, self.contract.widths)
        impl = self.form_for(row_count(inputs[0])).impl
        out_dtype = self.contract.out_dtype(inputs[0])
        device_type = inputs[0].device.type
        if autocast_dtype(device_type) is None:
            result = run_rows(impl, rows)
        else:
            with torch.autocast(device_type, enabled=False):
                result = run_rows(impl, rows)
        lead = inputs[0].shape[:-1]
        if isinstance(result, Tensor):
            return as_host(result, lead, out_dtype)
        return tuple([as_host(item, lead, out_dtype) for item in result])

    def holds(self, rows: int) -> bool:
        """Whether some form runs this row count."""
        return any(form.band.holds(rows) for form in self.forms)

    def uses(self, calls: Mapping[int, int]) -> tuple[BandUse, ...]:
        """What runs which of these calls (row count -> how many), the host's at the end."""
        found = []
        for form in self.forms:
            mine = sum(count for rows, count in calls.items() if form.band.holds(rows))
            rung = form.impl.rung
            found.append(BandUse(str(form.band), rung.label if rung else None, mine))
        rest = sum(count for rows, count in calls.items() if not self.holds(rows))
        return (*found, BandUse("otherwise host", None, rest))

    def label(self) -> str:
        """``fp8_static on torch``; with bands, what runs for which rows."""
        spec = self.forms[0].impl.SPEC
        rungs = [form.impl.rung.label if form.impl.rung else "no rung" for form in self.forms]
        if not spec.bands:
            return f"{spec.name} on {rungs[0]}"
        name = spec.bands[0].dim
        parts = [
            f"{rung} for {name} in {form.band}"
            for rung, form in zip(rungs, self.forms, strict=True)
        ]
        return f"{spec.name} on {', '.join(parts)}, otherwise host"

    def member(self, position: int) -> Forms:
        """The forms of one sibling on its own; its result is a tuple of one."""
        mine = tuple(Form(form.band, form.impl.member(position)) for form in self.forms)
        return Forms(self.contract, mine)

    def form_for(self, rows: int) -> Form:
        """The form that runs so many rows."""
        if len(self.forms) == 1:
            return self.forms[0]
        for form in self.forms:
            if form.band.holds(rows):
                return form
        return self.forms[-1]


def form_rows(inputs: tuple[Tensor, ...], widths: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Inputs as impls take them: [M, K], contiguous. What is so already stays as it is."""
    if len(inputs) == 1:
        return (_rows(inputs[0], widths[0]),)
    return tuple([_rows(x, width) for x, width in zip(inputs, widths, strict=True)])


def _rows(x: Tensor, width: int) -> Tensor:
    rows = x if x.dim() == 2 else x.reshape(-1, width)
    return rows if rows.is_contiguous() else rows.contiguous()


def run_rows(impl: BoundImpl, rows: tuple[Tensor, ...]) -> Any:
    """On the device of the rows: torch's ops see to that themselves, kernels may not."""
    device = rows[0].device
    if impl.kernel is None or device.type != "cuda" or device.index == torch.cuda.current_device():
        return impl.run(*rows)
    with torch.cuda.device(device):
        return impl.run(*rows)


def as_host(rows: Tensor, lead: torch.Size, dtype: torch.dtype) -> Tensor:
    """Rows [M, N] as the host returns them: contiguous, so that any ``view`` works."""
    if rows.dtype is not dtype:
        rows = rows.to(dtype)
    if not rows.is_contiguous():
        rows = rows.contiguous()
    return rows if len(lead) == 1 else rows.view(*lead, rows.shape[-1])

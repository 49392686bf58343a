"""One real run of a rung at the seat's own shape, held against the impl's emulation.

That a package loads says nothing about one entry on one device at one shape. The
probe is coarse on purpose (the parity gate is exact): it tells a rung that works
from one that does not.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating.metrics import ROW, row_distance, row_errors
from frtspec.runtime.observation.observe import Observation
from frtspec.runtime.rungs.impl import BoundImpl
from frtspec.runtime.seats.calls import row_count
from frtspec.runtime.seats.guard import Band
from frtspec.runtime.spec import Seat

MAX_ROWS = 256


def tolerance(k: int) -> float:
    """Largest error of a rung against its emulation: the root mean square over rows of
    each row's rel_l2.

    ``max(2**-6, 0.5 * sqrt(16 / K))``: half of what it takes to lose one 16-wide tile of
    a contraction over K. Correct FP8 rungs measure 0.005, whatever K: a last bit of a
    stored value tips a few codes over.
    """
    return max(2.0**-6, float(0.5 * (16 / max(k, 1)) ** 0.5)) if k > 64 else 0.25


def probe(impl: BoundImpl, seat: Seat, inputs: tuple[Tensor, ...], k: int) -> str:
    """Run the bound rung on rows and compare it. Returns what it measured.

    Raises Refusal ``rung.raised``, ``rung.shape``, ``rung.not_finite`` or ``rung.values``.
    A device that stopped working and faults of our own code pass through.
    """
    assert impl.rung is not None
    form = f"{impl.SPEC.name} on {impl.rung.label}"
    at = {"rows": inputs[0].shape[0]}
    found = _run(impl, inputs, seat.name, form, at)
    wanted = found
    emulation = next((r for r in _all_rungs(impl) if r.kind == "emulate"), None)
    if emulation is not None and emulation != impl.rung:
        wanted = _tensors(impl.on(emulation).run(*inputs))

    def refuse(code: str, what: str) -> Refusal:
        fix = "another rung serves, or none; the package or the device lacks what this one needs"
        return Refusal(code, what, fix=fix, seat=seat.name, form=form, shape=at)

    shapes, expected = [list(t.shape) for t in found], [list(t.shape) for t in wanted]
    if shapes != expected or not all(t.is_floating_point() for t in found):
        raise refuse("rung.shape", f"the probe gave {shapes}, the emulation gives {expected}")
    if not all(bool(t.isfinite().all()) for t in found):
        raise refuse("rung.not_finite", "the probe gave a NaN or an Inf")
    pairs = list(zip(found, wanted, strict=True))
    typical = max(row_distance(row_errors(mine, theirs)) for mine, theirs in pairs)
    worst = max(float(row_errors(mine, theirs).max()) for mine, theirs in pairs)
    allowed = tolerance(k)
    if not (typical <= allowed and worst <= ROW):
        raise refuse(
            "rung.values",
            f"the probe is {typical:.3g} away from the emulation ({allowed:.3g} is allowed at "
            f"K = {k}), its worst row {worst:.3g} ({ROW:g} is allowed)",
        )
    if wanted is found:
        return f"probed at {at['rows']} rows: finite"
    return f"probed at {at['rows']} rows: {typical:.2g} away from the emulation"


def _all_rungs(impl: BoundImpl) -> list[Any]:
    return [*impl.SPEC.rungs, *(rung for band in impl.SPEC.bands for rung in band.rungs)]


_OURS = (NameError, AttributeError, AssertionError, ImportError)
"""Raised by a rung that needs no package, these are faults of generated code."""


def _run(
    impl: BoundImpl, inputs: tuple[Tensor, ...], seat: str, form: str, at: dict[str, int]
) -> tuple[Tensor, ...]:
    assert impl.rung is not None
    try:
        result = impl.run(*inputs)
        if inputs[0].is_cuda:
            torch.cuda.synchronize(inputs[0].device)
    except Exception as error:  # the rung's answer, kept whole in the refusal
        if isinstance(error, torch.AcceleratorError):
            raise
        if impl.rung.kind not in ("hub", "local") and isinstance(error, _OURS):
            raise
        raise Refusal(
            "rung.raised",
            f"the probe raised {type(error).__name__}: {error}",
            fix="another rung serves, or none; the package or the device lacks what this one needs",
            seat=seat,
            form=form,
            shape=at,
        ) from error
    return _tensors(result)


def _tensors(result: Any) -> tuple[Tensor, ...]:
    return (result,) if isinstance(result, Tensor) else tuple(result)


# ---------------------------------------------------------------- inputs


def probe_inputs(
    seat: Seat, observation: Observation, band: Band, device: torch.device
) -> tuple[Tensor, ...]:
    """Rows for a probe: what the host really gave the seat where a call was kept, else
    random ones of the calibrated magnitude; as many as the host uses inside the band."""
    count = _row_count(band, observation.rows(seat.name))
    captured = observation.captured(seat.name)
    if captured:
        given = [x for x in captured[0].seat_inputs if isinstance(x, Tensor)]
        return tuple(_repeat(x.reshape(row_count(x), -1), count) for x in given)
    form = observation.form(seat.name)
    (widths,) = form.widths
    dtype = next(iter(form.out_dtypes)).dtype
    points = observation.amax_points(seat.name)
    amax = max((observation.amax(seat.name, point) for point in points), default=4.0)
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(count, width, generator=generator) for width in widths]
    return tuple((x * (amax / 4)).to(device, dtype) for x in made)


def _row_count(band: Band, seen: tuple[int, ...]) -> int:
    """The largest row count seen that the band holds, up to ``MAX_ROWS``; else its least."""
    usable = [min(rows, MAX_ROWS) for rows in seen]
    fitting = [rows for rows in usable if band.holds(rows)]
    if fitting:
        return max(fitting)
    return band.least


def _repeat(rows: Tensor, count: int) -> Tensor:
    times = -(-count // max(rows.shape[0], 1))
    return rows.repeat(times, 1)[:count].contiguous()

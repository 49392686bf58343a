"""From a gate that does not hold to the refusal that says what that means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating.gates import GateResult
from frtspec.runtime.spec import Seat


@dataclass(frozen=True)
class _Meaning:
    """What a gate that doesn't hold means to the user."""

    code: str
    what: str
    fix: str


_FINER = "keep this seat at the host's precision, or use a scheme with a finer format"

_MEANINGS = {
    "reference": _Meaning(
        code="boundary.reference_mismatch",
        what="the structure's reference, with the host's own weights, does not give what the "
        "host gives",
        fix="the binding's variants, params, slots or places do not fit this host: check the "
        "activation, the norm's weight mode and rounding, eps and the layouts",
    ),
    "saturation": _Meaning(
        code="calibration.saturated",
        what="the calibrated range is too small for the judged samples",
        fix="calibrate on traffic that holds what the judged samples hold (for a language "
        "model: the first positions of sequences), or on more of it",
    ),
    "parity": _Meaning(
        code="gate.parity",
        what="the bound rung does not do the arithmetic that its impl states",
        fix="use another rung (rungs=), and report the kernel: its scale form, layout or "
        "rounding is not the one declared",
    ),
    "boundary": _Meaning("gate.boundary", "the structure's boundary gate is missed", _FINER),
    "seam": _Meaning("gate.seam", "the seam's own gate is missed", _FINER),
    "host": _Meaning(
        code="gate.host",
        what="the treated host misses what the caller requires",
        fix="leave structures out (structures=), use a finer scheme, or lower floors=",
    ),
}


def refusal(
    result: GateResult,
    *,
    seat: str | None = None,
    form: str | None = None,
    saturation: GateResult | None = None,
) -> Refusal:
    """What a gate that doesn't hold means for a seat (or for the seats of a unit).

    ``saturation``: the seat's, which is named as the cause where it clips.
    """
    meaning = _MEANINGS[result.gate]
    what = f"{meaning.what}: {result.reason}"
    if result.verdict == "failed":
        what = f"the {result.gate} gate can't measure anything: {result.reason}"
    elif result.gate in ("boundary", "seam") and saturation and saturation.verdict == "warn":
        cause = _MEANINGS["saturation"]
        what = f"{cause.what}: {saturation.reason}; so {what}"
        meaning = cause
    return Refusal(meaning.code, what, fix=meaning.fix, seat=seat, form=form)


def require(seat: Seat, results: Iterable[GateResult], *, form: str | None = None) -> None:
    """Raises the Refusal of the first gate that does not hold."""
    known = {result.gate: result for result in results}
    for result in known.values():
        if not result.holds:
            raise refusal(result, seat=seat.name, form=form, saturation=known.get("saturation"))

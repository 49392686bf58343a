"""Codes of what schemes decide and set (FRT0507 and FRT0508)."""

from __future__ import annotations

from frtspec.diag.catalog.sema_parts import IMPL, SCHEME, STRUCTURE, code, file, swap

_SCHEME = file(STRUCTURE, IMPL, SCHEME)

_DECIDED = _SCHEME.replace(" use fp8", " keep when amax > 20 * median(amax) use fp8")

CODES = (
    code(
        "0507",
        "schemes",
        "condition that decides nothing",
        "A route keeps the host where its condition holds. A condition compares amounts: what "
        "calibration measured, row counts, sizes, the device's capability.",
        swap(_DECIDED, "amax > 20 * median(amax)", "20 > 10"),
        "Write for instance keep when amax > 20 * median(amax).",
    ),
    code(
        "0508",
        "schemes",
        "parameter that does not fit",
        "A route sets params of the impl it uses, by name, to numbers inside their range.",
        swap(_SCHEME, " use fp8", " use fp8 with (alpha = 0.5)"),
        "Set what the impl declares as `param`, or leave `with (…)` out.",
    ),
)

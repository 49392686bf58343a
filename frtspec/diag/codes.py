"""The one registry of diagnostic codes, merged from the phases' catalogs.

Loaded only where a code's page or title is wanted (``explain``, SARIF rules, the
tests): making a diagnostic needs no more than the code's id.
"""

from __future__ import annotations

import importlib
from functools import cache

from frtspec.diag.codes_types import Code, phase_of

PHASES = ("syntax", "sema", "codegen", "cli", "importer", "diff")


@cache
def codes() -> dict[str, Code]:
    """Every code by id, in the order of ids.

    Raises ``ValueError`` when two phases claim one id or an id lies outside its
    phase's range: both are mistakes in the catalog itself.
    """
    merged: dict[str, Code] = {}
    for phase in PHASES:
        for code in importlib.import_module(f"frtspec.diag.catalog.{phase}").CODES:
            _check(code, merged)
            merged[code.id] = code
    return dict(sorted(merged.items()))


def _check(code: Code, merged: dict[str, Code]) -> None:
    number = code.id.removeprefix("FRT")
    if not (code.id.startswith("FRT") and number.isascii() and number.isdigit()):
        raise ValueError(f"{code.id!r} is no code: it must be FRT and four digits")
    if len(number) != 4 or phase_of(number) != code.phase:
        raise ValueError(f"{code.id} lies outside the range of its phase {code.phase!r}")
    if code.id in merged:
        raise ValueError(f"{code.id} is declared twice: {merged[code.id].title!r}, {code.title!r}")

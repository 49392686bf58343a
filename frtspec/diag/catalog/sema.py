"""Codes of the checks (FRT02xx to FRT07xx, FRT09xx)."""

from __future__ import annotations

from frtspec.diag.catalog import (
    sema_discover,
    sema_hosted,
    sema_names,
    sema_pipelines,
    sema_regions,
    sema_schemes,
    sema_seats,
    sema_steps,
    sema_types,
    sema_uses,
)
from frtspec.diag.codes_types import Code

CODES: tuple[Code, ...] = (
    *sema_names.CODES,
    *sema_types.CODES,
    *sema_hosted.CODES,
    *sema_steps.CODES,
    *sema_uses.CODES,
    *sema_seats.CODES,
    *sema_schemes.CODES,
    *sema_pipelines.CODES,
    *sema_discover.CODES,
    *sema_regions.CODES,
)

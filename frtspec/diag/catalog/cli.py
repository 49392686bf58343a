"""Codes of the command line, the configuration and the lock file (FRT08xx)."""

from __future__ import annotations

from frtspec.diag.codes_types import Code

CODES: tuple[Code, ...] = ()

"""Where a declaration comes from, and how far it may be trusted."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.source import Span


@dataclass(frozen=True)
class Origin:
    """Where a declaration came from. ``source_digest``: sha256 of the file's bytes;
    ``contract_digest``: sha256 of the canonical IR, filled in by ``ir.canon``."""

    path: str
    source_digest: str
    span: Span
    contract_digest: str = ""


@dataclass(frozen=True)
class Status:
    """draft | imported(reason)."""

    name: str
    reason: str | None = None

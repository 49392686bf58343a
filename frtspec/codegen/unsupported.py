"""What has no generator yet: raised deep inside, reported once as FRT0700."""

from __future__ import annotations

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import Span


class Unsupported(Exception):
    """A construct that checks but that no generator exists for. ``what`` names it."""

    def __init__(self, what: str, span: Span) -> None:
        super().__init__(what)
        self.what = what
        self.span = span

    def diagnostic(self) -> Diagnostic:
        return Diagnostic(
            "FRT0700",
            f"unsupported: {self.what} has no generator yet",
            self.span,
            help="leave it out of what is generated; `frtspec check` still holds it to the rules",
        )

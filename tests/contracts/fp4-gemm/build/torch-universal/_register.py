"""The namespace of the package's ops, and the device that it plays."""

from __future__ import annotations

import sys

from ._shared.checking import Check, Ops

ID = __name__.partition(".")[0]
OPS = Ops(ID)


def on(check: Check, *allowed: str) -> None:
    """Refuse a device that the op does not run on."""
    check.arch(sys.modules[ID].ARCH, *allowed)

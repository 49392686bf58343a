"""A step that concerns some seats settles those seats by what it raises; the others go on."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from frtspec.runtime.environment import device_is_lost
from frtspec.runtime.errors import Refusal
from frtspec.runtime.records import SeatRecord, failure_of

log = logging.getLogger("frtspec.runtime")


@contextmanager
def isolated(records: Sequence[SeatRecord], what: str) -> Iterator[None]:
    """Settles ``records`` by what the block raises: a Refusal refuses, a fault fails.

    A device that stopped working takes the whole attachment with it; KeyboardInterrupt
    and SystemExit are not caught here.
    """
    try:
        yield
    except Refusal as refusal:
        for record in records:
            if record.open:
                record.refuse(refusal)
    except Exception as error:  # kept whole, as the outcome of these seats
        if device_is_lost(error):
            raise
        failure = failure_of(error, what, [record.name for record in records])
        log.warning("%s failed for %s: %s", what, ", ".join(failure.seats), failure.exception)
        for record in records:
            if record.open:
                record.fail(failure)

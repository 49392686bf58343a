"""Where the statistics of one attachment come from: measured, a file, the cache, a caller."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from frtspec.runtime import store
from frtspec.runtime.calibration import file as calibration_file
from frtspec.runtime.calibration.data import Calibration, Draft
from frtspec.runtime.calibration.key import Key, require_same
from frtspec.runtime.calibration.ranks import RankRefusal, Ranks
from frtspec.runtime.calibration.state import overlaid
from frtspec.runtime.errors import Refusal
from frtspec.runtime.observation.observe import Observation
from frtspec.runtime.records import CalibrationRecord
from frtspec.runtime.spec import HostBinding, SchemeSpec, Seat

log = logging.getLogger("frtspec.runtime")

AUTO = "auto"


class Source:
    """What ``calibration=`` came to.

    saved   the calibration to use; None: measure
    origin  measured, file, cache or given
    draft   what was measured, where it was not saved
    notes   what is worth telling: a damaged file, a calibration that does not fit any more
    """

    def __init__(self, key: Key | None = None) -> None:
        self.key = key
        self.saved: Calibration | None = None
        self.draft: Draft | None = None
        self.origin = "measured"
        self.notes: list[str] = []
        self.cached: Path | None = None

    @staticmethod
    def open(
        wanted: Any,
        model: nn.Module,
        binding: HostBinding,
        scheme: SchemeSpec,
        seats: Sequence[Seat],
        ranks: Ranks,
    ) -> Source:
        """Looks up what was asked for, before anything runs.

        Raises Refusal ``calibration.*`` where the caller's own file or object can't be used;
        the cache's are told in ``notes`` and measured anew.
        """
        if wanted is None and not ranks.several:
            return Source()
        source = Source(Key.of(model, binding, scheme, seats))
        assert source.key is not None
        match wanted:
            case None:
                pass
            case "auto":
                source._look_up(source.key)
            case Calibration():
                source._take(wanted, "given", "the calibration")
            case CalibrationRecord():
                source._take(wanted.seal(), "given", "the calibration")
            case str() | os.PathLike():
                path = Path(wanted)
                path = path / calibration_file.name_of(source.key) if path.is_dir() else path
                source._take(Calibration.load(path), "file", str(path))
            case _:
                raise Refusal(
                    "option.calibration",
                    f"calibration= is a {type(wanted).__name__}",
                    fix='pass a file, "auto", a Calibration, or leave it out to measure',
                )
        return source

    def _take(self, found: Calibration, origin: str, what: str) -> None:
        assert self.key is not None
        require_same(found.key, self.key, what=what)
        self.saved, self.origin = found, origin

    def _look_up(self, key: Key) -> None:
        self.cached = calibration_file.folder() / calibration_file.name_of(key)
        if not self.cached.exists():
            return
        try:
            self._take(Calibration.load(self.cached), "cache", str(self.cached))
        except Refusal as refusal:
            if refusal.code == "calibration.key":  # somebody renamed a file
                with store.locked(self.cached):
                    kept = store.set_aside(self.cached)
                self._note(f"{refusal.what}; it is kept as {kept.name}")
            else:
                self._note(refusal.what)

    def _note(self, text: str) -> None:
        log.warning("%s", text)
        self.notes.append(text)

    # ------------------------------------------------------------ use

    def settle(self, ranks: Ranks) -> None:
        """Ranks use saved calibrations together or not at all. Raises Refusal
        ``ranks.calibration`` where they were given different ones."""
        if not ranks.several:
            return
        rows = ranks.exchange("saved", self.digest)
        if None in rows:
            if self.saved is not None and self.origin != "cache":
                self._note("not every rank was given a calibration: all measure")
            self.saved, self.origin = None, "measured"
        elif len(set(rows)) > 1:
            raise RankRefusal(
                "ranks.calibration",
                "the ranks have different calibrations: "
                + ", ".join(f"rank {rank} {digest[:12]}" for rank, digest in enumerate(rows)),
                fix="give every rank the same one; Calibration.merge makes one of several",
            )

    def used(self, look: Observation, percentile: float) -> Observation | None:
        """The saved statistics on the host as it was looked at; None where the cache's were
        taken over other steps or fewer seats, so that it is measured anew."""
        assert self.saved is not None
        try:
            seen = overlaid(look, self.saved, percentile)
            lacking = [r for r in seen.refusals.values() if r.code == "calibration.missing"]
            if self.origin == "cache" and lacking:
                raise lacking[0]
        except Refusal as refusal:
            if self.origin != "cache":
                raise
            self._note(f"{refusal.seat}: {refusal.what}: measured anew")
            self.saved, self.origin = None, "measured"
            return None
        return seen

    def united(
        self, seen: Observation, draft: Draft, ranks: Ranks, percentile: float
    ) -> Observation:
        """What was measured here, with what the other ranks measured; kept in the cache where
        "auto" was asked for."""
        self.draft = draft
        if self.key is None:
            return seen
        mine = draft.seal(self.key)
        if ranks.several:
            mine = ranks.united(mine)
            seen = overlaid(seen, mine, percentile)
        self.saved = mine
        if self.cached is not None and ranks.rank == 0:
            try:
                mine.save(self.cached)
            except (OSError, Refusal) as error:
                self._note(f"the calibration was not kept in the cache: {error}")
        return seen

    @property
    def runs(self) -> int:
        """How many runs or ranks the statistics are of."""
        return 1 if self.saved is None else self.saved.runs

    @property
    def digest(self) -> str | None:
        return None if self.saved is None else calibration_file.digest(self.saved)

"""Which rung was fastest on this box: decisions that measurements left, read when a ladder
is climbed.

A decision only puts a rung first among those that are asked for; it is probed like any
other, and where it is not admitted the next in order is tried. Nothing is measured here, and
``attach`` never writes here: ``rungs.racing`` does, and who raced rungs by other means.
"""

from __future__ import annotations

import json
import logging
import math
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from frtspec.runtime import store
from frtspec.runtime.environment import version
from frtspec.runtime.errors import Refusal
from frtspec.runtime.receipt import digest
from frtspec.runtime.seats.guard import Band
from frtspec.runtime.spec import ImplSpec, Seat

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

log = logging.getLogger("frtspec.runtime")

SCHEMA = "frtspec.rungs/1"
NAME = "rungs.json"
AUTO = "auto"

PACKAGES = ("frtspec", "torch", "triton", "kernels")
"""Distributions whose versions can change which rung is faster."""


@dataclass(frozen=True)
class Key:
    """What a decision holds for; all fields are text.

    device     name, and capability where it has one
    driver     of the device; empty on a CPU
    packages   versions of what runs there
    shape      the seat's sizes and dtype-free band of rows: ``D=576 F=1536 rows 1..=8``
    impl, structure   name, version and contract digest
    """

    device: str
    driver: str
    packages: str
    shape: str
    impl: str
    structure: str

    @staticmethod
    def of(
        seat: Seat, spec: ImplSpec, dims: Mapping[str, int], band: Band, device: torch.device
    ) -> Key:
        versions = [f"{name} {version(name) or 'none'}" for name in PACKAGES]
        sizes = [f"{name}={dims[name]}" for name in sorted(dims)]
        return Key(
            device=_device(device),
            driver=_driver(device),
            packages=", ".join([*versions, f"cuda {torch.version.cuda or 'none'}"]),
            shape=" ".join([*sizes, f"rows {band}"]),
            impl=f"{spec.name} {seat.target} version {spec.version} {spec.contract_digest}",
            structure=f"{seat.structure.key} {seat.structure.contract_digest}",
        )


@dataclass(frozen=True)
class Decision:
    """A rung that won, the times of all that ran (ms), and the receipt that has the figures."""

    key: Key
    winner: str
    times_ms: Mapping[str, float]
    receipt: str | None = None

    @property
    def why(self) -> str:
        others = ", ".join(f"{name} {ms:.4g} ms" for name, ms in self.times_ms.items())
        cited = f", receipt {self.receipt[:12]}" if self.receipt else ""
        return f"measured first on this box ({others}{cited})"


class RungCache:
    """The decisions of one file. ``problems`` says what could not be read of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[str] = []
        self._rows = self._read()

    @staticmethod
    def open(wanted: str | os.PathLike[str] | None) -> RungCache | None:
        """The cache that ``decisions=`` names: a file, "auto" for the one in the cache folder,
        None for none. Raises Refusal ``option.decisions`` for anything else."""
        if wanted is None:
            return None
        if not isinstance(wanted, str | os.PathLike):
            raise Refusal(
                "option.decisions",
                f"decisions= is a {type(wanted).__name__}",
                fix='pass a file, "auto", or None to use the order of the impl',
            )
        return RungCache(store.cache_dir() / NAME if wanted == AUTO else Path(wanted))

    def find(self, key: Key) -> Decision | None:
        """The decision for just this key, or None."""
        return self._rows.get(_digest(key))

    def record(
        self,
        key: Key,
        times_ms: Mapping[str, float],
        *,
        declared: Sequence[str],
        receipt: str | None = None,
        winner: str | None = None,
    ) -> Decision:
        """Keeps the winner of the rungs that ran, for this key, over what was known.

        times_ms   label of a rung -> its time; ``declared``: the labels that the impl has
        receipt    digest of the receipt that holds the measurement
        winner     one of ``times_ms``; None: the one with the least time

        Raises Refusal ``decisions.undeclared`` for a rung that the impl does not have,
        ``decisions.emulate`` and ``decisions.times``; ``store.locked``.
        """
        _check(times_ms, declared)
        winner = winner or min(times_ms, key=lambda name: times_ms[name])
        _check({winner: times_ms.get(winner, 0.0)}, declared)
        decision = Decision(key, winner, dict(times_ms), receipt)
        with store.locked(self.path):
            store.sweep(self.path)
            self._rows = {**self._load(), _digest(key): decision}
            rows = {at: asdict(row) for at, row in sorted(self._rows.items())}
            body = {"schema": SCHEMA, "decisions": rows}
            with store.replacing(self.path) as fresh:
                text = json.dumps({**body, "digest": digest(body)}, indent=1, ensure_ascii=False)
                fresh.write_text(text + "\n", encoding="utf-8")
        return decision

    def _read(self) -> dict[str, Decision]:
        """Every decision; none where the file can't be used, which stops nothing."""
        if not self.path.exists():
            return {}
        try:
            return _parsed(self.path)
        except OSError as error:
            self._note(f"{self.path} can't be read: {error}")
            return {}
        except _Damaged:
            pass  # seen again under the lock, where nobody can be writing
        try:
            with store.locked(self.path):
                return self._load()
        except (OSError, Refusal) as error:
            self._note(f"{self.path} can't be read: {error}")
            return {}

    def _load(self) -> dict[str, Decision]:
        """Every decision, for a caller that holds the lock; a damaged file is kept aside."""
        if not self.path.exists():
            return {}
        try:
            return _parsed(self.path)
        except _Damaged as problem:
            kept = store.set_aside(self.path)
            self._note(f"{self.path} is damaged: {problem}; it is kept as {kept.name}")
            return {}

    def _note(self, text: str) -> None:
        log.warning("%s", text)
        self.problems.append(text)


class _Damaged(ValueError):
    """A file that holds no decisions; the text says why."""


def _parsed(path: Path) -> dict[str, Decision]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise _Damaged(f"it is no JSON ({error})") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise _Damaged(f"it is not of schema {SCHEMA}")
    wrong = next(_validator().iter_errors(found), None)
    if wrong is not None:
        raise _Damaged(f"{wrong.json_path}: {wrong.message[:200]}")
    body = {name: value for name, value in found.items() if name != "digest"}
    if found.get("digest") != digest(body):
        raise _Damaged("it was changed: the digest does not fit")
    try:
        rows = {at: _decision(row) for at, row in found["decisions"].items()}
    except (KeyError, TypeError, AttributeError, Refusal) as error:
        raise _Damaged(f"a decision is none ({error})") from None
    astray = [at for at, row in rows.items() if at != _digest(row.key)]
    if astray:
        raise _Damaged(f"decision {astray[0][:12]} stands under another's key")
    return rows


@cache
def _validator() -> Validator:
    """Of the published schema, ``rungs.schema.json``."""
    from jsonschema import Draft202012Validator  # only a file that is there needs it

    text = resources.files(__package__).joinpath("rungs.schema.json").read_text("utf-8")
    return Draft202012Validator(json.loads(text))


def _decision(row: Mapping[str, Any]) -> Decision:
    key = Key(**{field.name: str(row["key"][field.name]) for field in fields(Key)})
    times = row["times_ms"]
    _check(times, list(times))
    if row["winner"] not in times:
        raise KeyError(row["winner"])
    return Decision(key, row["winner"], times, row["receipt"])


def _check(times_ms: Mapping[str, float], declared: Sequence[str]) -> None:
    unknown = [name for name in times_ms if name not in declared]
    if unknown:
        raise Refusal(
            "decisions.undeclared",
            f"{', '.join(unknown)} is no rung of this impl; it has {', '.join(declared)}",
            fix="record the labels that the receipt's trail shows",
        )
    if "emulate" in times_ms:
        raise Refusal(
            "decisions.emulate",
            "emulate was raced: it shows the arithmetic and is not there to be fast",
            fix="leave it out of the race",
        )
    bad = [n for n, ms in times_ms.items() if not _number(ms)]
    if bad or not times_ms:
        raise Refusal(
            "decisions.times",
            f"no time above zero for {', '.join(bad) or 'any rung'}",
            fix="record the measured times in ms",
        )


def _number(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value > 0  # type: ignore[arg-type,operator]


def _digest(key: Key) -> str:
    return digest(asdict(key))


# ---------------------------------------------------------------- the box


def _device(device: torch.device) -> str:
    if device.type != "cuda":
        return f"{device.type} {platform.machine()} {_processor()}".strip()
    found = torch.cuda.get_device_properties(device)
    return f"cuda {found.name} {found.major}.{found.minor}"


def _driver(device: torch.device) -> str:
    """The version of the device's driver, as exactly as the system tells it."""
    if device.type != "cuda":
        return ""
    told = _text(Path("/proc/driver/nvidia/version"))
    found = re.search(r"NVRM version:.*?\s(\d+\.\d+[\d.]*)\s", told)
    api: Any = torch._C
    return found[1] if found else str(api._cuda_getDriverVersion())


def _processor() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", _text(Path("/proc/cpuinfo")), re.MULTILINE)
    return found[1] if found else platform.processor()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

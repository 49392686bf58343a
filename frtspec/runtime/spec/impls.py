"""An executable form of a structure: packs, scales, bands of rows and rungs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from frtspec.dims import Constraint
from frtspec.runtime.spec.structures import Bound


@dataclass(frozen=True)
class RungSpec:
    """One way to execute an impl.

    ``kind``: hub | local | torch | emulate. ``run`` names the method that executes the
    rung, ``prepare`` the one that makes what its kernel needs once, when a seat is bound.
    ``only``: variants that it serves, where that is less than the impl does. ``without``:
    optional inputs that its kernel is not handed: it serves calls that have none of them.
    """

    kind: str
    run: str
    package: str | None = None
    version: int | None = None
    entries: tuple[str, ...] = ()
    envelope: tuple[Constraint, ...] = ()
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prepare: str | None = None
    without: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.kind} {self.package}@v{self.version}" if self.package else self.kind


@dataclass(frozen=True)
class BandSpec:
    """Rows ``lo..=hi`` of ``dim`` run ``rungs``, then those of the impl itself; outside of all
    bands the host's module runs and is counted."""

    dim: str
    lo: int
    hi: int | None
    rungs: tuple[RungSpec, ...]


@dataclass(frozen=True)
class ScaleSpec:
    """How an impl scales a point.

    kind  the format of the codes (``fp8_e4m3``, ``int8``, ``nvfp4``), or ``balance``: the
          impl is handed the largest magnitude of each channel
    per   the granularity: of what is measured, or of scales computed at each call
    """

    point: str
    kind: str
    per: str


@dataclass(frozen=True)
class Need:
    """A rule on the dims of a seat. ``why``: what it follows from; None: stated by the spec."""

    rule: Constraint
    why: str | None = None


@dataclass(frozen=True)
class ImplSpec:
    """An executable form.

    packs    quantised packs: name -> (format, granularity)
    scales   what calibration has to measure for it
    at_call  scales that it takes from the values of each call
    stores   points that it rounds to a dtype
    params   numbers that a route may set, with their defaults
    sizes    dims that no argument shows and that it is told: keyword -> dim
    needs    rules on dims that hold for every rung
    gates    what the gate harness holds it to on synthetic data, in place of what the structure
             states: ``boundary``, ``seam``. What attach judges by is the structure's, always
    parts    what it calls of the host, handed to each run by keyword
    wire     the format that a chain carries its output in: it is for producers of chains only
    """

    name: str
    structure: str
    structure_version: int
    seam: str | None
    version: int
    source_digest: str
    contract_digest: str
    scales: Mapping[str, ScaleSpec]
    admits: Mapping[str, tuple[str, ...]]
    only: Mapping[str, tuple[str, ...]]
    rungs: tuple[RungSpec, ...]
    bands: tuple[BandSpec, ...] = ()
    packs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    at_call: Mapping[str, ScaleSpec] = field(default_factory=dict)
    stores: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, float] = field(default_factory=dict)
    sizes: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[Need, ...] = ()
    imported: str | None = None
    wire: str | None = None
    parts: tuple[str, ...] = ()
    gates: Mapping[str, tuple[Bound, ...]] = field(default_factory=dict)

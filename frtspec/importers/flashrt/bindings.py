"""A binding of flash-rt as its YAML has it: fields checked, every value with its place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.suggest import did_you_mean
from frtspec.importers.flashrt.fields import Report
from frtspec.importers.flashrt.structures import PeerStructure
from frtspec.importers.flashrt.yamldoc import Scalar

NAME_UNKNOWN = "FRT0885"
CONSTANTS = ("zeros", "ones")


@dataclass(frozen=True)
class Host:
    """A row of ``hosts``."""

    name: Scalar
    module_path: Scalar | None
    versions: Scalar | None


@dataclass(frozen=True)
class Weight:
    """One slot: ``path`` is a template with ``{i}``, or None where ``const`` says what
    stands in its place."""

    slot: Scalar
    path: Scalar | None
    const: str | None


@dataclass(frozen=True)
class Phase:
    """A row of ``m_profile``: how many rows come in one phase of the host."""

    name: Scalar
    rows: Scalar
    phase: Scalar


@dataclass(frozen=True)
class Conditioning:
    source: Scalar
    weight: Scalar
    bias: Scalar | None
    chunk_order: tuple[Scalar, ...]
    residual_gate: bool
    key: Scalar


@dataclass(frozen=True)
class Region:
    """A binding of a region structure. ``weights_host``: the key of its ``weights_map``;
    ``dims`` without ``layers``, which is how often the region is there."""

    name: Scalar
    structure: PeerStructure
    dims: tuple[tuple[Scalar, int], ...]
    layers: int
    variant: tuple[tuple[Scalar, Scalar], ...]
    dtype: Scalar | None
    profile: tuple[Phase, ...]
    weights_host: Scalar
    layout: Scalar | None
    weights: tuple[Weight, ...]
    conditioning: Conditioning | None
    hosts: tuple[Host, ...]


@dataclass(frozen=True)
class Stage:
    """One stage; ``texts`` are its fields that are plain texts or numbers, in order."""

    name: Scalar
    texts: tuple[tuple[Scalar, Scalar], ...]
    outputs: tuple[tuple[Scalar, Scalar], ...]


@dataclass(frozen=True)
class Segment:
    name: Scalar
    stage: Scalar
    kind: Scalar
    seam: Scalar
    structures: tuple[Scalar, ...]


@dataclass(frozen=True)
class Pipeline:
    """A binding of a pipeline. ``contract`` None: no coverage is declared."""

    name: Scalar
    structure: PeerStructure
    stages: tuple[Stage, ...]
    cadences: tuple[tuple[Scalar, tuple[Scalar, ...]], ...]
    contract: Scalar | None
    hot_path: tuple[Scalar, ...]
    segments: tuple[Segment, ...]
    hosts: tuple[Host, ...]


def unknown(what: str, at: Scalar, known: Iterable[str], report: Report) -> None:
    """A name that the catalog does not have."""
    names = list(known)
    report(
        Diagnostic(
            NAME_UNKNOWN,
            f"no {what} is called `{at.text}`",
            at.span,
            help=did_you_mean(at.text, names)
            or (f"known: {', '.join(names)}" if names else "there is none here"),
        )
    )

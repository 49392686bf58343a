"""The facts that generated code hands to the runtime.

Everything here is plain, frozen data: what a structure is, where it sits on a
host, which impls serve it. Mechanism lives in the other modules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from frtspec.dims import Axis, Constraint, Poly
from frtspec.runtime.patterns import Pattern
from frtspec.runtime.rules import Rule

if TYPE_CHECKING:
    import torch

    from frtspec.runtime.decisions import Condition
    from frtspec.runtime.impl import BoundImpl

RUNTIME_ABI = 1
"""Version of the contract between generated code and this package."""


@dataclass(frozen=True)
class Bound:
    """One metric of a gate. ``op`` is ``">="`` or ``"<="``; None: reported only."""

    metric: str
    op: str | None = None
    value: float | None = None


@dataclass(frozen=True)
class SeamSpec:
    """A cut of a structure that a host module can stand for.

    ``call(*sources, **slots, **variants, **params)`` computes the cut in plain
    torch, slots in ``in_out`` layout, and returns one tensor (or a tuple).
    """

    name: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    slots: tuple[str, ...]
    points: tuple[str, ...]
    variants: tuple[str, ...]
    params: tuple[str, ...]
    gates: tuple[Bound, ...]
    call: Callable[..., Any]


@dataclass(frozen=True)
class Wire:
    """A port that carries codes: their format, and the name of their scale."""

    format: str
    scale: str


@dataclass(frozen=True)
class InnerSpec:
    """A structure, or a seam of it, in a slot of another.

    pins  variants of it that are settled
    dims  inner dim -> its size outside; a dim of its own is ``slot.dim``
    """

    spec: StructureSpec
    seam: str | None
    pins: Mapping[str, str]
    dims: Mapping[str, Poly]


@dataclass(frozen=True)
class StructureSpec:
    """A structure as generated.

    ``reference(*inputs, **slots, **variants, **params, record=…, <seam>_with=…)``
    is the plain-torch ground truth: slots in ``in_out`` layout, ``record(name,
    tensor)`` sees every point, and ``mlp_with=fn`` runs ``fn(*sources)`` in place
    of the seam ``mlp``. Repeated slots and outputs are lists/tuples. ``sizes``: the dims
    that no tensor shows and the reference takes by keyword, keyword -> dim. ``parts``: what
    stays the host's inside, callables that the reference takes by keyword, each with its
    results: the argument that one looks like, by position, or the output. ``discover``:
    what modules look like that it can sit on. ``inner``: slots that are structures.
    ``updates``: output -> the input it overwrites; ``aliases``: output -> the input whose
    storage it is. ``wires``: ports that carry codes.

    ``imported``, here and on impls, schemes and bindings: why the declaration was never
    verified (``status imported``); attach refuses it. None where it was written for us.
    """

    name: str
    version: int
    source_digest: str
    contract_digest: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    optional: tuple[str, ...]
    slots: tuple[str, ...]
    shapes: Mapping[str, tuple[Axis, ...]]
    variants: Mapping[str, tuple[str, ...]]
    params: Mapping[str, float]
    points: Mapping[str, str]
    seams: Mapping[str, SeamSpec]
    boundary_gate: tuple[Bound, ...]
    latency_against: tuple[str, ...]
    reference: Callable[..., Any]
    rules: tuple[Rule, ...] = ()
    sizes: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    imported: str | None = None
    discover: tuple[Pattern, ...] = ()
    inner: Mapping[str, InnerSpec] = field(default_factory=dict)
    updates: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    wires: Mapping[str, Wire] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.name} v{self.version}"

    @property
    def requires(self) -> tuple[Constraint, ...]:
        """The rules on sizes that every seat has to obey, whatever its variants."""
        return tuple(
            rule.test
            for rule in self.rules
            if rule.kind == "require"
            and rule.form is None
            and rule.when is None
            and isinstance(rule.test, Constraint)
        )


@dataclass(frozen=True)
class RungSpec:
    """One way to execute an impl.

    ``kind``: hub | local | torch | emulate. ``run`` names the method that executes the
    rung. ``only``: variants that it serves, where that is less than the impl does.
    """

    kind: str
    run: str
    package: str | None = None
    version: int | None = None
    entries: tuple[str, ...] = ()
    envelope: tuple[Constraint, ...] = ()
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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
    at_call  points that it quantises with scales of each call, and how
    stores   points that it rounds to a dtype
    params   numbers that a route may set, with their defaults
    sizes    dims that no argument shows and that it is told: keyword -> dim
    needs    rules on dims that hold for every rung
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
    at_call: tuple[ScaleSpec, ...] = ()
    stores: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, float] = field(default_factory=dict)
    sizes: Mapping[str, str] = field(default_factory=dict)
    needs: tuple[Need, ...] = ()
    imported: str | None = None


@dataclass(frozen=True)
class Stat:
    """A statistic at a point. ``stat`` None: quantised at run time, nothing to measure.

    ``size``: channels of a block. ``bins``: of a histogram.
    """

    stat: str | None
    per: str = "tensor"
    size: int | None = None
    bins: int | None = None

    def __str__(self) -> str:
        """As specs write it: ``amax per block 16``."""
        size = "" if self.size is None else f" {self.size}"
        bins = "" if self.bins is None else f"(bins = {self.bins})"
        return "none" if self.stat is None else f"{self.stat}{bins} per {self.per}{size}"


@dataclass(frozen=True)
class Route:
    """What a scheme makes of a structure (seam): an impl class, or keep the host.

    stats      point -> what is measured there, one statistic or several
    params     what the impl's params are set to
    keep_when  where it holds, the host is kept although there is an impl
    version    the structure's; None: every one
    """

    structure: str
    seam: str | None
    stats: Mapping[str, Stat | tuple[Stat, ...]]
    impl: type[BoundImpl] | None
    keep: str | None = None
    params: Mapping[str, float] = field(default_factory=dict)
    keep_when: Condition | None = None
    version: int | None = None

    def measured(self) -> dict[str, tuple[Stat, ...]]:
        """Point -> the statistics that are really measured there."""
        several = {p: s if isinstance(s, tuple) else (s,) for p, s in self.stats.items()}
        asked = {p: tuple(s for s in stats if s.stat is not None) for p, stats in several.items()}
        return {point: stats for point, stats in asked.items() if stats}


@dataclass(frozen=True)
class SchemeSpec:
    name: str
    source_digest: str
    contract_digest: str
    routes: tuple[Route, ...]
    otherwise: str
    imported: str | None = None

    def route(self, structure: str, seam: str | None, version: int | None = None) -> Route:
        """The row for a structure (seam) of a version, else what becomes of all others."""
        for row in self.routes:
            known = row.structure == structure and row.seam == seam
            if known and (row.version == version or None in (row.version, version)):
                return row
        return Route(structure, seam, {}, None, self.otherwise, version=version)


# ---------------------------------------------------------------- seats on a host


@dataclass(frozen=True)
class Weight:
    """A weight slot on the host: an absolute parameter path and its layout.

    ``layout``: ``in_out`` or ``out_in`` for matrices (``out_in`` is transposed
    on reading), None for vectors. ``view``: param, zeros, ones, transpose,
    chunks (``args`` = (chunk wanted, all chunk names in order)), part (which, of how
    many), expert (which), flat, squeeze.
    """

    path: str | None
    layout: str | None = None
    view: str = "param"
    args: tuple[Any, ...] = ()


@dataclass(frozen=True)
class InputOf:
    """The input of a module (absolute path): first positional, or the keyword ``arg``.

    Here and below, ``item`` is the place in a tuple, None for the value itself (of an
    output that is a tuple, its first tensor); ``layout`` how the host lays it out where
    that differs from the structure (see ``runtime.places``).
    """

    path: str
    arg: str | None = None
    item: int | None = None
    layout: str | None = None


@dataclass(frozen=True)
class OutputOf:
    """The output of a module (absolute path)."""

    path: str
    item: int | None = None
    layout: str | None = None


@dataclass(frozen=True)
class RoutedInput:
    """What the seat's routed function is handed as ``arg`` (the name in ``Routed.args``)."""

    function: str
    arg: str
    item: int | None = None
    layout: str | None = None


@dataclass(frozen=True)
class RoutedOutput:
    """What the seat's routed function returns."""

    function: str
    item: int | None = None
    layout: str | None = None


Place = InputOf | OutputOf | RoutedInput | RoutedOutput


@dataclass(frozen=True)
class Routed:
    """A function that the seat's module looks up when it runs.

    ``via``: registry, global, attribute, processor or cache (see ``runtime.routes``);
    ``args``: name here -> the function's own name of what it is handed.
    """

    name: str
    via: str
    function: str
    args: Mapping[str, str]


@dataclass(frozen=True)
class Boundary:
    """Where the structure's full boundary lies. ``none`` holds the reason when the host
    has no such place; then the seam's own gate judges the seat. A repeated output maps to
    a tuple, one place an index (for siblings: the output of each member)."""

    path: str | None = None
    inputs: Mapping[str, Place] = field(default_factory=dict)
    outputs: Mapping[str, Place | tuple[OutputOf, ...]] = field(default_factory=dict)
    slots: Mapping[str, Weight] = field(default_factory=dict)
    none: str | None = None


@dataclass(frozen=True)
class Expect:
    """A host fact checked at bind: see ``runtime.facts`` for the closed list."""

    fact: str
    values: tuple[str, ...]
    of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Siblings:
    """Modules that share one input, replaced leaf by leaf. ``prove``: facts to show
    at calibration (shared_input, call_order). ``members``: module paths in order."""

    members: tuple[str, ...]
    prove: tuple[str, ...]


@dataclass(frozen=True)
class Seat:
    """One place on one host where a structure (or its seam) sits.

    ``variants`` maps every axis to a value, or to a ``Refused`` when the host's
    config asks for something the structure has no variant for. ``placeless``: points that
    this host shows nowhere, with the reason. ``form``: swap, siblings, block, route (then
    ``routed``) or update (then ``cadence``: observation or prompt).
    """

    name: str
    structure: StructureSpec
    seam: str | None
    path: str
    form: str
    variants: Mapping[str, str | Refused]
    params: Mapping[str, float]
    dims: Mapping[str, int]
    slots: Mapping[str, Weight | tuple[Weight, ...]]
    points: Mapping[str, Place]
    placeless: Mapping[str, str] = field(default_factory=dict)
    boundary: Boundary | None = None
    siblings: Siblings | None = None
    expects: tuple[Expect, ...] = ()
    routed: Routed | None = None
    cadence: str | None = None

    @property
    def target(self) -> str:
        seam = f".{self.seam}" if self.seam else ""
        return f"{self.structure.name}{seam} v{self.structure.version}"


@dataclass(frozen=True)
class Refused:
    """A config value that no arm of a ``match`` serves."""

    what: str
    value: Any
    known: tuple[Any, ...]


def choose(value: Any, arms: Mapping[Any, str], *, what: str, otherwise: str | None = None) -> Any:
    """The arm for ``value``; else ``otherwise``; else a ``Refused`` that names the choice."""
    if value in arms:
        return arms[value]
    return otherwise if otherwise is not None else Refused(what, value, tuple(arms))


@dataclass(frozen=True)
class Chain:
    """A value handed from one seat to the next in the dtype ``wire``. Seats by name, with
    their numbers; ``prove``: same_storage, exclusive_consumer."""

    producer: str
    output: str
    consumer: str
    input: str
    wire: str
    prove: tuple[str, ...]


@dataclass(frozen=True)
class SeatGroup:
    """Seats that share one state. ``writer``: ``first_called``, or a seat's name without
    its numbers; ``prove``: same_stream, same_width, same_rows."""

    name: str
    seats: tuple[str, ...]
    writer: str
    prove: tuple[str, ...]


def numbers_of(seats: Sequence[Seat], *names: str) -> tuple[str, ...]:
    """The full names of the seats called ``names``, of every number, in order."""
    return tuple(seat.name for seat in seats if seat.name.partition("[")[0] in names)


def no_links(model: torch.nn.Module) -> Sequence[Chain | SeatGroup]:
    """What joins the seats of a binding that declares nothing of the kind."""
    return ()


@dataclass(frozen=True)
class Host:
    """A host of a binding: the classes of a package, or a native module, which stands for
    itself and is nothing to attach to."""

    package: str
    versions: str | None = None
    classes: tuple[str, ...] = ()
    module: str | None = None


@dataclass(frozen=True)
class HostBinding:
    """A binding as generated. ``dims(model)`` gives the sizes of a live model, ``seats(model)``
    lists its seats, ``links(model)`` what joins them.

    ``package`` and the like are those of the first host: ``check_host`` puts the one that a
    model is of there."""

    name: str
    source_digest: str
    contract_digest: str
    hosts: tuple[Host, ...]
    dims: Callable[[torch.nn.Module], Mapping[str, int]]
    seats: Callable[[torch.nn.Module], Sequence[Seat]]
    schemes: Mapping[str, SchemeSpec]
    auto: tuple[tuple[float | None, str], ...]
    runtime_abi: int
    imported: str | None = None
    links: Callable[[torch.nn.Module], Sequence[Chain | SeatGroup]] = no_links

    @property
    def package(self) -> str:
        return self.hosts[0].package

    @property
    def versions(self) -> str | None:
        return self.hosts[0].versions

    @property
    def classes(self) -> tuple[str, ...]:
        """Every class that the binding is for."""
        return tuple(cls for host in self.hosts for cls in host.classes)

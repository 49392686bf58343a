"""A region of a model: its boundary, slots, variants, points, seams, gates and reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from frtspec.dims import Axis, Constraint, Poly
from frtspec.runtime.eligibility.rules import Rule
from frtspec.runtime.hosts.patterns import Pattern


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
    storage it is. ``wires``: ports that carry codes. ``dtypes``: values whose dtype is not
    the host's, by the names that specs use.

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
    dtypes: Mapping[str, str] = field(default_factory=dict)

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

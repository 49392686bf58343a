"""Everything checked in one run."""

from __future__ import annotations

from dataclasses import dataclass, field

from frtspec.ir.decl.binding import Binding
from frtspec.ir.decl.impl import Impl
from frtspec.ir.decl.pipeline import Pipeline
from frtspec.ir.decl.scheme import AutoTable, Scheme
from frtspec.ir.decl.structure import Structure


@dataclass(frozen=True)
class Program:
    """Everything checked in one run and found right, sorted by key.

    Structures and pipelines by (name, version); impls by (structure, its version, seam or None, impl
    name); schemes and bindings by name.
    """

    structures: dict[tuple[str, int], Structure] = field(default_factory=dict)
    impls: dict[tuple[str, int, str | None, str], Impl] = field(default_factory=dict)
    schemes: dict[str, Scheme] = field(default_factory=dict)
    auto: AutoTable | None = None
    bindings: dict[str, Binding] = field(default_factory=dict)
    pipelines: dict[tuple[str, int], Pipeline] = field(default_factory=dict)

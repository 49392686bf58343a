"""Where each generated module lives: in the package being written, or in an installed one.

A project's package does not repeat what the catalog's package already holds. A
declaration is *shared* when the installed package was generated from the same contract;
it is then imported from there, with an assertion on its digest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from frtspec.codegen.manifest import Manifest, SpecEntry
from frtspec.codegen.names import camel, pipeline_module, structure_module
from frtspec.ir.decl import (
    AutoTable,
    Binding,
    Impl,
    Origin,
    Pipeline,
    Program,
    Route,
    Scheme,
    Structure,
)

Module = Structure | Pipeline | Impl | Scheme
"""What has a module of its own that others import."""

Declaration = Structure | Pipeline | Impl | Scheme | Binding | AutoTable


@dataclass(frozen=True)
class External:
    """An installed generated package, by its manifest."""

    package: str
    manifest: Manifest


def spec_key(decl: Declaration) -> str:
    """How a manifest names a declaration: ``impl fp8_static v1 of decoder_ffn.mlp v1``."""
    match decl:
        case Structure(name=name, version=version):
            return f"structure {name} v{version}"
        case Pipeline(name=name, version=version):
            return f"pipeline {name} v{version}"
        case Impl(name=name, version=version, structure=(of, of_version), seam=seam):
            target = f"{of}.{seam}" if seam else of
            return f"impl {name} v{version} of {target} v{of_version}"
        case Scheme(name=name):
            return f"scheme {name}"
        case Binding(name=name):
            return f"binding {name}"
        case AutoTable():
            return "auto"


@dataclass
class Homes:
    """Names and places of everything a program generates.

    ``impl_modules``: the module of each impl, by its spec key.
    """

    program: Program
    package: str
    external: External | None
    impl_modules: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.impl_modules = _impl_modules(self.program.impls.values())

    # ------------------------------------------------------------ names

    def impl_module(self, impl: Impl) -> str:
        return self.impl_modules[spec_key(impl)]

    def impl_class(self, impl: Impl) -> str:
        return camel(self.impl_module(impl))

    def module(self, decl: Module) -> str:
        """The module below the package: ``structures.decoder_ffn_v1``."""
        match decl:
            case Structure():
                return f"structures.{structure_module(decl)}"
            case Pipeline():
                return f"pipelines.{pipeline_module(decl)}"
            case Impl():
                return f"impls.{self.impl_module(decl)}"
            case Scheme(name=name):
                return f"schemes.{name}"

    # ------------------------------------------------------------ places

    def shared(self, decl: Declaration) -> bool:
        """Whether the installed package holds this very declaration, and all it imports."""
        if self.external is None or self.external.package == self.package:
            return False
        row = self.external.manifest.specs.get(spec_key(decl))
        if row is None or row.contract_digest != decl.origin.contract_digest or row.module is None:
            return False
        match decl:
            case Impl(structure=structure):
                return self.shared(self.program.structures[structure])
            case Structure():
                return all(self.shared(self.program.structures[k]) for k in inner_of(decl))
            case Scheme(routes=routes):
                return all(self.shared(self.routed(r)) for r in routes if r.use is not None)
            case _:
                return True

    def home(self, decl: Module) -> str:
        """The package that holds a declaration's module."""
        if self.external is not None and self.shared(decl):
            return self.external.package
        return self.package

    def path(self, decl: Module) -> str:
        """The whole module: ``flashrt_gen.impls.decoder_ffn_fp8_static``."""
        return f"{self.home(decl)}.{self.module(decl)}"

    def routed(self, route: Route) -> Impl:
        """The impl that a route uses."""
        assert route.use is not None
        return self.program.impls[route.structure, route.structure_version, route.seam, route.use]

    def entry(self, decl: Declaration) -> SpecEntry:
        """The row of a declaration in the manifest."""
        origin: Origin = decl.origin
        module = None
        if isinstance(decl, Structure | Pipeline | Impl | Scheme) and not self.shared(decl):
            module = self.module(decl)
        return SpecEntry(origin.path, origin.source_digest, origin.contract_digest, module)


def inner_of(structure: Structure) -> tuple[tuple[str, int], ...]:
    """The structures in the slots of one, each once."""
    keys = [(s.inner.name, s.inner.version) for s in structure.slots if s.inner is not None]
    return tuple(dict.fromkeys(keys))


def _impl_modules(impls: Iterable[Impl]) -> dict[str, str]:
    """Module names that tell every impl apart; the seam is named only where it has to be."""
    out: dict[str, str] = {}
    used: set[str] = set()
    for impl in sorted(impls, key=lambda i: (i.structure, i.seam or "", i.name)):
        structure, version = impl.structure
        of = structure if version == 1 else f"{structure}_v{version}"
        own = impl.name if impl.version == 1 else f"{impl.name}_v{impl.version}"
        name = f"{of}_{own}"
        if name in used:
            name = f"{of}_{impl.seam}_{own}"
        used.add(name)
        out[spec_key(impl)] = name
    return out

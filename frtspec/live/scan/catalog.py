"""The structures of a generated package that have patterns."""

from __future__ import annotations

import importlib
import pkgutil

from frtspec.runtime.spec import ImplSpec, StructureSpec


def structures_of(package: str) -> list[StructureSpec]:
    """Every structure of a generated package that has patterns. Of several versions one that
    an impl serves comes first, then the newest."""
    home = importlib.import_module(f"{package}.structures")
    found: list[StructureSpec] = []
    for module in pkgutil.iter_modules(home.__path__):
        spec = importlib.import_module(f"{home.__name__}.{module.name}").SPEC
        if spec.discover and spec.imported is None:
            found.append(spec)
    served = _served(package)
    return sorted(found, key=lambda s: (s.name, (s.name, s.version) not in served, -s.version))


def _served(package: str) -> set[tuple[str, int]]:
    """Structures that some impl of the package is for: (name, version)."""
    home = importlib.import_module(f"{package}.impls")
    found = set()
    for module in pkgutil.iter_modules(home.__path__):
        for held in vars(importlib.import_module(f"{home.__name__}.{module.name}")).values():
            spec = getattr(held, "SPEC", None)
            if isinstance(spec, ImplSpec):
                found.add((spec.structure, spec.structure_version))
    return found

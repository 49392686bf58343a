"""Bindings of a ``.frt`` file as live objects: compiled, generated and imported in memory.

The text is the one that ``frtspec gen`` would write, unformatted. Nothing is written to
disk, and what the installed catalog package holds already is imported from it.
"""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

from frtspec import resources
from frtspec.codegen import External
from frtspec.codegen import manifest as mf
from frtspec.codegen.plan import plan
from frtspec.config import CATALOG_PACKAGE, load_config
from frtspec.diag.diagnostic import Diagnostic, has_errors
from frtspec.diag.source import SourceFile
from frtspec.project import load, select
from frtspec.runtime.spec import HostBinding

_NUMBERS = itertools.count()


class SpecErrors(Exception):
    """The specs have errors: ``diagnostics`` in order, and the ``sources`` they point into."""

    def __init__(
        self, diagnostics: Sequence[Diagnostic], sources: Mapping[str, SourceFile]
    ) -> None:
        self.diagnostics, self.sources = tuple(diagnostics), sources
        super().__init__(f"{len(self.diagnostics)} findings")


def bindings_of(path: str | Path) -> dict[str, HostBinding]:
    """Every binding that a spec file declares, by name.

    ``path`` is looked up as on the command line: in the current folder, a spec root or the
    catalog. Raises ``SpecErrors`` with the findings where the file can't be generated.
    """
    folder = Path.cwd()
    found = load_config(folder)
    sources = {found.source.path: found.source} if found.source else {}
    _require(found.diagnostics, sources)
    selection = select([str(path)], found.config, folder)
    _require(selection.diagnostics, sources)
    loaded = load(selection)
    sources |= loaded.sources
    _require(loaded.diagnostics, sources)
    asked = {file.name for file in loaded.selection.files if file.path in loaded.selection.asked}
    package = f"frtspec_live_{next(_NUMBERS)}"
    made = plan(loaded.program, package, _installed(), asked)
    _require(made.diagnostics, sources)
    modules = {_module(package, unit.path): unit for unit in made.units if unit.path != "py.typed"}
    finder = _Sources({name: (unit.path, unit.raw()) for name, unit in modules.items()})
    names = [b.name for b in loaded.program.bindings.values() if b.origin.path in asked]
    return {name: _imported(finder, f"{package}.{name}").HOST for name in names}


def _require(diagnostics: Sequence[Diagnostic], sources: Mapping[str, SourceFile]) -> None:
    if has_errors(diagnostics):
        raise SpecErrors(diagnostics, sources)


def _installed() -> External | None:
    """The catalog's package, where it is whole."""
    try:
        manifest = mf.read(resources.catalog_package_dir() / mf.NAME)
    except mf.ManifestError:
        return None
    return None if manifest is None else External(CATALOG_PACKAGE, manifest)


def _module(package: str, path: str) -> str:
    """``structures/x.py`` as a module of the package."""
    name = path.removesuffix(".py").replace("/", ".")
    return f"{package}.{name}".removesuffix(".__init__")


def _imported(finder: _Sources, name: str) -> ModuleType:
    sys.meta_path.append(finder)
    try:
        return importlib.import_module(name)
    finally:
        sys.meta_path.remove(finder)


class _Sources(MetaPathFinder, InspectLoader):
    """Finds modules in a mapping: name -> (path inside the package, text)."""

    def __init__(self, texts: Mapping[str, tuple[str, str]]) -> None:
        self._texts = texts

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return spec_from_loader(name, self) if name in self._texts else None

    def is_package(self, name: str) -> bool:
        return self._texts[name][0].endswith("__init__.py")

    def get_source(self, name: str) -> str:
        return self._texts[name][1]

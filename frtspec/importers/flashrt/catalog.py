"""The folder of flash-rt's catalog: found without importing the package, read as YAML."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import NOWHERE, SourceFile, Span
from frtspec.importers.flashrt import yamldoc
from frtspec.importers.flashrt.bindings import Pipeline, Region
from frtspec.importers.flashrt.read_binding import binding
from frtspec.importers.flashrt.structures import PeerStructure, structure
from frtspec.syntax.read import read_source

NO_CATALOG = "FRT0880"
PACKAGE, INSIDE = "flash_rt", "catalog"
BINDINGS, STRUCTURES, STRUCTURE_FILE = "bindings", "structures", "structure.yaml"


@dataclass(frozen=True)
class Catalog:
    """``structures`` and ``bindings`` by name, those that mean something; ``sources`` by
    the path that the diagnostics show."""

    folder: Path
    structures: Mapping[str, PeerStructure]
    bindings: Mapping[str, Region | Pipeline]
    sources: Mapping[str, SourceFile]
    diagnostics: tuple[Diagnostic, ...]


def find(given: str | None, here: Path) -> tuple[Path | None, tuple[Diagnostic, ...]]:
    """The catalog's folder: the given one, or the installed package's.

    A folder counts when it holds ``bindings/`` and ``structures/``; the package's own
    folder, one level above, will do too.
    """
    if given is None:
        package = _installed()
        if package is None:
            message = f"{PACKAGE} is not installed, and no folder of its catalog was given"
            help = "pip install flash-rt, or say --from DIR"
            return None, (Diagnostic(NO_CATALOG, message, NOWHERE, help=help),)
        candidates = [package / INSIDE]
    else:
        candidates = [here / given, here / given / INSIDE]
    for folder in candidates:
        if _is_folder(folder / BINDINGS) and _is_folder(folder / STRUCTURES):
            return folder, ()
    shown = given if given is not None else str(candidates[0])
    message = f"no catalog of {PACKAGE} at `{shown}`"
    help = f"give the folder that holds {BINDINGS}/ and {STRUCTURES}/"
    return None, (Diagnostic(NO_CATALOG, message, NOWHERE, help=help),)


def read(folder: Path, show: Callable[[Path], str]) -> Catalog:
    """Reads every structure, then every binding; never raises on what a file holds.

    show  the path of a file as messages show it
    """
    sources: dict[str, SourceFile] = {}
    found: list[Diagnostic] = []

    def text_of(path: Path) -> SourceFile | None:
        name = show(path)
        source, problems = read_source(str(path))
        found.extend(_renamed(problem, name) for problem in problems)
        if source is None:
            return None
        sources[name] = SourceFile(name, source.text, source.digest)
        return sources[name]

    structures: dict[str, PeerStructure] = {}
    for path in _files(folder / STRUCTURES, f"*/{STRUCTURE_FILE}"):
        source = text_of(path)
        held, problems = (None, []) if source is None else yamldoc.read(source)
        found.extend(problems)
        if held is not None:
            made = structure(held, path.parent.name, show(path), found.append)
            if made is not None:
                structures[made.name] = made
    bindings: dict[str, Region | Pipeline] = {}
    for path in _files(folder / BINDINGS, "*.yaml"):
        source = text_of(path)
        if source is not None:
            bound = read_binding(source, path.stem, structures, found)
            if bound is not None:
                bindings[path.stem] = bound
    if not bindings and not found:
        at = Span(show(folder / BINDINGS), 0, 0)
        found.append(Diagnostic(NO_CATALOG, "this folder holds no binding", at))
    return Catalog(folder, structures, bindings, sources, tuple(found))


def read_binding(
    source: SourceFile,
    stem: str,
    structures: Mapping[str, PeerStructure],
    found: list[Diagnostic],
) -> Region | Pipeline | None:
    """One binding's file; None where it means nothing. Findings go to ``found``."""
    held, problems = yamldoc.read(source)
    found.extend(problems)
    return None if held is None else binding(held, stem, structures, found.append)


def _files(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # ValueError: a zero byte in the path
        return False


def _installed() -> Path | None:
    """The folder of the installed package; finding it does not import it."""
    try:
        spec = importlib.util.find_spec(PACKAGE)
    except (ImportError, ValueError):  # ValueError: a module of that name without a spec
        return None
    places = None if spec is None else spec.submodule_search_locations
    return Path(next(iter(places))) if places else None


def _renamed(problem: Diagnostic, name: str) -> Diagnostic:
    """A finding of the reader under the path that is shown."""
    at = Span(name, problem.span.start, problem.span.end)
    return Diagnostic(problem.code, problem.message, at, problem.severity, (), problem.help)

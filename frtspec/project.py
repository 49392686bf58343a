"""The files of one run: which ``.frt`` files there are, which were asked for, and what
they mean together.

A run reads every spec root, because names are resolved across files, and reports on
the files that were asked for. The catalog that ships with frtspec is the last root: a
project's file at the same place in its root (``structures/decoder_ffn/v1.frt``) stands
in for the catalog's.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from frtspec import resources
from frtspec.closure import Head, Purpose, head, needed
from frtspec.config import Config
from frtspec.diag.diagnostic import Diagnostic, has_errors, in_order
from frtspec.diag.source import NOWHERE, SourceFile, Span
from frtspec.diag.suggest import closest
from frtspec.ir.decl import Origin, Program
from frtspec.lock import declared

if TYPE_CHECKING:
    from frtspec.sema.analyse import Analysis
    from frtspec.syntax import ast

SUFFIX = ".frt"
_SKIPPED = frozenset({"site-packages", "dist-packages", "node_modules", "__pycache__"})


@dataclass(frozen=True)
class SpecFile:
    """One file of the run.

    real   absolute, links resolved: what tells two files apart
    path   as messages show it
    name   inside its spec root, with ``/``: what generated files and locks cite, the
           same on every machine
    root   its spec root, or None for a file that lies in none
    """

    real: Path
    path: str
    name: str
    root: Path | None

    @property
    def in_catalog(self) -> bool:
        """Whether it is one of the files that ship with frtspec."""
        return self.real.is_relative_to(resources.specs_dir())


@dataclass(frozen=True)
class Selection:
    """``files``: every file to read; ``asked``: the paths, as shown, to report on."""

    files: tuple[SpecFile, ...]
    asked: frozenset[str]
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True)
class Loaded:
    """What the files mean. ``diagnostics`` are those about the files asked for, in
    order; ``program`` holds every declaration that is right, from every file that was read
    for its meaning; ``sources`` the text of all.

    left_out  declarations of the files asked for that are not in the program, because
              they, or something they need in another file, have errors
    """

    selection: Selection
    program: Program
    sources: Mapping[str, SourceFile]
    diagnostics: tuple[Diagnostic, ...]
    left_out: tuple[Span, ...]

    @property
    def ok(self) -> bool:
        return not has_errors(self.diagnostics)


# ---------------------------------------------------------------- which files


def select(paths: Sequence[str], config: Config, here: Path) -> Selection:
    """Resolves the paths of a command line.

    A path means: the file or folder of that name in the current folder ``here``, else in
    a spec root, else in the catalog. No paths mean the project's spec roots, or the
    catalog where there are none. A path that means nothing is FRT0856, a folder without
    a spec FRT0857.
    """
    catalog = resources.specs_dir()
    roots = [*config.specs, catalog]
    universe = _universe(roots, here)
    known = {file.real: file for file in universe}
    asked: list[SpecFile] = []
    problems: list[Diagnostic] = []
    wanted = [(path, _find(path, roots, here)) for path in paths]
    wanted += [(shown(root, here), root) for root in (config.specs or (catalog,)) if not paths]
    for path, found in wanted:
        if found is None:
            problems.append(_not_found(path, roots, here, universe))
            continue
        if found.is_dir():
            files = [_spec_file(f, None, here, config.root) for f in walk(found)]
            if not files:
                problems.append(
                    Diagnostic("FRT0857", "no .frt file in this folder", Span(path, 0, 0))
                )
        else:
            files = [_spec_file(found, None, here, config.root)]
        asked += [known.setdefault(file.real, file) for file in files]
    names = frozenset(f.path for f in asked)
    # A name declared twice is reported at the later file: rather the user's than the catalog's.
    read = sorted(known.values(), key=lambda f: (f.path in names, not f.in_catalog, f.name, f.path))
    return Selection(tuple(read), names, tuple(problems))


def walk(folder: Path) -> Iterator[Path]:
    """Every ``.frt`` file below the folder, in the order of names; hidden folders, virtual
    environments and installed packages are left out, links to folders not followed."""
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _SKIPPED
            and not os.path.exists(os.path.join(base, name, "pyvenv.cfg"))
        )
        for name in sorted(names):
            if name.endswith(SUFFIX):
                yield Path(base, name)


def _universe(roots: Sequence[Path], here: Path) -> list[SpecFile]:
    catalog = roots[-1]
    files: dict[Path, SpecFile] = {}
    names: set[str] = set()
    for root in roots:
        for path in walk(root):
            file = _spec_file(path, root, here, root)
            if root == catalog and file.name in names:
                continue  # the project has its own file at this place
            files.setdefault(file.real, file)
        names = {file.name for file in files.values()}
    return list(files.values())


def _spec_file(path: Path, root: Path | None, here: Path, base: Path) -> SpecFile:
    real = path.resolve()
    resolved = base.resolve()
    inside = real.is_relative_to(resolved)
    name = real.relative_to(resolved).as_posix() if inside else path.name
    return SpecFile(real, shown(path, here), name, root)


def shown(path: Path, here: Path) -> str:
    """The path relative to the current folder; absolute where the two share no folder."""
    absolute = os.path.abspath(here / path)
    try:
        shared = os.path.commonpath((absolute, here))
    except ValueError:  # another drive
        return absolute
    if os.path.dirname(shared) == shared:
        return absolute
    return Path(os.path.relpath(absolute, here)).as_posix()


def _find(path: str, roots: Iterable[Path], here: Path) -> Path | None:
    if "\0" in path:
        return None
    for base in (here, *roots):
        found = base / path
        try:
            if found.exists():
                return Path(os.path.abspath(found))
        except OSError:  # a name too long for the file system is just not there
            continue
    return None


def _not_found(
    path: str, roots: Sequence[Path], here: Path, universe: Iterable[SpecFile]
) -> Diagnostic:
    names = {file.name: file.name for file in universe}
    if "/" not in path:  # the folder may be what is missing
        last = {name.rpartition("/")[2]: name for name in sorted(names, reverse=True)}
        names = last | names
    near = names.get(path) or names.get(closest(path, names) or "")
    looked = ", ".join(dict.fromkeys(shown(base, here) for base in (here, *roots)))
    return Diagnostic(
        "FRT0856",
        f"no file or folder `{path}`",
        NOWHERE,
        notes=((None, f"looked in {looked}"),),
        help=f"did you mean `{near}`?" if near else None,
    )


# ---------------------------------------------------------------- what they mean


def load(
    selection: Selection,
    progress: Callable[[str], None] = lambda text: None,
    *,
    purpose: Purpose | None = None,
) -> Loaded:
    """Reads, parses and analyses the files; never raises on what they hold.

    progress  told from time to time what is being done
    purpose   what for: only the files that the asked ones need for it are parsed, and what is
              found about these is what a run over all finds. None: every file
    """
    files = selection.files if selection.asked else ()
    sources, found = _read(files)
    trees = _Trees(sources, progress)
    chosen = [file.path for file in files if file.path in sources]
    if purpose is not None:
        heads = {path: head_of(sources[path].text) for path in chosen}
        wanted = needed(heads, selection.asked & heads.keys(), purpose)
        analysis = trees.analysed([path for path in chosen if path in wanted])
    if purpose is None or (analysis.open and len(wanted) < len(chosen)):
        analysis = trees.analysed(chosen)
    found += [*trees.problems, *analysis.diagnostics]
    about = [*selection.diagnostics, *(d for d in found if d.span.path in selection.asked)]
    faulty = {d.span.path for d in found if d.severity == "error"} - selection.asked
    about += [_elsewhere(file) for file in files if file.path in faulty and not file.in_catalog]
    left_out = trees.without(analysis.program, selection.asked)
    program = _cite(analysis.program, {file.path: file.name for file in files})
    return Loaded(selection, program, sources, in_order(about), left_out)


head_of: Callable[[str], Head] = functools.lru_cache(maxsize=1024)(head)


def _read(files: Iterable[SpecFile]) -> tuple[dict[str, SourceFile], list[Diagnostic]]:
    """The text of every file that has one, and why the others have none."""
    from frtspec.syntax.read import read_source

    sources: dict[str, SourceFile] = {}
    found: list[Diagnostic] = []
    for file in files:
        source, problems = read_source(file.path)
        found += problems
        if source is not None:
            sources[file.path] = source
    return sources, found


class _Trees:
    """Files as trees, each parsed once, and what they mean together.

    problems  what the parser found
    """

    def __init__(self, sources: Mapping[str, SourceFile], progress: Callable[[str], None]) -> None:
        self._sources = sources
        self._progress = progress
        self._parsed: dict[str, tuple[SourceFile, ast.File]] = {}
        self.problems: list[Diagnostic] = []

    def analysed(self, paths: Sequence[str]) -> Analysis:
        from frtspec.sema import analyse
        from frtspec.syntax.parse import parse

        for number, path in enumerate(paths, start=1):
            if path not in self._parsed:
                self._progress(f"reading {number} of {len(paths)} files")
                result = parse(self._sources[path])
                self.problems += result.diagnostics
                self._parsed[path] = self._sources[path], result.file
        self._progress(f"checking {len(paths)} files")
        return analyse([self._parsed[path] for path in paths])

    def without(self, program: Program, asked: frozenset[str]) -> tuple[Span, ...]:
        """Declarations of the asked files that the program does not hold."""
        from frtspec.syntax import ast

        kept = {item.span for item in declared(program)}
        return tuple(
            decl.span
            for path, (_, tree) in self._parsed.items()
            if path in asked
            for decl in tree.decls
            if not isinstance(decl, ast.ErrorNode) and decl.span not in kept
        )


def _elsewhere(file: SpecFile) -> Diagnostic:
    """One remark per file that has errors and was only read for its names."""
    return Diagnostic(
        "FRT0858",
        "this file has errors of its own and was read only to resolve names",
        Span(file.path, 0, 0),
        severity="warning",
        help="`frtspec check` with this path shows them",
    )


_Table = TypeVar("_Table", bound=dict)  # type: ignore[type-arg]


def _cite(program: Program, names: Mapping[str, str]) -> Program:
    """The program with every origin citing the file's place in its spec root, so that
    nothing generated depends on the folder the command ran in."""

    def cited(table: _Table) -> _Table:
        return type(table)(
            (key, dataclasses.replace(decl, origin=_renamed(decl.origin, names)))
            for key, decl in table.items()
        )

    auto = program.auto
    return dataclasses.replace(
        program,
        structures=cited(program.structures),
        impls=cited(program.impls),
        schemes=cited(program.schemes),
        bindings=cited(program.bindings),
        pipelines=cited(program.pipelines),
        auto=auto and dataclasses.replace(auto, origin=_renamed(auto.origin, names)),
    )


def _renamed(origin: Origin, names: Mapping[str, str]) -> Origin:
    return dataclasses.replace(origin, path=names.get(origin.path, origin.path))


def writable(file: SpecFile, config: Config) -> bool:
    """Whether a command may rewrite the file: the catalog's only where it is the project."""
    return not file.in_catalog or file.root in config.specs

"""``frtspec gen``: the Python package of the specs, and of all they need."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from frtspec import resources
from frtspec.cli import stamp
from frtspec.cli.common import OK, Run, begin, counted, exit_code, progress, report
from frtspec.closure import Purpose
from frtspec.codegen import External, GenReport, generate
from frtspec.codegen import manifest as mf
from frtspec.config import CATALOG_PACKAGE, package_problem
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import NOWHERE, Span
from frtspec.project import Loaded, Selection, load, select, shown


def run(options: argparse.Namespace) -> int:
    """Writes the package; with ``--check`` prints how it differs and exits 1.

    Specs with errors are reported, and nothing is written.
    """
    setup = begin()
    if not setup.ok:
        report(setup.diagnostics, setup.sources)
        return exit_code(setup.diagnostics)
    selection = select(options.paths, setup.config, setup.here)
    if (done := stamp.known(_state(options, setup, selection))) is not None:
        _conclude(done, (), (), shown(_out(options, setup), setup.here), options.check)
        return OK
    with progress() as say:
        loaded = load(selection, say, purpose=Purpose.GENERATE)
        package, problems = _package(options, setup, loaded)
        found = (*setup.diagnostics, *loaded.diagnostics, *problems)
        made = None
        if package is not None and exit_code(found) == OK:
            say(f"generating {package}")
            made = _generate(options, setup, loaded, package)
            found += made.diagnostics
    if made is not None:
        for diff in made.diffs if options.check else ():
            print(diff.text, end="")
    report(found, {**setup.sources, **loaded.sources})
    if made is not None and made.ok:
        if not found:
            settled = len(made.unchanged) + len(made.written)
            stamp.remember(_state(options, setup, selection), settled)
        out = shown(_out(options, setup), setup.here)
        _conclude(len(made.unchanged), made.written, made.removed, out, options.check)
    return exit_code(found)


def _state(options: argparse.Namespace, setup: Run, selection: Selection) -> str:
    """The digest of all that this run would look at."""
    name = options.package or setup.config.package or CATALOG_PACKAGE
    catalog = resources.catalog_package_dir() / mf.NAME
    asked = (name, options.package, setup.config.package, bool(options.paths))
    return stamp.key(selection, _out(options, setup) / name, asked, [catalog])


def _generate(options: argparse.Namespace, setup: Run, loaded: Loaded, package: str) -> GenReport:
    """Generates what was asked for: the paths, or all of the project's own declarations."""
    asked = [file for file in loaded.selection.files if file.path in loaded.selection.asked]
    return generate(
        loaded.program,
        Path(shown(_out(options, setup), setup.here)),
        package=package,
        check=options.check,
        external=None if package == CATALOG_PACKAGE else _installed(),
        only=frozenset(file.name for file in asked),
        prune=not options.paths,
    )


def _out(options: argparse.Namespace, setup: Run) -> Path:
    return setup.config.out if options.out is None else setup.here / options.out


def _installed() -> External | None:
    """The catalog's package; None where it is not whole, so that nothing is taken from it."""
    try:
        manifest = mf.read(resources.catalog_package_dir() / mf.NAME)
    except mf.ManifestError:
        return None
    return None if manifest is None else External(CATALOG_PACKAGE, manifest)


def _package(
    options: argparse.Namespace, setup: Run, loaded: Loaded
) -> tuple[str | None, tuple[Diagnostic, ...]]:
    """The package to write and what stands against it."""
    left_out = tuple(_left_out(span) for span in loaded.left_out) if loaded.ok else ()
    name = options.package or setup.config.package
    if options.package is not None:
        problem = package_problem(options.package)
        if problem:
            return None, (Diagnostic("FRT0855", problem[0], NOWHERE, help=problem[1]),)
    own = [
        file
        for file in loaded.selection.files
        if file.path in loaded.selection.asked and not file.in_catalog
    ]
    if name is None and own:
        return None, (_no_package(own[0].path),)
    return name or CATALOG_PACKAGE, left_out


def _no_package(path: str) -> Diagnostic:
    return Diagnostic(
        "FRT0865",
        "this spec is not part of the catalog, and the project's package has no name",
        Span(path, 0, 0),
        help='give it one in pyproject.toml:\n[tool.frtspec]\npackage = "my_kernels"',
    )


def _left_out(span: Span) -> Diagnostic:
    return Diagnostic(
        "FRT0866",
        "this can't be generated: something it needs has errors in another file",
        span,
        help="run `frtspec check` on the project to see them",
    )


def _conclude(
    unchanged: int, written: Sequence[str], removed: Sequence[str], out: str, check: bool
) -> None:
    if check:
        print(f"{out}: {counted(unchanged, 'file')} up to date")
        return
    for path in written:
        print(f"wrote {out}/{path}")
    for path in removed:
        print(f"removed {out}/{path}")
    parts = [f"{len(written)} written", f"{unchanged} unchanged"]
    if removed:
        parts.append(f"{len(removed)} removed")
    print(f"{out}: {', '.join(parts)}")

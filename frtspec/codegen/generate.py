"""From a checked program to a package on disk."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from frtspec import __version__
from frtspec.codegen import manifest as mf
from frtspec.codegen.abi import RUNTIME_ABI
from frtspec.codegen.homes import External
from frtspec.codegen.manifest import Manifest, ManifestError
from frtspec.codegen.plan import Plan, findings, plan
from frtspec.codegen.pyfmt import BLACK_VERSION, FormatterMissing
from frtspec.codegen.replace import replace_files
from frtspec.codegen.write import Changes, Diff, compare, merged_specs
from frtspec.diag.diagnostic import Diagnostic, has_errors, in_order
from frtspec.diag.source import Span
from frtspec.ir.decl import Program

CATALOG_PACKAGE = "flashrt_gen"


@dataclass(frozen=True)
class GenReport:
    """What a run did, or with ``check`` would do. Paths are relative to the output folder.

    ``diffs``: one unified diff for each file that is not as it should be. When
    ``diagnostics`` hold an error, nothing was written.
    """

    written: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    diffs: tuple[Diff, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def ok(self) -> bool:
        return not has_errors(self.diagnostics)


def generate(
    program: Program,
    out: Path,
    *,
    package: str = CATALOG_PACKAGE,
    check: bool = False,
    external: External | None = None,
    only: Collection[str] | None = None,
    prune: bool | None = None,
    full: bool = False,
) -> GenReport:
    """Generate the package of a checked program into ``out / package``.

    package   the package's name; also what its modules import each other as
    check     write nothing; report what differs
    external  an installed generated package: declarations with the same contract are
              imported from it instead of generated again
    only      spec files (``Origin.path``) whose declarations are wanted, with all they
              need. None: everything
    prune     remove files of the package that nothing generates any more. None: only
              where ``only`` leaves nothing out
    full      trust no digest of the manifest: render, format and compare every file

    Never raises on what it finds on disk: an edited file, a file in the way, a damaged
    manifest or an unwritable folder is an error in the report, and the tree is as it was.
    """
    root = out / package
    shown = root.as_posix()
    try:
        old = mf.read(root / mf.NAME)
    except ManifestError as error:
        return GenReport(diagnostics=(_damaged(shown, error),))
    made = plan(program, package, external, only)
    if made.diagnostics:
        return GenReport(diagnostics=in_order(made.diagnostics))
    try:
        changes = compare(
            root, shown, made.units, old, prune=only is None if prune is None else prune, full=full
        )
        new = _manifest(package, made, changes, old)
        stale = _compare_manifest(root, shown, new, changes)
        if not check and not has_errors(changes.diagnostics):
            write = {**changes.write, mf.NAME: new.text()} if stale else changes.write
            replace_files(root, write, changes.remove)
    except OSError as error:
        return GenReport(diagnostics=(_unwritable(shown, error),))
    except FormatterMissing as error:
        return GenReport(diagnostics=(_no_formatter(shown, error),))
    return _report(package, shown, changes, check)


def problems(program: Program, about: Collection[str] | None = None) -> tuple[Diagnostic, ...]:
    """What stands against generating a checked program: constructs without a generator and
    names that generated code cannot use. Renders and writes nothing.

    about  the spec files that it is asked of, as diagnostics show them. None: all
    """
    found = in_order(findings(program, CATALOG_PACKAGE, about).diagnostics)
    return tuple(d for d in found if about is None or d.span.path in about)


def _manifest(package: str, made: Plan, changes: Changes, old: Manifest | None) -> Manifest:
    files = dict(sorted(changes.entries.items()))
    return Manifest(
        package=package,
        generator=__version__,
        runtime_abi=RUNTIME_ABI,
        black=BLACK_VERSION,
        specs=merged_specs(old, made.specs, files),
        files=files,
    )


def _compare_manifest(root: Path, shown: str, new: Manifest, changes: Changes) -> bool:
    """Whether the manifest itself has to be written."""
    path = root / mf.NAME
    on_disk = path.read_bytes() if path.is_file() else None
    return changes.manifest(shown, on_disk, new.text())


def _report(package: str, shown: str, changes: Changes, check: bool) -> GenReport:
    def named(paths: list[str]) -> tuple[str, ...]:
        return tuple(f"{package}/{path}" for path in paths)

    diagnostics = list(changes.diagnostics)
    if check:
        told = {d.span.path for d in diagnostics}
        diagnostics += [
            _stale(f"{shown}/{diff.path}")
            for diff in changes.diffs
            if f"{shown}/{diff.path}" not in told
        ]
    done = not check and not has_errors(diagnostics)
    return GenReport(
        written=named(list(changes.write)) if done else (),
        unchanged=named(changes.unchanged),
        removed=named(changes.remove) if done else (),
        diffs=tuple(changes.diffs),
        diagnostics=in_order(diagnostics),
    )


# ---------------------------------------------------------------- findings


def _stale(path: str) -> Diagnostic:
    return Diagnostic(
        "FRT0832",
        "this generated file is not what its specs give now",
        Span(path, 0, 0),
        help="run `frtspec gen` and commit the result",
    )


def _damaged(shown: str, error: ManifestError) -> Diagnostic:
    return Diagnostic(
        "FRT0833",
        f"the manifest of the generated package is not one of ours: {error}",
        Span(f"{shown}/{mf.NAME}", 0, 0),
        help="restore it from version control; or move the folder away and generate anew",
    )


def _unwritable(shown: str, error: OSError) -> Diagnostic:
    return Diagnostic(
        "FRT0834",
        f"the package cannot be written: {error.strerror or error}",
        Span(str(error.filename or shown), 0, 0),
        help="choose another folder with --out, or make this one writable; nothing was changed",
    )


def _no_formatter(shown: str, error: FormatterMissing) -> Diagnostic:
    return Diagnostic(
        "FRT0834",
        f"the package cannot be written: {error}",
        Span(shown, 0, 0),
        help=f"pip install black=={BLACK_VERSION}",
    )

"""``frtspec new``: starts of specs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from frtspec import bump
from frtspec.cli.common import (
    FINDINGS,
    OK,
    USAGE,
    begin,
    exit_code,
    progress,
    refused,
    report,
)
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import NOWHERE, Span
from frtspec.diag.suggest import did_you_mean
from frtspec.ir.decl import Structure
from frtspec.project import Loaded, load, select, shown, writable

CANT = "FRT0927"


def run(options: argparse.Namespace) -> int:
    """With ``--bump`` writes ``v<N+1>.frt`` beside the newest version of a structure, and checks
    it; else a start, see ``start.py``."""
    if not options.bump or options.kind != "structure" or options.target:
        if options.bump:
            print("frtspec new: error: --bump is about a structure alone", file=sys.stderr)
            return USAGE
        from frtspec.cli import start

        return start.run(options)
    setup = begin()
    if not setup.ok:
        report(setup.diagnostics, setup.sources)
        return exit_code(setup.diagnostics)
    with progress() as say:
        loaded = load(select((), setup.config, setup.here), say)
    if not loaded.ok:
        report(loaded.diagnostics, loaded.sources)
        return FINDINGS
    found = _newest(options.name, loaded)
    if isinstance(found, Diagnostic):
        report([found], loaded.sources)
        return FINDINGS
    file = next(f for f in loaded.selection.files if f.path == found.origin.span.path)
    if not writable(file, setup.config):
        told = f"structure {found.name} is the catalog's, which is not this project"
        help = f"copy {file.name} into your spec root, where it stands in for the catalog's"
        report([Diagnostic(CANT, told, NOWHERE, help=help)], loaded.sources)
        return FINDINGS
    version = found.version + 1
    path = Path(file.path).with_name(f"v{version}.frt")
    names = shown(setup.here / file.path, setup.here), shown(setup.here / path, setup.here)
    text = bump.bumped(loaded.sources[file.path].text, found, version, names)
    try:
        bump.write(setup.here / path, text)
    except FileExistsError:
        told = "something stands at the place of the new version"
        report([Diagnostic(CANT, told, Span(names[1], 0, 0), help="move it away")], loaded.sources)
        return FINDINGS
    except OSError as error:
        report([refused(names[1], error)], loaded.sources)
        return FINDINGS
    checked = load(select((names[1],), setup.config, setup.here))
    report(checked.diagnostics, checked.sources)
    print(f"{names[1]}: structure {found.name} version {version}, beside {names[0]}")
    return OK if checked.ok else FINDINGS


def _newest(name: str, loaded: Loaded) -> Structure | Diagnostic:
    structures = loaded.program.structures
    versions = [version for known, version in structures if known == name]
    if versions:
        return structures[name, max(versions)]
    help = did_you_mean(name, {known for known, _ in structures})
    return Diagnostic(CANT, f"there is no structure `{name}`", NOWHERE, help=help)

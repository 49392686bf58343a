"""``frtspec export``: bindings as documents of another catalog."""

from __future__ import annotations

import argparse
from pathlib import Path

from frtspec.cli import filing
from frtspec.cli.common import OK, begin, exit_code, progress, report
from frtspec.closure import Purpose
from frtspec.importers.flashrt.export import export
from frtspec.project import load, select


def run(options: argparse.Namespace) -> int:
    """Writes one document a binding; with ``--check`` prints how the folder differs. Specs
    with errors are reported, and nothing is written."""
    setup = begin()
    if not setup.ok:
        report(setup.diagnostics, setup.sources, options.format)
        return exit_code(setup.diagnostics)
    with progress() as say:
        selection = select(options.paths, setup.config, setup.here)
        loaded = load(selection, say, purpose=Purpose.GENERATE)
        found = (*setup.diagnostics, *loaded.diagnostics)
        sources = {**setup.sources, **loaded.sources}
        if exit_code(found) != OK:
            report(found, sources, options.format)
            return exit_code(found)
        say("writing documents")
        asked = loaded.selection.asked
        bindings = [b for b in loaded.program.bindings.values() if b.origin.span.path in asked]
        made = export(loaded.program, bindings, named=bool(options.paths))
    found += made.diagnostics
    report(found, sources, options.format)
    if exit_code(found) != OK:
        return exit_code(found)
    file = filing.compare if options.check else filing.write
    return file(Path(setup.here, options.out), made.files, setup.here, options.format)

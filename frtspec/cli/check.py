"""``frtspec check``: every finding of every file, in one run."""

from __future__ import annotations

import argparse

from frtspec.cli.common import begin, conclude, exit_code, progress, report
from frtspec.closure import Purpose
from frtspec.codegen.generate import problems
from frtspec.diag.diagnostic import Diagnostic, in_order
from frtspec.project import Loaded, load, select


def run(options: argparse.Namespace) -> int:
    """Prints the findings; exits 1 when one is an error, 2 when a path means nothing."""
    setup = begin()
    if not setup.ok:
        report(setup.diagnostics, setup.sources, options.format)
        return exit_code(setup.diagnostics)
    selection = select(options.paths, setup.config, setup.here)
    with progress() as say:
        loaded = load(selection, say, purpose=Purpose.CHECK)
        found = (*setup.diagnostics, *_all(loaded))
    report(found, {**setup.sources, **loaded.sources}, options.format)
    if options.format == "text":
        conclude(found, len(selection.asked))
        if not options.paths and not setup.config.specs:
            print("these are the specs that ship with frtspec; give a path to check your own")
    return exit_code(found)


def _all(loaded: Loaded) -> tuple[Diagnostic, ...]:
    """The findings of the specs, and what would only stand against generating from them."""
    later = problems(loaded.program, loaded.selection.asked)
    return in_order([*loaded.diagnostics, *later])

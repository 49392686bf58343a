"""``frtspec import``: another catalog's bindings as specs, and what they get wrong."""

from __future__ import annotations

import argparse
from pathlib import Path

from frtspec.cli import filing
from frtspec.cli.common import OK, Run, begin, counted, exit_code, progress, report
from frtspec.importers.flashrt import catalog as source
from frtspec.importers.flashrt.convert import Imported, Specs, World, convert
from frtspec.project import select, shown


def run(options: argparse.Namespace) -> int:
    """Reports what the catalog gets wrong and writes one spec a binding; with ``--check``
    prints how the folder differs. One error, and nothing is written."""
    setup = begin()
    if not setup.ok:
        report(setup.diagnostics, setup.sources, options.format)
        return exit_code(setup.diagnostics)
    folder, problems = source.find(options.source, setup.here)
    if folder is None:
        report(problems, {}, options.format)
        return exit_code(problems)
    with progress() as say:
        say("reading the catalog")
        catalog = source.read(folder, lambda path: shown(path, setup.here))
        say("writing specs")
        made = convert(catalog, World(specs_of(setup)))
    found = (*setup.diagnostics, *made.diagnostics)
    report(found, {**setup.sources, **catalog.sources}, options.format)
    if exit_code(found) != OK:
        return exit_code(found)
    if options.format == "text":
        _conclude(made)
    file = filing.compare if options.check else filing.write
    return file(Path(setup.here, options.out), made.files, setup.here, options.format)


def specs_of(setup: Run) -> Specs:
    """What bindings are about: every spec of the project, and of the catalog that ships here,
    but for bindings. What is wrong with them is told by ``check``."""
    from frtspec.syntax import ast
    from frtspec.syntax.parse import parse
    from frtspec.syntax.read import read_source

    parsed = []
    for file in select((), setup.config, setup.here).files:
        text, _ = read_source(file.path)
        if text is None:
            continue
        tree = parse(text).file
        if not any(isinstance(decl, ast.BindingDecl) for decl in tree.decls):
            parsed.append((text, tree))
    return parsed


def _conclude(made: Imported) -> None:
    count = len(made.files)
    told = [
        counted(number, severity)
        for severity in ("warning", "note")
        if (number := sum(d.severity == severity for d in made.diagnostics))
    ]
    print(
        f"\n{counted(count, 'binding')}: {count - made.unverified} verified, {made.unverified} "
        f"imported unverified; {', '.join(told) or 'no findings'}"
    )

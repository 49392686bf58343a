"""A declaration named on the command line: ``decoder_ffn``, ``decoder_ffn@2``, ``qwen3``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from frtspec.cli.common import begin, exit_code, progress, report
from frtspec.config import Config
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import NOWHERE
from frtspec.diag.suggest import did_you_mean
from frtspec.ir.decl import Program
from frtspec.project import Loaded, load, select

UNKNOWN = "FRT0950"


@dataclass(frozen=True)
class Named:
    """``key``: that of the program's table of the kind."""

    kind: str
    key: object
    program: Program
    loaded: Loaded
    config: Config


def read() -> tuple[Loaded, Config] | int:
    """The project's specs and the catalog's; an exit code where they have errors, which are
    reported."""
    setup = begin()
    if not setup.ok:
        report(setup.diagnostics, setup.sources)
        return exit_code(setup.diagnostics)
    selection = select((), setup.config, setup.here)
    if not selection.asked:  # a project without a spec yet: the catalog alone
        selection = select((), replace(setup.config, specs=()), setup.here)
    with progress() as say:
        loaded = load(selection, say)
    if not loaded.ok:
        report(loaded.diagnostics, loaded.sources)
        return exit_code(loaded.diagnostics)
    return loaded, setup.config


def found_or_reported(text: str, kinds: Sequence[str]) -> Named | int:
    """The declaration of one of these kinds; an exit code where there is none."""
    given = read()
    if isinstance(given, int):
        return given
    loaded, config = given
    keys = keys_of(loaded.program, kinds)
    found = keys.get(text)
    if found is None:
        what = " or ".join(kinds)
        near = did_you_mean(text, keys)
        known = sorted(name for name in keys if "@" not in name)
        help = near or f"`frtspec query {kinds[0]}s` lists them" if known else None
        report([Diagnostic(UNKNOWN, f"no {what} `{text}`", NOWHERE, help=help)], {})
        return 1
    kind, key = found
    return Named(kind, key, loaded.program, loaded, config)


def keys_of(program: Program, kinds: Sequence[str]) -> dict[str, tuple[str, object]]:
    """How declarations may be named; a version may be left out, the highest is meant then."""
    found: dict[str, tuple[str, object]] = {}
    for kind, table in (("structure", program.structures), ("pipeline", program.pipelines)):
        for name, version in sorted(table) if kind in kinds else ():
            found[f"{name}@{version}"] = kind, (name, version)
            found[name] = kind, (name, version)
    for kind, names in (("binding", program.bindings), ("scheme", program.schemes)):
        for name in names if kind in kinds else ():
            found.setdefault(name, (kind, name))
    return found

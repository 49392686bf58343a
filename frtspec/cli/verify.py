"""``frtspec verify``: a binding held against a live model."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from typing import TYPE_CHECKING

from frtspec.cli.common import FINDINGS, OK, USAGE, exit_code, report
from frtspec.config import CATALOG_PACKAGE
from frtspec.diag.suggest import did_you_mean

if TYPE_CHECKING:
    from frtspec.runtime.spec import HostBinding


class Unknown(Exception):
    """The command line names no binding; the text says what would."""


def run(options: argparse.Namespace) -> int:
    """Prints the report; exits 1 where something does not hold, 2 where binding or factory
    can't be found or used."""
    from frtspec.live.factory import BadFactory, live
    from frtspec.live.inmemory import SpecErrors
    from frtspec.live.verify import verify
    from frtspec.runtime.errors import Refusal

    try:
        binding = find(options.binding)
        host = live(options.factory)
        found = verify(
            binding,
            host.model,
            host.forward,
            observations=host.observations,
            max_samples=options.max_samples,
        )
    except SpecErrors as errors:
        report(errors.diagnostics, errors.sources)
        return exit_code(errors.diagnostics)
    except (Unknown, BadFactory, Refusal) as error:
        print(f"frtspec: {error}", file=sys.stderr)
        return USAGE
    if options.format == "json":
        print(json.dumps(found.to_json(), indent=2))
    else:
        sys.stdout.write(found.text())
    return OK if found.ok else FINDINGS


def find(name: str) -> HostBinding:
    """The binding that ``name`` means: a spec file (``FILE.frt``, or ``FILE.frt:BINDING`` where
    it holds several), a generated package (``my_kernels.qwen3``), or one of the catalog.

    Raises ``Unknown`` or ``SpecErrors``.
    """
    file, colon, one = name.partition(".frt:")
    if colon or name.endswith(".frt"):
        return _of_file(f"{file}.frt" if colon else name, one)
    if not all(part.isidentifier() for part in name.split(".")):
        raise Unknown(
            f"`{name}` names no binding; write one of the catalog, a package, or FILE.frt"
        )
    module = name if "." in name else f"{CATALOG_PACKAGE}.{name}"
    try:
        binding: HostBinding = importlib.import_module(module).HOST
    except ModuleNotFoundError as error:
        raise Unknown(_no_binding(name, error)) from None
    except AttributeError:
        raise Unknown(f"{module} is no generated binding: it has no HOST") from None
    return binding


def _of_file(path: str, one: str) -> HostBinding:
    from frtspec.live.inmemory import bindings_of

    found = bindings_of(path)
    if one in found:
        return found[one]
    if not one and len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise Unknown(f"{path} declares no binding")
    names = ", ".join(found)
    wanted = f"no binding {one}; it has {names}" if one else f"several bindings: {names}"
    raise Unknown(f"{path} has {wanted}\n   help: write {path}:{next(iter(found))}")


def _no_binding(name: str, error: ModuleNotFoundError) -> str:
    if error.name and not name.startswith(error.name) and not error.name.endswith(name):
        return f"{name} can't be imported: no module {error.name}"
    import pkgutil

    package = importlib.import_module(CATALOG_PACKAGE)
    known = {m.name for m in pkgutil.iter_modules(package.__path__)}
    known -= {"structures", "impls", "gates", "schemes"}
    near = did_you_mean(name, known) or f"the catalog has {', '.join(sorted(known))}"
    return f"no binding {name}\n   help: {near}; or name a .frt file"

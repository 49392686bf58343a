"""``frtspec scan``: a draft binding for a model that nobody bound."""

from __future__ import annotations

import argparse
import json
import keyword
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frtspec.cli.common import FINDINGS, OK, USAGE, refused
from frtspec.config import CATALOG_PACKAGE

if TYPE_CHECKING:
    from frtspec.live.factory import BadFactory, Live
    from frtspec.live.scan import ScanResult


class ForwardRaised(Exception):
    """The host's own forward raised; its exception is the cause."""


def run(options: argparse.Namespace) -> int:
    """Prints the draft and the report, or writes the draft; exits 1 where nothing was found
    or the user's code raised, 2 where factory, package or file can't be used."""
    from frtspec.live.factory import BadFactory, live
    from frtspec.live.scan import scan

    package = options.package or CATALOG_PACKAGE
    name = options.name
    if name is not None and (
        keyword.iskeyword(name) or not (name.isidentifier() and name.isascii())
    ):
        return _usage(f"`{name}` can't be a binding's name: a name of letters, digits and _")
    if options.out is not None and Path(options.out).exists():
        return _usage(f"{options.out} exists: give another file, or remove it")
    try:
        host = live(options.factory, alone=True)
        found = scan(host.model, _forward(host), package=package, name=options.name)
    except BadFactory as error:
        return _bad_factory(error)
    except ForwardRaised as error:
        _show(error.__cause__)
        print("frtspec: the model's forward raised; make it run first", file=sys.stderr)
        return FINDINGS
    except ModuleNotFoundError as error:
        return _usage(
            f"no generated package {package}: {error}; run `frtspec gen`, or leave --package out"
        )
    if options.out is not None:
        try:
            Path(options.out).write_text(found.binding, encoding="utf-8")
        except OSError as error:
            return _usage(refused(options.out, error).message + f": {options.out}")
    _print(found, options)
    return OK if found.seats else FINDINGS


def _print(found: ScanResult, options: argparse.Namespace) -> None:
    """The draft goes where it can be piped from; the report beside it."""
    if options.format == "json":
        print(json.dumps(found.json(), indent=2))
    elif options.out is not None:
        sys.stdout.write(found.explain() + f"wrote {options.out}\n")
    else:
        sys.stdout.write(found.binding)
        sys.stderr.write(found.explain())


def _forward(host: Live) -> Callable[[], Any] | None:
    """One run of the host: its forward, with the first observation where there are any."""
    if host.forward is None:
        return None
    forward = host.forward if callable(host.forward) else next(iter(host.forward))
    given = () if host.observations is None else (next(iter(host.observations)),)

    def once() -> Any:
        try:
            return forward(*given)
        except Exception as error:
            raise ForwardRaised from error

    return once


def _usage(message: str) -> int:
    print(f"frtspec: {message}", file=sys.stderr)
    return USAGE


def _bad_factory(error: BadFactory) -> int:
    """What is wrong with the factory; where the user's own code raised, its traceback too."""
    cause = error.__cause__
    missing = cause.name if isinstance(cause, ModuleNotFoundError) else None
    if cause is not None and not (missing and missing in str(error).split()[0]):
        _show(cause)
        print(f"frtspec: {error}", file=sys.stderr)
        return FINDINGS
    return _usage(str(error))


def _show(cause: BaseException | None) -> None:
    """A traceback without our own frames at its head."""
    if cause is None:
        return
    frames = traceback.extract_tb(cause.__traceback__)
    theirs = [f for f in frames if "frtspec" not in Path(f.filename).parts]
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(theirs)]
    sys.stderr.write("".join([*lines, *traceback.format_exception_only(cause)]))

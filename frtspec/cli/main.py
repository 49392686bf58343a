"""The entry point: options, dispatch, exit codes.

Exit codes: 0 ok, 1 findings, 2 usage, 3 a fault in frtspec itself.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from frtspec import __version__
from frtspec.cli.common import FAULT, FINDINGS, USAGE
from frtspec.diag.render import FORMATS
from frtspec.diag.suggest import did_you_mean

CATALOGS = ("flash-rt",)
"""Other catalogs that can be read and written."""

_MODULES = {"import": "importing", "export": "exporting"}
"""Commands whose name is no good one for a module."""

INTERRUPTED = 130
"""What a shell reports for a command ended by Ctrl-C."""

_PATHS = "files or folders; default: the project's spec roots"


class _Parser(argparse.ArgumentParser):
    """argparse, with a did-you-mean for a misspelt command or option."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        print(f"{self.prog}: error: {message}", file=sys.stderr)
        typed = re.search(r"invalid choice: '([^']*)'|unrecognized arguments: ([^\s=]*)", message)
        help = did_you_mean(typed[1] or typed[2], _names(self)) if typed else None
        if help:
            print(f"   help: {help}", file=sys.stderr)
        raise SystemExit(USAGE)


def _names(parser: argparse.ArgumentParser) -> set[str]:
    """Every command, choice and option below the parser."""
    names: set[str] = set()
    for action in parser._actions:
        names.update(action.option_strings, map(str, action.choices or ()))
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                names |= _names(child)
    return names


def _parser() -> _Parser:
    parser = _Parser(
        prog="frtspec",
        description="A spec language for fast regions of PyTorch models.",
        epilog="exit codes: 0 ok, 1 findings, 2 usage, 3 a fault in frtspec itself",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"frtspec {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, summary: str) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = commands.add_parser(
            name, help=summary, description=summary, allow_abbrev=False
        )
        return added

    check = command("check", "check specs and report every finding")
    check.add_argument("paths", nargs="*", metavar="PATH", help=_PATHS)
    check.add_argument("--format", choices=FORMATS, default="text", help="default: text")

    gen = command("gen", "generate the Python package of specs and all they need")
    gen.add_argument("paths", nargs="*", metavar="PATH", help=_PATHS)
    gen.add_argument("--out", metavar="DIR", help="folder to write into; default: generated/")
    gen.add_argument("--package", metavar="NAME", help="name of the project's own package")
    gen.add_argument("--check", action="store_true", help="write nothing, fail on a difference")

    fmt = command("fmt", "format specs in place")
    fmt.add_argument("paths", nargs="*", metavar="PATH", help=_PATHS)
    fmt.add_argument("--check", action="store_true", help="write nothing, fail on a difference")

    lock = command("lock", "record every declaration's digests in spec.lock")
    lock.add_argument("--check", action="store_true", help="write nothing, fail on a difference")

    explain = command("explain", "explain a code, or list all codes")
    explain.add_argument("code", nargs="?", metavar="CODE", help="for example FRT0201")

    docs = command("docs", "write the catalog's pages: formulas, drawings, costs, who uses what")
    docs.add_argument("--out", metavar="DIR", default="docs", help="default: docs/")
    docs.add_argument("--check", action="store_true", help="write nothing, fail on a difference")

    verify = command("verify", "hold a binding against a live model: every path, slot, point, call")
    verify.add_argument(
        "binding",
        metavar="BINDING",
        help="one of the catalog (qwen3), a generated package (my_kernels.qwen3), or FILE.frt",
    )
    verify.add_argument(
        "factory",
        metavar="MODULE:FACTORY",
        help="a function that returns (model, forward) or (model, forward, observations)",
    )
    verify.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    verify.add_argument(
        "--max-samples", type=int, metavar="N", help="run at most N samples; default: all"
    )

    scan = command("scan", "write a draft binding for a model that nobody bound")
    scan.add_argument(
        "factory",
        metavar="MODULE:FACTORY",
        help="a function that returns model, (model, forward) or (model, forward, observations)",
    )
    scan.add_argument("--out", metavar="FILE", help="write the draft here; default: to stdout")
    scan.add_argument("--name", metavar="NAME", help="name of the binding; default: the class")
    scan.add_argument(
        "--package",
        metavar="NAME",
        help="generated package with the structures; default: the catalog's",
    )
    scan.add_argument("--format", choices=("text", "json"), default="text", help="default: text")

    receipts = command("receipts", "verify receipts, show or compare them, or lay many out")
    receipts.add_argument(
        "action",
        choices=("verify", "show", "compare", "matrix"),
        metavar="verify|show|compare|matrix",
        help="check digests; tell one; what differs between two; hosts by structures",
    )
    receipts.add_argument(
        "paths", nargs="+", metavar="PATH", help="receipts, or folders of them (*.json)"
    )
    receipts.add_argument(
        "--format", choices=("text", "json"), default="text", help="default: text"
    )

    imports = command("import", "read the bindings of another catalog into specs")
    imports.add_argument("catalog", choices=CATALOGS, metavar="CATALOG", help="flash-rt")
    imports.add_argument(
        "--from",
        dest="source",
        metavar="DIR",
        help="folder of its bindings/ and structures/; default: that of the installed package",
    )
    imports.add_argument("--out", required=True, metavar="DIR", help="folder to write into")
    imports.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    imports.add_argument("--format", choices=FORMATS, default="text", help="default: text")

    exports = command("export", "write bindings as documents of another catalog")
    exports.add_argument("catalog", choices=CATALOGS, metavar="CATALOG", help="flash-rt")
    exports.add_argument("paths", nargs="*", metavar="PATH", help=_PATHS)
    exports.add_argument("--out", required=True, metavar="DIR", help="folder to write into")
    exports.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    exports.add_argument("--format", choices=FORMATS, default="text", help="default: text")

    commands.add_parser("demo", help="attach to a small real model on this machine", add_help=False)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; never raises but for ``SystemExit``
    of ``--help`` and ``--version``."""
    _print_anything()
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`| head`); nothing may be written on the way out either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINDINGS
    except Exception:  # noqa: BLE001 - the last resort: anything that gets here is our fault
        print(_fault_report(traceback.format_exc()), file=sys.stderr, end="")
        return FAULT


def _run(argv: list[str]) -> int:
    if argv[:1] == ["demo"]:  # has options of its own, and the live side behind it
        code: int = importlib.import_module("frtspec.live.demo").main(argv[1:])
        return code
    options = _parser().parse_args(argv)
    with _rare_collection():
        module = _MODULES.get(options.command, options.command)
        code = importlib.import_module(f"frtspec.cli.{module}").run(options)
    sys.stdout.flush()
    return code


@contextmanager
def _rare_collection() -> Iterator[None]:
    """Trees are built and kept for the length of a command: looking for cycles in them
    again and again would cost a tenth of it."""
    usual = gc.get_threshold()
    gc.set_threshold(100_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _print_anything() -> None:
    """Output is UTF-8 whatever the locale, and no path or name is unprintable."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def _fault_report(trace: str) -> str:
    python = ".".join(map(str, sys.version_info[:3]))
    return (
        f"{trace}\n"
        "frtspec: this is a fault in frtspec, not in your files.\n"
        "Please report it with the text above, the command and the files it read\n"
        f"(frtspec {__version__}, Python {python}, {sys.platform}).\n"
    )

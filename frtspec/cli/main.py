"""The entry point: options, dispatch, exit codes.

Exit codes: 0 ok, 1 findings, 2 usage, 3 a fault in frtspec itself.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from frtspec import __version__
from frtspec.cli.commands import COMMANDS, parser
from frtspec.cli.common import FAULT, FINDINGS, USAGE

INTERRUPTED = 130
"""What a shell reports for a command ended by Ctrl-C."""


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
    options = parser().parse_args(argv)
    with _rare_collection():
        module = COMMANDS[options.command].module
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
